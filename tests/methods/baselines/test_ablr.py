from functools import cache

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from foretune.errors import ArtifactError, MethodError
from foretune.methods.contracts import Observations, Target
from foretune.numerics.transforms import standardise
from foretune.search import Method, method
from foretune.space import Space
from foretune.testing import problem
from foretune_lab.baselines.ablr import (
    UNITS,
    EvidenceObjective,
    ablr,
    ablr_copula,
    activations,
    training_of,
)
from foretune_lab.baselines.regression import Regression, fit_precisions
from tests.methods.baselines.examples import mean_regret, small_experience
from tests.refusals import refuses

ABLR = Method("ablr", "shared features", ablr, needs_experience=True)
ABLR_COPULA = Method("ablr-copula", "on scores", ablr_copula, needs_experience=True)


@cache
def learnt(entry=ABLR):
    """What the method learns from the flat problem."""
    return entry.learn(problem("flat").experience, seed=0)


def small_training(units=UNITS):
    rng = np.random.default_rng(0)
    tasks = (slice(0, 4), slice(4, 9))
    return EvidenceObjective(rng.random((9, 2)), rng.standard_normal(9), tasks, units)


def test_the_network_is_three_layers_of_fifty_tanh_units():
    training = small_training()
    layers, precisions = training.split(training.start(np.random.default_rng(0)))
    assert [weights.shape for weights, _ in layers] == [(2, 50), (50, 50), (50, 50)]
    assert precisions.shape == (2, 2)
    (w1, b1), (w2, b2), (w3, b3) = layers
    first = np.tanh((2.0 * training.x - 1.0) @ w1 + b1)
    expected = np.tanh(np.tanh(first @ w2 + b2) @ w3 + b3)
    np.testing.assert_array_equal(activations(layers, training.x)[-1], expected)


def test_the_surprise_is_the_mean_over_all_tasks():
    training = small_training()
    vector = training.start(np.random.default_rng(1))
    layers, precisions = training.split(vector)
    phi = activations(layers, training.x)[-1]
    by_task = [
        Regression.of(phi[rows], training.z[rows], *precisions[task]).surprise
        for task, rows in enumerate(training.tasks)
    ]
    assert training.surprise(vector)[0] == pytest.approx(sum(by_task) / 9)


def test_the_gradient_is_that_of_the_surprise():
    training = small_training(units=(4, 3, 5))
    vector = training.start(np.random.default_rng(2))
    vector = vector + 0.1 * np.random.default_rng(3).standard_normal(len(vector))
    slopes = approx_fprime(vector, lambda v: training.surprise(v)[0], 1e-7)
    np.testing.assert_allclose(training.surprise(vector)[1], slopes, atol=1e-5)


def test_training_lowers_the_surprise():
    training = training_of(problem("flat").experience, standardise, 0)
    layers, precisions = training.minimise(0)
    arrays = [*(array for layer in layers for array in layer), precisions]
    learnt = training.surprise(np.concatenate([array.ravel() for array in arrays]))[0]
    assert learnt < training.surprise(training.start(np.random.default_rng(0)))[0] - 0.5


def test_evaluations_are_shared_out_evenly():
    training = training_of(small_experience(), standardise, 0, evaluations=10)
    assert [rows.stop - rows.start for rows in training.tasks] == [3, 3, 3]
    assert training.x.shape == (9, small_experience().space.width)


def test_the_target_is_regressed_on_the_learnt_features():
    flat = problem("flat")
    prior = learnt()
    configs = flat.space.sample(30, seed=4)
    losses = flat.losses(configs)
    seen = Observations(configs, losses, np.zeros(30, dtype=bool))
    posterior = prior.surrogate(flat.target()).condition(seen, seed=0)
    assert posterior.best == pytest.approx(standardise(losses[:, 0]).min())
    others = flat.space.sample(200, seed=5)
    belief = posterior.predict(others)
    assert np.corrcoef(belief.mean, flat.losses(others)[:, 0])[0, 1] > 0.9
    draws = posterior.sample(others, 4000, seed=0)
    np.testing.assert_allclose(draws.mean(axis=0), belief.mean, atol=0.1)
    np.testing.assert_allclose(draws.std(axis=0), belief.std, rtol=0.15)


def test_precisions_follow_the_observed_trials_and_weights_the_believed_too():
    prior = ABLR.learn(small_experience(), seed=0)
    configs = small_experience().space.sample(8, seed=4)
    losses = np.random.default_rng(0).random((8, 1))
    losses[7] = -3.0
    real = np.arange(8) < 6
    posterior = prior.surrogate(Target(prior.space)).condition(
        Observations(configs, losses, ~real), seed=0
    )
    z, phi = standardise(losses[:, 0]), prior.features(configs)
    precisions = fit_precisions(phi[real], z[real], prior.typical)
    head = Regression.of(phi, z, *precisions)
    belief = posterior.predict(configs)
    np.testing.assert_allclose(belief.mean, phi @ head.mean)
    np.testing.assert_allclose(belief.std, np.sqrt(np.diag(phi @ head.covariance @ phi.T)))
    assert posterior.best == z[7] == z.min()


def test_the_targets_fit_starts_from_the_past_tasks_mean_precisions():
    training = training_of(small_experience(), standardise, 5)
    layers, precisions = training.minimise(5)
    prior = ABLR.learn(small_experience(), seed=5)
    np.testing.assert_array_equal(prior.typical, precisions.mean(axis=0))
    np.testing.assert_array_equal(prior.layers[1][0], layers[1][0])


def test_the_pool_gets_the_same_predictions_as_any_other_configurations():
    flat = problem("flat")
    prior = learnt()
    seen = Observations(
        flat.pool.take([0, 1, 2]), np.array([[1.0], [2.0], [0.5]]), np.zeros(3, bool)
    )
    posterior = prior.surrogate(flat.target(pool=True)).condition(seen, seed=0)
    for _ in range(2):
        copied = posterior.predict(flat.pool.take(np.arange(len(flat.pool))))
        np.testing.assert_array_equal(posterior.predict(flat.pool).mean, copied.mean)


def test_another_space_and_the_other_output_are_refused(tmp_path):
    prior = ABLR.learn(small_experience(), seed=0)
    with refuses("prior-of-another-space", kind=MethodError):
        prior.surrogate(Target(Space.of({"width": (0.0, 10.0)})))
    prior.save(tmp_path / "prior")
    with pytest.raises(ArtifactError, match="ablr-copula"):
        ABLR_COPULA.load(tmp_path / "prior")


@pytest.mark.parametrize("entry", [ABLR, ABLR_COPULA], ids=lambda entry: entry.name)
def test_it_beats_random_search_on_related_tasks(entry):
    prior = learnt(entry)
    random = method("random")
    ours = mean_regret(entry, prior, trials=10, seeds=3)
    assert ours < 0.7 * mean_regret(random, random.learn(None, seed=0), trials=10, seeds=3)
