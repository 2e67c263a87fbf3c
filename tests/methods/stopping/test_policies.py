"""Stopping policies on races whose outcome is known, and against numbers of their papers."""

import math
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretune.experience import Status
from foretune.methods.stopping import (
    POLICIES,
    AsyncHalving,
    Decision,
    MedianStopping,
    Race,
    StepRange,
    StoppingPolicy,
    hyperband,
    make_policy,
    successive_halving,
)
from tests.refusals import refuses

CONTINUE, PAUSE, STOP = Decision.CONTINUE, Decision.PAUSE, Decision.STOP


def run_race(
    policy: StoppingPolicy, losses: list[float], last: int, *, starts: int | None = None
) -> Race:
    """One worker runs trials step by step; trial i has the loss `losses[i]` at every step."""
    race, waiting = Race(), list(range(len(losses)))
    while True:
        trial = policy.resume(race)
        if trial is not None:
            race.move(trial, Status.RUNNING)
        elif waiting and (starts is None or len(race) < starts):
            trial = waiting.pop(0)
            race.start(trial)
        else:
            return race
        while race[trial].last_step < last:
            race.report(trial, race[trial].last_step + 1, losses[trial])
            decision = policy.decide(race, trial).decision
            if decision is not CONTINUE:
                race.move(trial, Status.PAUSED if decision is PAUSE else Status.STOPPED)
                break
        else:
            race.move(trial, Status.DONE)


def steps_of(race: Race) -> list[float]:
    return [entry.last_step for _, entry in race]


def test_levels_grow_by_eta_below_the_last_step() -> None:
    assert StepRange(1, 81, 3).levels == (1, 3, 9, 27)
    assert StepRange(2, 52, 3).levels == (2, 6, 18)
    assert StepRange(5, 5).levels == ()


def test_hyperband_has_the_brackets_of_table_1() -> None:
    # Li et al. 2018, table 1: R = 81 and eta = 3.
    brackets = hyperband(StepRange(1, 81, 3)).brackets
    assert [each.size for each in brackets] == [81, 34, 15, 8, 5]
    assert [each.first_level for each in brackets] == [0, 1, 2, 3, 4]


@cache
def steps_of_table_1() -> list[float]:
    policy = hyperband(StepRange(1, 81, 3))
    size = sum(each.size for each in policy.brackets)
    return steps_of(run_race(policy, [math.sin(i) for i in range(size)], 81))


@pytest.mark.parametrize(
    ("bracket", "counts"),
    [
        # How many trials of each bracket reach 1, 3, 9, 27 and 81 steps (table 1 again).
        (0, [81, 27, 9, 3, 1]),
        (1, [34, 34, 11, 3, 1]),
        (2, [15, 15, 15, 5, 1]),
        (3, [8, 8, 8, 8, 2]),
        (4, [5, 5, 5, 5, 5]),
    ],
)
def test_as_many_trials_reach_each_level_as_in_the_paper(bracket: int, counts: list[int]) -> None:
    sizes = [each.size for each in hyperband(StepRange(1, 81, 3)).brackets]
    begin = sum(sizes[:bracket])
    steps = steps_of_table_1()[begin : begin + sizes[bracket]]
    assert [sum(step >= level for step in steps) for level in (1, 3, 9, 27, 81)] == counts


def test_successive_halving_keeps_the_best() -> None:
    policy = successive_halving(StepRange(1, 9, 3))
    race = run_race(policy, [5.0, 3.0, 8.0, 1.0, 9.0, 7.0, 2.0, 6.0, 4.0], 9)
    assert steps_of(race) == [1, 3, 1, 9, 1, 1, 3, 1, 1]
    assert policy.hopeless(race) == {0, 1, 2, 4, 5, 6, 7, 8}


def test_failed_and_diverged_trials_do_not_hold_up_their_bracket() -> None:
    policy = successive_halving(StepRange(1, 3, 3))
    race = Race()
    for trial in range(3):
        race.start(trial)
    race.move(0, Status.FAILED)
    race.report(1, 1, math.nan)
    race.move(1, Status.PAUSED)
    assert policy.resume(race) is None
    race.report(2, 1, 0.5)
    assert policy.decide(race, 2).decision is CONTINUE


def test_asha_promotes_as_soon_as_a_third_is_known() -> None:
    policy = AsyncHalving(StepRange(1, 9, 3))
    race = Race()
    for trial, loss in enumerate([0.3, 0.1, 0.2]):
        race.start(trial)
        race.report(trial, 1, loss)
        verdict = policy.decide(race, trial)
        assert verdict.decision is PAUSE
        race.move(trial, Status.PAUSED)
    # Of three, one goes on: the second. It is then at the next level alone, and waits there.
    assert policy.resume(race) == 1
    race.move(1, Status.RUNNING)
    assert policy.resume(race) is None
    race.report(1, 2, 0.1)
    assert policy.decide(race, 1).decision is CONTINUE
    race.report(1, 3, 0.1)
    assert policy.decide(race, 1).decision is PAUSE


def test_asha_continues_at_once_what_is_among_the_best() -> None:
    policy = AsyncHalving(StepRange(1, 9, 3))
    race = Race()
    for trial, loss in enumerate([0.3, 0.2, 0.1]):
        race.start(trial)
        race.report(trial, 1, loss)
    assert policy.decide(race, 2).decision is CONTINUE
    assert policy.decide(race, 1).decision is PAUSE


@settings(max_examples=30)
@given(st.lists(st.floats(0, 1), min_size=9, max_size=40, unique=True))
def test_asha_promotes_a_third_of_each_level_or_more(losses: list[float]) -> None:
    # More, because a trial that was among the best may be overtaken after it went on.
    race = run_race(AsyncHalving(StepRange(1, 27, 3)), losses, 27)
    steps = steps_of(race)
    for level, above in ((1, 3), (3, 9), (9, 27)):
        reached = sum(step >= level for step in steps)
        assert reached // 3 <= sum(step >= above for step in steps) < max(reached, 1)


def test_asha_with_one_worker_finds_the_best_of_many() -> None:
    losses = [abs(math.sin(7 * i)) for i in range(81)]
    race = run_race(AsyncHalving(StepRange(1, 81, 3)), losses, 81)
    done = [trial for trial, entry in race if entry.status is Status.DONE]
    assert losses.index(min(losses)) in done
    assert sum(steps_of(race)) < 81 * 81 / 5


def test_median_stopping_by_hand() -> None:
    policy = MedianStopping(StepRange(2, 10), fewest_others=2)
    race = Race()
    for trial, curve in enumerate([[4, 2], [3, 1], [5, 5]]):
        race.start(trial)
        for step, loss in enumerate(curve, 1):
            race.report(trial, step, loss)
    # The averages of the others at step 2 are 3 and 2; their median is 2.5.
    assert policy.decide(race, 2).decision is STOP
    assert "2.5" in policy.decide(race, 2).reason
    # The best of the first is 2; the others average 2 and 5: median 3.5.
    assert policy.decide(race, 0).decision is CONTINUE


def test_median_stopping_waits_for_the_first_step_and_for_others() -> None:
    race = Race()
    for trial in range(3):
        race.start(trial)
        race.report(trial, 1, float(trial))
    assert MedianStopping(StepRange(2, 9), fewest_others=1).decide(race, 2).decision is CONTINUE
    assert MedianStopping(StepRange(1, 9), fewest_others=3).decide(race, 2).decision is CONTINUE
    assert MedianStopping(StepRange(1, 9), fewest_others=2).decide(race, 2).decision is STOP


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_a_policy_decides_by_the_race_alone(name: str) -> None:
    steps = StepRange(1, 9, 3)
    losses = [abs(math.cos(i)) for i in range(30)]
    first = run_race(make_policy(name, steps), losses, 9)
    again = run_race(make_policy(name, steps), losses, 9)
    assert steps_of(first) == steps_of(again)
    if name == "none":
        assert set(steps_of(first)) == {9}


@pytest.mark.parametrize("name", ["asha", "hyperband", "halving", "median"])
def test_nothing_is_decided_before_the_step_that_is_announced(name: str) -> None:
    policy, race = make_policy(name, StepRange(2, 20, 3)), Race()
    for trial in range(12):
        race.start(trial)
        while race[trial].last_step < 20:
            announced = policy.next_decision(race, trial)
            step = race[trial].last_step + 1
            race.report(trial, step, float(trial))
            decision = policy.decide(race, trial).decision
            assert decision is CONTINUE or step >= announced
            if decision is not CONTINUE:
                race.move(trial, Status.PAUSED if decision is PAUSE else Status.STOPPED)
                break


def test_a_trial_that_always_diverges_is_never_promoted() -> None:
    losses = [math.nan] * 9 + [0.5] * 3
    race = run_race(AsyncHalving(StepRange(1, 9, 3)), losses, 9)
    assert max(steps_of(race)[:9]) == 1


def test_meaningless_arguments_are_refused() -> None:
    with refuses("step-range"):
        StepRange(0, 9)
    with refuses("step-range"):
        StepRange(10, 9)
    with refuses("eta", value=1.0):
        StepRange(1, 9, 1.0)
    with refuses("unknown-policy", value="asah"):
        make_policy("asah", StepRange(1, 9))
    race = Race()
    race.start(0)
    with refuses("trial-started-twice", value=0):
        race.start(0)
    race.report(0, 2, 0.1)
    with refuses("steps-ascend", value=2):
        race.report(0, 2, 0.1)
