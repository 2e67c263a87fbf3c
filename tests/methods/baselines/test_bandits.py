import numpy as np
import pytest

from foretune.methods.contracts import Observations, Target
from foretune.numerics.gp import GP
from foretune.numerics.transforms import standardise
from foretune.search import Optimizer, Told, method
from foretune.space import Space
from foretune.space.algorithms import Algorithms
from foretune_lab.baselines.bandits import (
    IndependentSurrogate,
    RisingBanditSurrogate,
    remaining,
    turn,
)

SPACE = Space.of({"model": {"a": {"x": (0.0, 1.0)}, "b": {"y": (0.0, 1.0)}, "c": {}}})


def seen(configs, losses: np.ndarray) -> Observations:
    return Observations(configs, losses[:, None], np.zeros(len(losses), dtype=bool))


def test_each_algorithm_has_the_process_of_its_own_trials() -> None:
    configs = SPACE.sample(20, seed=0)
    which = configs.values[:, 0].astype(int)
    y = np.sin(5.0 * configs.x.sum(axis=1))
    surrogate = IndependentSurrogate.of(Target(SPACE))
    posterior = surrogate.condition(seen(configs, y), seed=0)
    own = which == 0
    column = surrogate.algorithms.columns[0]
    x = configs.x[np.ix_(own, column)]
    process = GP.condition(x, y[own], surrogate.fits[0].hyper(x, y[own]))
    new = SPACE.sample(30, seed=1)
    new = new.take(new.values[:, 0] == 0)
    belief = posterior.predict(new)
    mean, std = process.predict(new.x[:, column])
    np.testing.assert_allclose(belief.mean, mean)
    np.testing.assert_allclose(belief.std, std)
    assert posterior.best == y.min()


def test_several_losses_are_standardised_and_averaged() -> None:
    configs = SPACE.sample(8, seed=0)
    losses = np.random.default_rng(0).random((8, 2)) * [1.0, 1000.0]
    told = Observations(configs, losses, np.zeros(8, dtype=bool))
    posterior = IndependentSurrogate.of(Target(SPACE, ("error", "seconds"))).condition(told, seed=0)
    mean = 0.5 * (standardise(losses[:, 0]) + standardise(losses[:, 1]))
    assert posterior.best == pytest.approx(mean.min())


def test_an_untried_algorithm_is_believed_to_be_like_all() -> None:
    configs = SPACE.sample(30, seed=0)
    configs = configs.take(configs.values[:, 0] == 0)
    y = np.linspace(1.0, 3.0, len(configs))
    posterior = IndependentSurrogate.of(Target(SPACE)).condition(seen(configs, y), seed=0)
    belief = posterior.predict(SPACE.encode([{"model": "b", "model:b:y": 0.5}]))
    assert belief.mean[0] == pytest.approx(2.0)
    assert belief.std[0] == pytest.approx(y.std())


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_an_algorithm_with_one_trial_borrows_the_unit_of_all(unit: float) -> None:
    configs = SPACE.encode(
        [{"model": "a", "model:a:x": x} for x in (0.1, 0.5, 0.9)]
        + [{"model": "b", "model:b:y": 0.5}]
    )
    losses = np.array([1.0, 2.0, 4.0, 3.0])
    new = SPACE.encode([{"model": "b", "model:b:y": y} for y in (0.0, 0.5, 1.0)])
    surrogate = IndependentSurrogate.of(Target(SPACE))
    plain = surrogate.condition(seen(configs, losses), seed=0).predict(new)
    scaled = surrogate.condition(seen(configs, unit * losses), seed=0).predict(new)
    np.testing.assert_allclose(scaled.mean, unit * plain.mean)
    np.testing.assert_allclose(scaled.std, unit * plain.std)
    assert plain.mean == pytest.approx(3.0)


def test_arms_are_pulled_in_turn() -> None:
    assert turn(np.array([0, 1, 2, 0]), np.ones(4), 3) == 1
    assert turn(np.array([], dtype=int), np.array([]), 3) == 0


def test_an_arm_without_progress_is_dropped_when_it_is_behind() -> None:
    """After eight pulls each: arm 0 is best, arm 1 stands still, arm 2 improves by 0.1 a pull."""
    which = np.tile([0, 1, 2], 8)
    y = np.empty(24)
    y[0::3], y[1::3], y[2::3] = 1.0, 5.0, 3.0 - 0.1 * np.arange(8)
    assert remaining(which, y, 3).tolist() == [0, 2]
    assert remaining(which[:21], y[:21], 3).tolist() == [0, 1, 2]
    assert turn(which, y, 3) == 0
    # Arms are looked at when a round is complete, which the 23rd pull does not do.
    assert remaining(which[:23], y[:23], 3).tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("budget", "last", "left"),
    [(200, 0.191, [0, 1]), (200, 0.193, [0]), (108, 0.145, [0, 1]), (108, 0.147, [0])],
)
def test_an_arm_may_go_on_at_its_present_rate_to_the_end(
    budget: int, last: float, left: list[int]
) -> None:
    """Of 200 trials 184 are ahead, which one arm may get: at 0.0005 a pull that is 0.092."""
    which = np.tile([0, 1], 8)
    y = np.where(which == 0, 0.1, 0.0)
    y[1::2] = last + 0.0005 * np.arange(7, -1, -1)
    assert remaining(which, y, 2, budget).tolist() == left


def test_the_horizon_is_the_budget_of_the_search() -> None:
    learner = method("rising-bandits").learn(None, seed=0)
    assert learner.surrogate(Target(SPACE, budget=30)).horizon == 30
    assert learner.surrogate(Target(SPACE)).horizon == 200


def test_an_arm_ahead_in_pulls_delays_no_round() -> None:
    which = np.repeat([0, 1], [10, 8])
    assert remaining(which, np.where(which == 0, 1.0, 5.0), 2).tolist() == [0]


def test_failed_pulls_drop_nobody() -> None:
    which = np.tile([0, 1], 8)
    y = np.where(which == 0, 1.0, np.nan)
    assert remaining(which, y, 2).tolist() == [0, 1]


def test_draws_within_an_algorithm_have_the_predicted_moments() -> None:
    configs, new = SPACE.sample(20, seed=0), SPACE.sample(9, seed=1)
    y = np.sin(5.0 * configs.x.sum(axis=1))
    posterior = IndependentSurrogate.of(Target(SPACE)).condition(seen(configs, y), seed=0)
    draws, belief = posterior.sample(new, 4000, seed=0), posterior.predict(new)
    np.testing.assert_allclose(draws.mean(axis=0), belief.mean, atol=0.05)
    np.testing.assert_allclose(draws.std(axis=0), belief.std, atol=0.05)


def test_other_algorithms_than_the_one_whose_turn_it_is_are_out_of_reach() -> None:
    """The arm's forest knows its own successes alone; a failed pull does not change that."""
    configs = SPACE.encode(
        [
            {"model": "a", "model:a:x": 0.1},
            {"model": "b", "model:b:y": 0.1},
            {"model": "c"},
            {"model": "b", "model:b:y": 0.9},
            {"model": "c"},
            {"model": "a", "model:a:x": 0.9},
            {"model": "b", "model:b:y": 0.5},
            {"model": "c"},
        ]
    )
    losses = np.array([4.0, 1.0, 9.0, 2.0, 9.0, np.nan, 3.0, 9.0])
    surrogate = RisingBanditSurrogate(Algorithms.of(SPACE))
    posterior = surrogate.condition(seen(configs, losses), seed=0)
    assert posterior.arm == 0
    assert posterior.best == 0.0
    belief = posterior.predict(configs.take([0, 1, 2]))
    np.testing.assert_allclose(belief.mean, [0.0, 1e3, 1e3])
    np.testing.assert_allclose(posterior.sample(configs.take([0, 1]), 3, seed=0), [[0.0, 1e3]] * 3)


def test_an_arm_without_a_success_borrows_the_forest_of_all() -> None:
    configs = SPACE.encode(
        [
            {"model": "a", "model:a:x": 0.1},
            {"model": "b", "model:b:y": 0.1},
            {"model": "b", "model:b:y": 0.9},
            {"model": "c"},
            {"model": "c"},
        ]
    )
    told = seen(configs, np.array([np.nan, 1.0, 2.0, 9.0, 9.0]))
    posterior = RisingBanditSurrogate(Algorithms.of(SPACE)).condition(told, seed=0)
    assert posterior.arm == 0
    assert posterior.best == pytest.approx(standardise(np.array([1.0, 2.0, 9.0, 9.0])).min())


def test_rising_bandits_suggest_the_arm_whose_turn_it_is() -> None:
    chosen = method("rising-bandits")
    optimizer = Optimizer(Target(SPACE), chosen, chosen.learn(None, seed=0), seed=0)
    models = []
    for number in range(9):
        suggestion = optimizer.ask()[0]
        models.append(suggestion.config["model"])
        optimizer.tell([Told((float(number % 4),), id=suggestion.id)])
    # `c` has one configuration, so its turns after the first go to whatever comes next.
    assert models.count("c") == 1
    assert {"a", "b"} <= set(models[6:])
