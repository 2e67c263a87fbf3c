import numpy as np
import pytest

from foretune.methods.contracts import Observations, Target
from foretune.search import Optimizer, Told, method
from foretune.search.novelty import (
    FAR,
    LEAST_PROBABILITY,
    Novelty,
    _newness,
    _to_earlier,
    learn_novelty,
    most_likely_reach,
)
from foretune.space import Encoded, Space

SPACE = Space.of({"a": (0.0, 1.0), "b": (0.0, 1.0)})


def told(configs: Encoded, losses: np.ndarray) -> Observations:
    return Observations(configs, losses[:, None], np.zeros(len(configs), dtype=bool))


def on_plateaus(configs: Encoded, per_side: int) -> np.ndarray:
    """Squares of equal loss."""
    a, b = np.minimum((configs.x * per_side).astype(int), per_side - 1).T
    return np.random.default_rng(0).permutation(per_side**2)[a * per_side + b].astype(float)


def test_different_losses_change_nothing() -> None:
    configs = SPACE.sample(20, seed=0)
    novelty = learn_novelty(told(configs, np.arange(20.0)))
    assert novelty.tried is None
    np.testing.assert_array_equal(novelty.discount(configs), np.zeros(20))


def test_failures_repeat_nothing() -> None:
    """They have no loss; and what lies beside one may be new."""
    configs = SPACE.encode([{"a": a, "b": 0.5} for a in (0.1, 0.4, 0.6, 0.95, 0.12)])
    failed = np.array([0.3, np.nan, np.nan, 0.5, 0.4])
    assert learn_novelty(told(configs, failed)).tried is None
    repeated = learn_novelty(told(configs, np.append(failed[:4], 0.3)))
    beside_failure, beside_success = repeated.discount(configs.take([2, 3]))
    assert beside_failure > -0.1 > beside_success


def test_the_latest_of_very_many_trials_tell_the_width_of_plateaus() -> None:
    # The second trial is as near to the first as the fourth to the third.
    configs = SPACE.encode([{"a": a, "b": 0.5} for a in (0.1, 0.2, 0.6, 0.7)])
    early = learn_novelty(told(configs, np.array([1.0, 1.0, 2.0, 3.0])), most=2).reach
    late = learn_novelty(told(configs, np.array([1.0, 2.0, 3.0, 3.0])), most=2).reach
    assert early < 0.1 < late


@pytest.mark.parametrize("per_side", [4, 8])
def test_the_reach_is_about_the_size_of_a_plateau(per_side: int) -> None:
    configs = SPACE.sample(80, seed=1)
    reach = learn_novelty(told(configs, on_plateaus(configs, per_side))).reach
    assert 0.3 / per_side < reach < 1.2 / per_side


def test_near_a_trial_little_is_new_and_far_away_all() -> None:
    configs = SPACE.sample(60, seed=1)
    novelty = learn_novelty(told(configs, on_plateaus(configs, 8)))
    assert novelty.discount(configs.take([0]))[0] == pytest.approx(np.log(LEAST_PROBABILITY))
    far = learn_novelty(told(configs.take([0, 1, 2]), np.array([1.0, 1.0, 2.0])))
    assert (far.discount(configs) <= 0).all()
    assert far.discount(configs).max() > -0.05


def test_repetitions_at_any_distance_say_nothing_about_distance() -> None:
    """Coarse scores repeat everywhere, so that nearness does not explain it."""
    rng = np.random.default_rng(0)
    distances, new = rng.uniform(0.05, 1.0, 200), rng.random(200) < 0.6
    assert most_likely_reach(distances, new) < 0.1


def test_it_has_no_say_in_a_recorded_pool() -> None:
    pool = SPACE.sample(30, seed=2)
    gp = method("gp")
    chosen = []
    for losses in (np.zeros(6), np.arange(6.0) * 1e-9):
        optimizer = Optimizer(Target(SPACE, pool=pool), gp, gp.learn(None, seed=0), seed=0)
        configs = pool.take(np.arange(6)).dicts()
        optimizer.tell(
            [Told((loss,), config=c) for loss, c in zip(losses.tolist(), configs, strict=True)]
        )
        chosen.append(optimizer._chooser._outlook_after(optimizer.told).novel.tried)
    assert chosen == [None, None]


def losses_met(trials: int) -> int:
    """How many different ones a search on 64 plateaus meets."""
    gp = method("gp")
    optimizer = Optimizer(Target(SPACE), gp, gp.learn(None, seed=0), seed=0)
    for _ in range(trials):
        suggestion = optimizer.ask()[0]
        loss = float(on_plateaus(SPACE.encode([suggestion.config]), 8)[0])
        optimizer.tell([Told((loss,), id=suggestion.id)])
    return len(np.unique(optimizer.told.losses))


def test_a_search_on_plateaus_meets_more_of_them(monkeypatch) -> None:
    with_it = losses_met(20)
    monkeypatch.setattr("foretune.search.outlook.learn_novelty", lambda *_: Novelty(None))
    assert with_it > losses_met(20)


def test_distances_to_earlier_trials_are_those_to_all_of_them() -> None:
    x = np.random.default_rng(0).random((300, 3))
    x[200] = x[10]
    x[250] = x[240]
    every = np.sqrt(np.square(x[:, None] - x).sum(axis=2))
    expected = [every[row, :row].min() for row in range(150, 300)]
    assert _to_earlier(x, 150).tolist() == pytest.approx(expected, abs=0.0)


def test_configurations_far_from_all_trials_are_certainly_new() -> None:
    """The search for the nearest trial stops at the distance from which on it says nothing."""
    assert _newness(np.array([FAR * 0.3, np.inf]), 0.3).tolist() == [1.0, 1.0]
