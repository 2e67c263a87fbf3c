import itertools

import numpy as np
import pytest

from foretune.methods.contracts import Observations, Prediction
from foretune.methods.gp.gaussian_process import GaussianProcessPosterior
from foretune.methods.rgpe.rgpe import (
    EnsemblePosterior,
    ensemble_weights,
    leave_one_out,
    leave_one_out_losses,
    ranking_losses,
)
from foretune.numerics.gp import GP
from foretune.numerics.hyper import GPHyper
from foretune.numerics.transforms import Standardise
from foretune.search import method
from foretune.testing import problem
from tests.methods.baselines.examples import SPACE, mean_regret

RGPE = method("rgpe")


def test_ranking_losses_by_hand():
    z = np.array([2.0, 1.0, 3.0])
    draws = np.array([[20.0, 10.0, 30.0], [10.0, 20.0, 30.0], [1.0, 3.0, 0.0]])
    # Ordered pairs count both ways: none, one pair, all three pairs.
    np.testing.assert_array_equal(ranking_losses(z, draws.T), [0, 2, 6])


def test_ranking_losses_follow_their_definition_also_with_ties():
    rng = np.random.default_rng(0)
    z, draws = rng.integers(0, 4, 9).astype(float), rng.normal(size=(9, 2, 3))
    expected = sum(
        (draws[j] < draws[k]) != (z[j] < z[k]) for j, k in itertools.permutations(range(9), 2)
    )
    np.testing.assert_array_equal(ranking_losses(z, draws), expected)


def test_left_out_losses_by_hand():
    z = np.array([1.0, 2.0, 3.0])
    exact = z.copy()
    first_seems_worst = np.array([9.0, 2.0, 3.0])  # wrong against both others
    middle_seems_worst = np.array([1.0, 9.0, 3.0])  # wrong against the last
    left_out = np.stack([exact, first_seems_worst, middle_seems_worst], axis=1)
    np.testing.assert_array_equal(leave_one_out_losses(z, left_out), [0, 2, 1])


def test_weights_are_shares_of_draws_won():
    own = np.array([5, 5, 5, 5])
    past = np.array([[3, 9, 5, 4], [3, 2, 6, 6]])
    # Draw 1 is shared, draw 2 goes to the second, draw 3 ties and is the target's, 4 the first's.
    np.testing.assert_allclose(ensemble_weights(past, own), [1.5 / 4, 1.5 / 4, 1 / 4])


def test_a_past_task_that_is_mostly_worse_than_the_target_cannot_win_by_luck():
    own = np.array([4, 4, 4, 4, 4])
    past = np.array([[0, 6, 6, 6, 6], [4, 4, 4, 4, 4]])
    np.testing.assert_allclose(ensemble_weights(past, own), [0.0, 0.0, 1.0])


def test_leaving_one_out_is_what_a_process_without_it_says():
    rng = np.random.default_rng(3)
    x, y = rng.random((8, 2)), rng.normal(size=8)
    hyper = GPHyper(np.log([0.4, 0.9]), 0.1, -3.0, 0.2)
    whole = GP.condition(x, y, hyper)
    mean, std = leave_one_out(whole)
    for j in range(8):
        rest = np.delete(np.arange(8), j)
        units = Standardise(whole.units.shift, whole.units.scale)
        without = GP.condition(x[rest], y[rest], hyper, units=units)
        expected_mean, expected_std = without.predict(x[[j]])
        assert units.inverse(mean)[j] == pytest.approx(expected_mean[0])
        assert std[j] * units.scale == pytest.approx(expected_std[0])


class Belief:
    def __init__(self, mean, std):
        self.mean, self.std = mean, std

    def predict(self, x):
        return Prediction(np.full(len(x), self.mean), np.full(len(x), self.std))

    def __call__(self, x):
        return self.predict(x)


def test_the_ensemble_is_a_weighted_sum_of_independent_processes():
    beliefs = (Belief(4.0, 1.0), Belief(np.nan, np.nan), Belief(-2.0, 3.0))
    weights = np.array([0.5, 0.0, 0.2, 0.3])
    posterior = EnsemblePosterior(Belief(1.0, 2.0), beliefs, (), weights, 0.0)
    belief = posterior.predict(SPACE.sample(2, seed=0))
    np.testing.assert_allclose(belief.mean, 0.5 * 4.0 - 0.2 * 2.0 + 0.3 * 1.0)
    np.testing.assert_allclose(belief.std, np.sqrt(0.5**2 + 0.6**2 + 0.6**2))


def test_processes_of_the_ensemble_are_drawn_independently_of_each_other():
    """Two like it beside the target's own, a third each: a third of the variance is left."""
    x = SPACE.sample(3, seed=0)
    hyper = GPHyper(np.full(x.x.shape[1], -1.0), 0.0, -6.0)
    process = GP.condition(x.x[:1], np.zeros(1), hyper, units=Standardise(0.0, 1.0))
    own = GaussianProcessPosterior(process, 0.0)
    beliefs = (own.predict, own.predict)
    posterior = EnsemblePosterior(own, beliefs, (process, process), np.full(3, 1 / 3), 0.0)
    draws, belief = posterior.sample(x, 6000, seed=0), posterior.predict(x)
    np.testing.assert_allclose(belief.std, own.predict(x).std / np.sqrt(3))
    np.testing.assert_allclose(draws.std(axis=0), belief.std, atol=0.02)
    np.testing.assert_allclose(draws.mean(axis=0), belief.mean, atol=0.03)


def conditioned(losses, configs, prior):
    flat = problem("flat")
    seen = Observations(configs, losses[:, None], np.zeros(len(losses), dtype=bool))
    return prior.surrogate(flat.target()).condition(seen, seed=0)


def test_the_past_task_that_is_the_target_gets_the_weight():
    flat = problem("flat")
    configs = flat.space.sample(15, seed=8)
    prior = RGPE.learn(flat.experience, seed=0)
    as_the_third = prior.sources.processes[2].mean(configs.x)
    weights = conditioned(as_the_third, configs, prior).weights
    assert weights.sum() == pytest.approx(1.0)
    assert weights[2] > 0.6
    assert weights[2] == weights.max()


def test_unrelated_past_tasks_lose_their_weight():
    flat = problem("flat")
    configs = flat.space.sample(30, seed=8)
    prior = RGPE.learn(flat.experience, seed=0)
    opposite = -prior.sources.processes[2].mean(configs.x)
    assert conditioned(opposite, configs, prior).weights[-1] > 0.9


def test_before_there_is_a_pair_all_count_alike():
    flat = problem("flat")
    prior = RGPE.learn(flat.experience, seed=0)
    weights = conditioned(np.array([1.0]), flat.space.sample(1, seed=8), prior).weights
    np.testing.assert_allclose(weights, 1 / 6)


def test_it_beats_random_search_on_related_tasks():
    random = method("random")
    prior = RGPE.learn(problem("flat").experience, seed=0)
    ours = mean_regret(RGPE, prior, trials=10, seeds=3)
    assert ours < 0.7 * mean_regret(random, random.learn(None, seed=0), trials=10, seeds=3)
