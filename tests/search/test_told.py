"""What was told costs the same however it came, and no more the more of it there is."""

import numpy as np
import pytest

from foretune.errors import UsageError
from foretune.experience import Status
from foretune.methods.contracts import Target
from foretune.search import Optimizer, Told, method
from foretune.search.arguments import all_losses_told, losses_told
from foretune.search.trials import ToldTrials
from foretune.space import Space

SPACE = Space.of({"a": (0.0, 1.0), "b": (0.0, 1.0), "kind": ["x", "y"]})


def optimizer(objectives: tuple[str, ...] = ("loss",), name: str = "gp") -> Optimizer:
    entry = method(name)
    return Optimizer(Target(SPACE, objectives), entry, entry.learn(None, seed=0), seed=3)


@pytest.mark.parametrize("objectives", [("loss",), ("loss", "seconds")])
def test_trials_told_one_by_one_or_at_once_lead_to_the_same(objectives: tuple[str, ...]) -> None:
    configs = SPACE.sample(30, seed=0)
    losses = np.random.default_rng(0).random((30, len(objectives)))
    losses[7] = np.nan
    told = [
        Told(tuple(row), config=config)
        for row, config in zip(losses.tolist(), configs.dicts(), strict=True)
    ]
    at_once, one_by_one = optimizer(objectives), optimizer(objectives)
    at_once.tell(told)
    for each in told:
        one_by_one.tell([each])
    assert at_once.told.configs == one_by_one.told.configs == configs
    assert np.array_equal(at_once.told.losses, losses, equal_nan=True)
    assert np.array_equal(one_by_one.told.losses, losses, equal_nan=True)
    assert at_once.ask(2) == one_by_one.ask(2)


def test_observations_read_before_a_tell_stay_unchanged() -> None:
    tuner = optimizer(name="random")
    tuner.tell([Told(1.0, config=config) for config in SPACE.sample(5, seed=0).dicts()])
    before = tuner.told
    first = before.configs.dicts()
    for config in SPACE.sample(100, seed=1).dicts():
        tuner.tell([Told(2.0, config=config)])
    assert len(before) == len(before.configs) == 5
    assert before.configs.dicts() == first
    assert before.losses.tolist() == [[1.0]] * 5
    assert not before.configs.isin(SPACE.sample(100, seed=1)).any()


def test_telling_moves_what_was_told_before_only_now_and_then() -> None:
    """Moving it at every tell made telling n trials one by one cost n² rows."""
    tuner, moved, before = optimizer(name="random"), 0, None
    for config in SPACE.sample(1_000, seed=0).dicts():
        tuner.tell([Told(0.0, config=config)])
        values = tuner.told.configs.values
        moved += before is not None and not np.shares_memory(before, values)
        before = values
    assert moved <= 6  # after 16, 32, ..., 512


def test_losses_and_configurations_keep_their_order() -> None:
    trials = ToldTrials(SPACE, 2)
    for number in range(40):
        configs = SPACE.sample(2, seed=number)
        trials.add(configs, np.array([[number, 0.0], [number, np.nan]]))
    seen = trials.observations()
    assert seen.losses[:, 0].tolist() == np.repeat(np.arange(40.0), 2).tolist()
    assert seen.configs.take([78, 79]) == SPACE.sample(2, seed=39)
    assert seen.is_success.tolist() == [True, False] * 40


def test_many_outcomes_told_at_once_are_those_told_one_by_one() -> None:
    outcomes = [
        Told((1.0, 2.0)),
        Told((float("nan"), 2.0)),
        Told((float("inf"), 2.0)),
        Told((3.0, 4.0), status=Status.FAILED),
        Told((3.0, 4.0), status=Status.TIMEOUT),
    ]
    unusual = [Told([5, 6]), Told((7.0, np.float32(0.5))), Told((8.0, 9.0), status="failed")]  # type: ignore[arg-type]
    for many in (outcomes, outcomes + unusual, []):
        alone = [losses_told(each, ("a", "b")).tolist() for each in many]
        np.testing.assert_array_equal(
            all_losses_told(many, ("a", "b")), np.array(alone).reshape(-1, 2)
        )
    with pytest.raises(UsageError):
        all_losses_told([*outcomes, Told((1.0,))], ("a", "b"))
