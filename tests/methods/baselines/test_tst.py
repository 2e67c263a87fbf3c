import numpy as np
import pytest

from foretune.methods.contracts import Observations, Prediction
from foretune.search import method
from foretune.testing import problem
from foretune_lab.baselines.tst import TwoStagePosterior
from tests.methods.baselines.examples import SPACE, mean_regret


class Fixed:
    """A posterior whose belief is the same everywhere."""

    best = 0.5

    def predict(self, x):
        return Prediction(np.ones(len(x)), np.full(len(x), 2.0))

    def sample(self, x, n, *, seed):
        return np.zeros((n, len(x)))


def test_the_mean_is_weighted_and_the_spread_is_the_targets_own():
    posterior = TwoStagePosterior(
        own=Fixed(),
        past_means=(lambda x: np.array([0.0, 3.0]), lambda x: None, lambda x: np.array([2.0, -1])),
        weights=np.array([0.75, 0.0, 0.5]),
        best=0.0,
    )
    x = SPACE.sample(2, seed=0)
    first, second = (0.75 + 0.5 * 2) / 2, (0.75 + 0.75 * 3 - 0.5) / 2
    belief = posterior.predict(x)
    np.testing.assert_allclose(belief.mean, [first, second])
    np.testing.assert_array_equal(belief.std, [2.0, 2.0])
    np.testing.assert_allclose(posterior.sample(x, 1, seed=0), [[first - 1, second - 1]])


@pytest.mark.parametrize("name", ["tst", "taf"])
def test_a_past_task_weighs_while_it_ranks_the_trials_alike(name):
    flat = problem("flat")
    configs = flat.space.sample(12, seed=8)
    prior = method(name).learn(flat.experience, seed=0)
    surrogate = prior.surrogate(flat.target())

    def weights(losses):
        seen = Observations(configs, losses[:, None], np.zeros(12, dtype=bool))
        return surrogate.condition(seen, seed=0).weights

    as_the_third = prior.sources.processes[2].mean(configs.x)
    assert weights(as_the_third)[2] == pytest.approx(0.75)
    assert not weights(-as_the_third).any()
    swapped = as_the_third.copy()
    first, second = np.argsort(as_the_third)[:2]
    swapped[[first, second]] = as_the_third[[second, first]]
    # One of 66 pairs disagrees: 3/4 (1 - (1/66 / 0.1)^2).
    assert weights(swapped)[2] == pytest.approx(0.75 * (1 - (10 / 66) ** 2))


def test_the_incumbent_is_the_lowest_of_the_mixed_means_at_the_trials():
    flat = problem("flat")
    configs = flat.space.sample(6, seed=8)
    prior = method("tst").learn(flat.experience, seed=0)
    losses = prior.sources.processes[2].mean(configs.x)
    seen = Observations(configs, losses[:, None], np.zeros(6, dtype=bool))
    posterior = prior.surrogate(flat.target()).condition(seen, seed=0)
    assert posterior.best == pytest.approx(posterior.predict(configs).mean.min())


@pytest.mark.parametrize("name", ["tst", "taf"])
def test_it_beats_random_search_on_related_tasks(name):
    entry, random = method(name), method("random")
    prior = entry.learn(problem("flat").experience, seed=0)
    ours = mean_regret(entry, prior, trials=10, seeds=3)
    assert ours < 0.7 * mean_regret(random, random.learn(None, seed=0), trials=10, seeds=3)
