"""Replay on curves: what is charged, what is regretted, and in which order results arrive."""

import math

import numpy as np
import pytest

from foretune.experience import Direction, Experience, Metric
from foretune.experience.curves import build_curves
from foretune.methods.contracts import Target
from foretune.methods.stopping import StepRange, StoppingPolicy, make_policy
from foretune.search import Optimizer, method
from foretune.space import Space
from foretune_lab.bench.curve_replay import (
    CurveCosts,
    CurveReplay,
    CurveRun,
    CurveTask,
    curve_task,
    play_on_curves,
    regret_at,
)
from tests.refusals import refuses

SPACE = Space.of({"x": (0.0, 1.0)})
X = np.linspace(0.0, 1.0, 27)
LAST = 9


def accuracy(x: float, step: float) -> float:
    return (1 - (x - 0.7) ** 2) * (1 - 0.5 / step)


@pytest.fixture
def past() -> Experience:
    """Each configuration takes 2 seconds a step; the one at 0 diverges after two steps."""
    steps = [np.arange(1.0, LAST + 1)] * len(X)
    values = [[accuracy(x, step) for step in range(1, LAST + 1)] for x in X]
    values[0][2:] = [math.nan] * (LAST - 2)
    curves = build_curves(
        [LAST] * len(X),
        np.concatenate(steps),
        np.concatenate(values),
        np.concatenate([2 * of for of in steps]),
    )
    return Experience.build(
        SPACE,
        [Metric("accuracy", Direction.MAX)],
        ["t"],
        np.zeros(len(X), dtype=int),
        SPACE.from_columns({"x": X.tolist()}, len(X)),
        np.arange(len(X)),
        [of[-1] for of in values],
        curves=curves,
    )


def optimizer(task: CurveTask, policy: StoppingPolicy | None = None) -> Optimizer:
    chosen = method("random")
    target = Target(SPACE, ("accuracy",), task.configs)
    return Optimizer(target, chosen, chosen.learn(None, seed=0), seed=1, policy=policy)


def play(task: CurveTask, costs: CurveCosts, policy: StoppingPolicy | None = None) -> CurveRun:
    return play_on_curves(lambda: optimizer(task, policy), task, costs, "m", 0)


def test_a_task_knows_its_best_its_median_and_what_a_complete_run_costs(past: Experience) -> None:
    task = curve_task(past, "t")
    ends = [-accuracy(x, LAST) for x in X[1:]]
    assert task.best == min(ends)
    assert task.median == np.median([*ends, max(ends)])
    assert task.complete_cost == LAST
    assert curve_task(past, "t", "seconds").complete_cost == 2 * LAST
    assert task.regret(task.best) == 0
    assert task.regret(task.median) == 1
    assert task.regret(math.inf) == 1


@pytest.mark.parametrize(
    ("every", "levels"),
    [(1.0, range(1, 10)), (3.0, [3, 6, 9]), (3.5, [4, 7, 9]), (2.25, [3, 5, 7, 9]), (9.0, [9])],
)
def test_levels_are_recorded_steps_at_or_after_multiples(
    past: Experience, every: float, levels: list[int]
) -> None:
    assert curve_task(past, "t").levels(every) == tuple(levels)


def test_complete_runs_cost_one_each(past: Experience) -> None:
    run = play(curve_task(past, "t"), CurveCosts(4))
    assert run.cost == [1, 2, 3, 4]
    assert run.best == np.fmin.accumulate(run.best).tolist()


def test_a_policy_spends_less_on_poor_trials(past: Experience) -> None:
    task = curve_task(past, "t")
    run = play(task, CurveCosts(4), make_policy("asha", StepRange(1, LAST, 3)))
    assert len(run.cost) > 10
    assert run.cost[0] == 1 / LAST
    assert run.cost[-1] >= 4
    assert run.cost == sorted(run.cost)


def test_going_on_with_a_paused_trial_has_its_price(past: Experience) -> None:
    task, policy = curve_task(past, "t"), make_policy("asha", StepRange(1, LAST, 3))
    free = play(task, CurveCosts(6), policy)
    dear = play(task, CurveCosts(6, resume_cost=2.0), policy)
    first = next(at for at, cost in enumerate(dear.cost) if cost != free.cost[at])
    assert dear.cost[first] == pytest.approx(free.cost[first] + 2 / LAST)


def test_equal_inputs_give_equal_runs_for_several_workers(past: Experience) -> None:
    task, policy = curve_task(past, "t"), make_policy("asha", StepRange(1, LAST, 3))
    runs = [play(task, CurveCosts(5, workers=4), policy) for _ in range(2)]
    assert runs[0].cost == runs[1].cost
    assert runs[0].value == runs[1].value


def test_results_arrive_in_the_order_of_finishing(past: Experience) -> None:
    task = curve_task(past, "t", "seconds")
    tuner = optimizer(task, make_policy("asha", StepRange(1, LAST, 3)))
    replay = CurveReplay(
        tuner, task, CurveCosts(5, workers=3, unit="seconds"), CurveRun("t", "m", 0)
    )
    clocks = []
    report = replay._report

    def watched(event: object) -> None:
        clocks.append(event.clock)  # type: ignore[attr-defined]
        report(event)  # type: ignore[arg-type]

    replay._report = watched  # type: ignore[method-assign, assignment]
    replay.play()
    assert clocks == sorted(clocks)


def test_a_diverged_curve_is_no_value(past: Experience) -> None:
    task = curve_task(past, "t")
    run = play(task, CurveCosts(27))
    assert sum(math.isnan(value) for value in run.value) == 1
    assert run.best[-1] == task.best


def test_regret_at_budgets() -> None:
    run = CurveRun("t", "m", 0, cost=[0.5, 1.0, 2.5], regret=[0.8, 0.4, 0.1])
    assert regret_at(run, [0.1, 0.5, 1.0, 2.0, 5.0]).tolist() == [1.0, 0.8, 0.4, 0.4, 0.1]


def test_runs_without_a_cost_are_refused(past: Experience) -> None:
    with refuses("curve-costs"):
        CurveCosts(0)
    with refuses("curve-unit"):
        CurveCosts(1, unit="hours")
    with refuses("curve-unit"):
        CurveCosts(1, charge_thinking=True)
    bare = Experience.build(
        SPACE, past.metrics, ["t"], [0], SPACE.encode([{"x": 0.5}]), [0], [[0.5]]
    )
    with refuses("no-curves", field="task", value="t"):
        curve_task(bare, "t")
