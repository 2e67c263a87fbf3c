import numpy as np
import pytest

from foretune.experience import Direction, Experience, Metric
from foretune.methods.contracts import Observations, Target
from foretune.numerics.gp import negative_log_posterior
from foretune.search import method
from foretune.space import Space
from foretune_lab.baselines.pretrained_gps import _fit_common_hyper

SPACE = Space.of({"model": {"a": {"x": (0.0, 1.0)}, "b": {"y": (0.0, 1.0)}, "never": {}}})
DRAWN = SPACE.sample(60, seed=0)
CONFIGS = DRAWN.take(DRAWN.values[:, 0] < 2)


def bowl(configs, shift: float) -> np.ndarray:
    which = configs.values[:, 0]
    number = np.where(which == 0, configs.x[:, 3], configs.x[:, 4])
    return np.square(number - 0.5 - shift) + 0.5 * (which == 1)


def past() -> Experience:
    matrix = np.stack([bowl(CONFIGS, shift) for shift in (-0.05, 0.0, 0.05)])
    metrics = [Metric("loss", Direction.MIN)]
    return Experience.from_matrix(SPACE, CONFIGS, ["p", "q", "r"], metrics, {"loss": matrix})


def test_the_past_tasks_mean_is_believed_before_an_algorithm_was_tried() -> None:
    prior = method("pretrained-gps").learn(past(), seed=0)
    one = SPACE.encode([{"model": "b", "model:b:y": 0.5}])
    told = Observations(one, np.zeros((1, 1)), np.zeros(1, dtype=bool))
    posterior = prior.surrogate(Target(SPACE)).condition(told, seed=0)
    at = [{"model": "a", "model:a:x": x} for x in (0.5, 0.02)]
    middle, edge = posterior.predict(SPACE.encode(at)).mean
    assert middle < edge - 0.3
    never = posterior.predict(SPACE.encode([{"model": "never"}]))
    assert (never.mean[0], never.std[0]) == (0.0, 1.0)


def test_the_targets_own_trials_are_believed_where_they_are() -> None:
    prior = method("pretrained-gps").learn(past(), seed=0)
    configs = CONFIGS.take(np.arange(12))
    losses = bowl(configs, 0.02)
    told = Observations(configs, losses[:, None], np.zeros(12, dtype=bool))
    posterior = prior.surrogate(Target(SPACE)).condition(told, seed=0)
    belief = posterior.predict(configs)
    z = (losses - losses.mean()) / losses.std()
    np.testing.assert_allclose(belief.mean, z, atol=0.3)
    assert posterior.best == pytest.approx(z.min())


def test_past_tasks_share_one_prior_of_the_hyperparameters() -> None:
    """At the most probable ones, the likelihoods of all tasks and one prior balance."""
    rng, groups = np.random.default_rng(0), np.zeros(1, dtype=int)
    lists = []
    for _ in range(8):
        x = np.sort(rng.random((12, 1)), axis=0)
        lists.append((x, np.cumsum(rng.standard_normal(12)) * 0.3))
    found = _fit_common_hyper(lists, groups).to_vector()

    def slope(part: int, weight: float) -> np.ndarray:
        return negative_log_posterior(found, *lists[part], groups, weight)[1]

    likelihoods = np.sum([slope(part, 0.0) for part in range(8)], axis=0)
    prior = slope(0, 1.0) - slope(0, 0.0)
    np.testing.assert_allclose(likelihoods + prior, 0.0, atol=0.05)
    assert np.abs(prior).max() > 0.2
