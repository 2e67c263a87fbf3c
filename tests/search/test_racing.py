"""An optimiser whose trials report steps: the policy decides, and nothing is lost on the way."""

import numpy as np
import pytest

from foretune.experience import Status
from foretune.methods.contracts import Target
from foretune.methods.stopping import (
    Decision,
    StepRange,
    StoppingPolicy,
    make_policy,
)
from foretune.search import Optimizer, Suggestion, Told, method
from foretune.space import Space
from tests.refusals import refuses

SPACE = Space.of({"x": (0.0, 1.0), "y": (0.0, 1.0)})


def optimizer(
    policy: StoppingPolicy, name: str = "random", objectives: tuple[str, ...] = ("loss",)
) -> Optimizer:
    chosen = method(name)
    prior = chosen.learn(None, seed=0)
    return Optimizer(Target(SPACE, objectives), chosen, prior, seed=3, policy=policy)


def loss_at(config: dict[str, float], step: float) -> float:
    return (config["x"] - 0.3) ** 2 + (config["y"] - 0.6) ** 2 + 1 / step


def run(tuner: Optimizer, cost: int, last: int = 9) -> dict[int, float]:
    """One worker spends `cost` steps; returns how far each trial came."""
    reached: dict[int, float] = {}
    while cost > 0:
        suggestion = tuner.ask()[0]
        step = suggestion.resumed_from or 0.0
        while step < last:
            step, cost = step + 1, cost - 1
            loss = loss_at(suggestion.config, step)
            decided = tuner.tell_step(suggestion.id, step, loss)
            if decided.decision is not Decision.CONTINUE:
                break
        reached[suggestion.id] = step
        if step == last:
            tuner.tell([Told(loss, id=suggestion.id)])
        elif tuner.should_stop(suggestion.id) and decided.decision is Decision.STOP:
            tuner.tell([Told(loss, id=suggestion.id, status=Status.STOPPED)])
    return reached


@pytest.mark.parametrize("name", ["random", "gp"])
def test_paused_trials_are_suggested_again_under_their_id(name: str) -> None:
    tuner = optimizer(make_policy("asha", StepRange(1, 9, 3)), name)
    reached = run(tuner, 60)
    assert set(reached.values()) == {1.0, 3.0, 9.0}
    best = min(reached, key=lambda id_: -reached[id_])
    assert best not in tuner.pending
    paused = [id_ for id_, step in reached.items() if step in (1.0, 3.0)]
    assert set(paused) == set(tuner.pending)
    assert all(tuner.should_stop(id_) for id_ in paused)


def test_a_resumed_trial_names_its_origin() -> None:
    tuner = optimizer(make_policy("asha", StepRange(2, 8, 2)))
    for _ in range(2):
        suggestion = tuner.ask()[0]
        tuner.tell_step(suggestion.id, 1, 0.5)
        decided = tuner.tell_step(suggestion.id, 2, 0.5 + suggestion.id)
        assert decided.decision is Decision.PAUSE
        assert decided.reason
    again = tuner.ask()[0]
    assert (again.id, again.resumed_from, again.reason) == (0, 2.0, "resumed")
    assert tuner.ask()[0].resumed_from is None


def test_a_stopped_trial_counts_with_its_last_loss() -> None:
    tuner = optimizer(make_policy("median", StepRange(1, 9)))
    reached = run(tuner, 200)
    stopped = [id_ for id_, step in reached.items() if step < 9]
    assert stopped
    assert np.isfinite(tuner.told.losses).all()
    assert len(tuner.told) == len(reached) - len(tuner.pending)


def test_without_a_policy_every_trial_runs_to_its_end() -> None:
    tuner = optimizer(StoppingPolicy())
    assert set(run(tuner, 90).values()) == {9.0}
    assert not tuner.pending


def test_a_pending_trial_takes_its_last_report_as_its_loss() -> None:
    tuner = optimizer(make_policy("asha", StepRange(1, 9, 3)), "gp")
    for x in (0.1, 0.5, 0.9):
        tuner.tell([Told((x - 0.3) ** 2, config={"x": x, "y": 0.5})])
    waiting = [tuner.ask()[0] for _ in range(2)]
    tuner.tell_step(waiting[0].id, 1, 7.25)
    believed = tuner._racing.reported_losses(tuner._pending.ids)
    assert believed[0] == 7.25
    assert np.isnan(believed[1])
    tuner.ask()


def test_several_objectives_decide_by_the_first() -> None:
    tuner = optimizer(make_policy("asha", StepRange(1, 9, 3)), objectives=("loss", "size"))
    suggestion = tuner.ask()[0]
    assert tuner.tell_step(suggestion.id, 1, (0.5, 3.0)).decision is Decision.PAUSE
    with refuses("losses-of-report"):
        tuner.tell_step(suggestion.id, 2, 0.5)


def test_reports_of_strangers_and_of_steps_that_go_backwards_are_refused() -> None:
    tuner = optimizer(StoppingPolicy())
    with refuses("unknown-trial", value=5):
        tuner.tell_step(5, 1, 0.1)
    suggestion = tuner.ask()[0]
    tuner.tell_step(suggestion.id, 2, 0.1)
    with refuses("steps-ascend", value=2.0):
        tuner.tell_step(suggestion.id, 2, 0.1)


def test_a_diverged_trial_is_never_resumed() -> None:
    tuner = optimizer(make_policy("asha", StepRange(1, 9, 3)))
    for _ in range(9):
        suggestion = tuner.ask()[0]
        assert suggestion.resumed_from is None
        assert tuner.tell_step(suggestion.id, 1, float("nan")).decision is Decision.PAUSE


def test_suggestions_that_are_withdrawn_leave_their_place_in_the_brackets() -> None:
    tuner = optimizer(make_policy("hyperband", StepRange(1, 9, 3)))
    first = tuner.ask()[0]
    tuner.withdraw([first.id])
    second = tuner.ask()[0]
    assert tuner._racing.race[second.id].number == 0


def test_trials_of_another_process_join_the_race() -> None:
    tuner = optimizer(make_policy("asha", StepRange(1, 9, 3)))
    tuner.assume_pending([Suggestion(-1, {"x": 0.5, "y": 0.5}, "random")])
    assert tuner.tell_step(-1, 1, 0.5).decision is Decision.PAUSE
