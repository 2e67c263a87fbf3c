"""Playing one optimiser on recorded learning curves, and charging every step.

Workers share one simulated clock. A trial takes as long as its steps cost, so results arrive in
the order in which trials reach their steps, and equal inputs give equal runs.
"""

import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from foretune.errors import ExhaustedError, UsageError
from foretune.experience import Experience, Status
from foretune.methods import Decision, StepDecision
from foretune.numerics import Floats
from foretune.search import Suggestion, Told
from foretune.space import Encoded
from foretune_lab.bench.curve_progress import (
    BestLoss,
    CoveredVolume,
    CurveProgress,
    FrontScale,
    LossScale,
)

STEPS, SECONDS = "steps", "seconds"
ROW = ["task", "method", "seed", "cost", "value", "best", "regret", "suggest_seconds"]
SPENT = ["steps", "seconds", "clock"]
"""Further columns, which older results do not have: other measures of the cost so far."""


@dataclass(frozen=True, slots=True)
class CurveCosts:
    """The budget of a run on curves, and the cost of its steps."""

    budget: float
    """The budget in complete runs: the cost of all steps of a trial, or of the median trial in
    seconds."""
    workers: int = 1
    unit: str = STEPS
    """`steps`, or recorded `seconds`."""
    resume_cost: float = 0.0
    """The number of steps (or seconds) that it costs to go on with a paused trial."""
    charge_thinking: bool = False
    """Whether the seconds of a suggestion count; only possible with seconds."""

    def __post_init__(self) -> None:
        if not (self.budget > 0 and self.workers >= 1 and self.resume_cost >= 0):
            raise UsageError(
                f"a replay on curves needs a positive budget, a worker and no negative cost, but "
                f"got {self}: choose others",
                rule="curve-costs",
                field="budget",
                value=self.budget,
            )
        if self.unit not in (STEPS, SECONDS) or (self.charge_thinking and self.unit != SECONDS):
            raise UsageError(
                f"steps are charged as '{STEPS}' or '{SECONDS}', and thinking as '{SECONDS}' only, "
                f"but got '{self.unit}': choose one",
                rule="curve-unit",
                field="unit",
                value=self.unit,
            )


@dataclass(frozen=True, slots=True)
class RecordedCurve:
    """The curve of one configuration of a task."""

    steps: Floats
    losses: Floats
    """One loss for each step, minimised; NaN if the trial diverged. Policies decide by it."""
    clock: Floats
    """The cost of the trial up to each step."""
    seconds: Floats
    """The recorded seconds; NaN if they are not known."""
    objectives: Floats
    """(steps, objectives), all losses; the first column is `losses`."""

    def spent(self, column: Floats, point: int) -> float:
        """Return the cost that a point has added to one of the columns above."""
        return float(column[point] - (column[point - 1] if point else 0.0))


@dataclass(frozen=True, slots=True)
class CurveTask:
    """All configurations of one task that have a curve."""

    name: str
    configs: Encoded
    curves: tuple[RecordedCurve, ...]
    best: float
    """The lowest loss at the end of a curve."""
    median: float
    """The median of the losses at the end; diverged ones count as the worst."""
    complete_cost: float
    """The cost of one complete run: the median over the curves that reach the largest step."""
    first_step: float
    """The smallest step above 0."""
    last_step: float
    """The largest step."""
    front: FrontScale | None = None
    """The losses at the ends of all curves, if there are several objectives."""

    def start_progress(self) -> CurveProgress:
        """Return the progress of a run that begins."""
        if self.front is not None:
            return CoveredVolume(self.front)
        return BestLoss(LossScale(self.best, self.median))

    def levels(self, every: float) -> tuple[float, ...]:
        """Return the recorded steps at, or first after, the multiples of a number of steps."""
        steps = max((curve.steps for curve in self.curves), key=len)
        wanted = np.arange(1, math.ceil(self.last_step / every - 1e-9) + 1) * every
        places = np.searchsorted(steps, np.minimum(wanted, self.last_step) * (1 - 1e-9))
        return tuple(np.unique(steps[places]).tolist())

    def regret(self, loss: float) -> float:
        """Return 0 for the best loss at the end of a curve, 1 for the median or a worse one."""
        return LossScale(self.best, self.median).regret(loss)


def curve_task(experience: Experience, name: str, unit: str = STEPS) -> CurveTask:
    """Return the configurations of a task with their curves; of two runs the longer one counts."""
    records = experience.task(name)
    curves = records.curves
    if curves is None or not curves.lengths.any():
        raise UsageError(
            f"a replay on curves needs learning curves, but task '{name}' has none: import them "
            "(foretune import table --step), or leave out --budget",
            rule="no-curves",
            field="task",
            value=name,
        )
    signs = np.array([metric.sign for metric in experience.metrics])
    chosen: dict[int, int] = {}
    for row in np.argsort(curves.lengths, kind="stable"):
        if curves.lengths[row]:
            chosen[int(records.config_index[row])] = int(row)
    rows = [chosen[config] for config in sorted(chosen)]
    found = []
    for row in rows:
        points = curves.points(row)
        steps, seconds = curves.steps[points], curves.seconds[points].astype(float)
        clock = steps if unit == STEPS else np.maximum.accumulate(seconds)
        if not np.isfinite(clock).all():
            raise UsageError(
                f"seconds are charged where all points have them, but those of task '{name}' have "
                "none: charge steps",
                rule="no-seconds",
                field="task",
                value=name,
            )
        losses = signs * curves.values[points]
        found.append(RecordedCurve(steps, losses[:, 0], clock, seconds, losses))
    last = max(curve.steps[-1] for curve in found)
    ends = np.array([curve.losses[-1] for curve in found])
    worst = np.nanmax(ends)
    complete = [curve.clock[-1] for curve in found if curve.steps[-1] == last]
    return CurveTask(
        name,
        experience.configs.take(sorted(chosen)),
        tuple(found),
        float(np.nanmin(ends)),
        float(np.median(np.where(np.isnan(ends), worst, ends))),
        float(np.median(complete)),
        float(min(curve.steps[curve.steps > 0].min(initial=last) for curve in found)),
        float(last),
        None if len(signs) == 1 else FrontScale.of(np.array([c.objectives[-1] for c in found])),
    )


@dataclass(slots=True)
class CurveRun:
    """The run of one method with one seed on one task: a row for each of its decisions."""

    task: str
    method: str
    seed: int
    cost: list[float] = field(default_factory=list)
    """The cost when the decision had been carried out, in complete runs."""
    value: list[float] = field(default_factory=list)
    """The loss that was reached, of the first objective."""
    best: list[float] = field(default_factory=list)
    """See `CurveProgress.best`."""
    regret: list[float] = field(default_factory=list)
    suggest_seconds: list[float] = field(default_factory=list)
    steps: list[float] = field(default_factory=list)
    """The number of all steps that were paid for so far."""
    seconds: list[float] = field(default_factory=list)
    """The recorded seconds of these steps; NaN if they are not known."""
    clock: list[float] = field(default_factory=list)
    """The time on the clock that the workers share, in complete runs."""

    def table(self) -> pa.Table:
        """Return one row for each decision, with the columns `ROW` and `SPENT`."""
        n = len(self.cost)
        return pa.table(
            {
                "task": [self.task] * n,
                "method": [self.method] * n,
                "seed": np.full(n, self.seed, dtype=np.int64),
                "cost": self.cost,
                "value": self.value,
                "best": self.best,
                "regret": self.regret,
                "suggest_seconds": self.suggest_seconds,
                "steps": self.steps,
                "seconds": self.seconds,
                "clock": self.clock,
            }
        )


@dataclass(order=True, slots=True)
class _Event:
    """A trial reaches a step."""

    clock: float
    order: int
    suggestion: Suggestion = field(compare=False)
    point: int = field(compare=False)
    thought: float = field(compare=False)
    """The seconds of the decision that the trial carries out."""


class CurveTuner(Protocol):
    """What a replay calls: an `Optimizer`, or a baseline with the same three methods."""

    def ask(self) -> list[Suggestion]:
        """Suggest a new configuration, or a paused one that goes on."""

    def tell_step(self, id_: int, step: float, losses: Any) -> StepDecision:
        """Take in a report, and decide whether the trial goes on.

        losses: a number, or a tuple of them if there are several objectives.
        """

    def tell(self, outcomes: list[Told]) -> None:
        """Take in how trials ended."""


class CurveReplay:
    """One run: workers ask, trials report, and the clock goes on."""

    def __init__(
        self, optimizer: CurveTuner, task: CurveTask, costs: CurveCosts, run: CurveRun
    ) -> None:
        self._optimizer, self._task, self._costs, self._run = optimizer, task, costs, run
        self._events: list[_Event] = []
        self._order = 0
        self._members: dict[int, int] = {}
        """{id: place in the task}, because a resumed suggestion does not say it again."""
        self._reached: dict[int, int] = {}
        """{id of a paused trial: its last point}"""
        self._idle = costs.workers
        self._spent = self._steps = self._seconds = 0.0
        self._progress = task.start_progress()

    def play(self) -> CurveRun:
        """Spend the budget."""
        self._begin_trials(0.0)
        while self._events:
            event = heapq.heappop(self._events)
            self._report(event)
            self._begin_trials(event.clock)
        return self._run

    def _begin_trials(self, now: float) -> None:
        """Give idle workers trials. A worker without one is asked again after the next report."""
        while self._idle and self._begin(now):
            self._idle -= 1

    def _begin(self, now: float) -> bool:
        """Begin a trial, and return whether there was one and the budget is not spent."""
        if self._spent >= self._costs.budget * self._task.complete_cost:
            return False
        start = perf_counter()
        try:
            suggestion = self._optimizer.ask()[0]
        except ExhaustedError:
            return False
        thought = perf_counter() - start
        wait = thought if self._costs.charge_thinking else 0.0
        if suggestion.resumed_from is None:
            point = 0
        else:
            point = self._reached.pop(suggestion.id) + 1
            wait += self._costs.resume_cost
        self._spent += wait
        self._schedule(now + wait, suggestion, point, thought)
        return True

    def _schedule(self, now: float, suggestion: Suggestion, point: int, thought: float) -> None:
        curve = self._curve(suggestion)
        cost = curve.spent(curve.clock, point)
        self._spent += cost
        self._steps += curve.spent(curve.steps, point)
        self._seconds += curve.spent(curve.seconds, point)
        self._order += 1
        heapq.heappush(self._events, _Event(now + cost, self._order, suggestion, point, thought))

    def _curve(self, suggestion: Suggestion) -> RecordedCurve:
        if suggestion.pool_index is not None:
            self._members[suggestion.id] = suggestion.pool_index
        return self._task.curves[self._members[suggestion.id]]

    def _report(self, event: _Event) -> None:
        """Take in a step, and go on with the trial or free its worker."""
        suggestion, curve = event.suggestion, self._curve(event.suggestion)
        every = curve.objectives[event.point].tolist()
        losses = every[0] if len(every) == 1 else tuple(every)
        self._progress.take(curve.objectives[event.point])
        is_last = event.point == len(curve.steps) - 1
        step = float(curve.steps[event.point])
        decided = self._optimizer.tell_step(suggestion.id, step, losses)
        if is_last:
            status = Status.DONE if all(map(math.isfinite, every)) else Status.FAILED
            self._optimizer.tell([Told(losses, id=suggestion.id, status=status)])
        elif decided.decision is Decision.CONTINUE:
            self._schedule(event.clock, suggestion, event.point + 1, event.thought)
            return
        elif decided.decision is Decision.PAUSE:
            self._reached[suggestion.id] = event.point
        else:
            self._optimizer.tell([Told(losses, id=suggestion.id, status=Status.STOPPED)])
        self._write(every[0], event)
        self._idle += 1

    def _write(self, loss: float, event: _Event) -> None:
        run, complete = self._run, self._task.complete_cost
        run.cost.append(self._spent / complete)
        run.value.append(loss)
        run.best.append(self._progress.best)
        run.regret.append(self._progress.regret)
        run.suggest_seconds.append(event.thought)
        run.steps.append(self._steps)
        run.seconds.append(self._seconds)
        run.clock.append(event.clock / complete)


def play_on_curves(
    make: Callable[[], CurveTuner], task: CurveTask, costs: CurveCosts, name: str, seed: int
) -> CurveRun:
    """Play one optimiser on one task until the budget is spent."""
    return CurveReplay(make(), task, costs, CurveRun(task.name, name, seed)).play()


def regret_at(run: Any, budgets: Sequence[float] | Floats, against: str = "cost") -> Floats:
    """Return (number of budgets,), the regret at each cost; 1 before the first trial.

    run: a frame or a `CurveRun` with `regret` and the columns of cost, in the order of decisions.
    against: the column of the cost.
    """
    spent = np.asarray(getattr(run, against), dtype=float)
    reached = np.minimum.accumulate([1.0, *np.asarray(run.regret, dtype=float)])
    affordable = np.searchsorted(spent, np.asarray(budgets) * (1 + 1e-9), side="right")
    found: Floats = reached[affordable]
    return found
