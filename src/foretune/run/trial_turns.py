"""The trials that run now: their starts, their reports, and how each call ends.

A trial takes one turn, or several if it is paused and resumed. What a trial reports is stored
before the trial gets an answer.
"""

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from foretune.errors import ForetuneWarning
from foretune.experience import Status
from foretune.experience.curves import Curve, CurvePoint
from foretune.experience.trial import Trial
from foretune.methods.stopping.policy import Decision, StepDecision
from foretune.run.executor import Executor, Outcome
from foretune.run.report_values import read_values
from foretune.run.reports import Report, TrialStart
from foretune.run.study import Study
from foretune.run.study_follower import StudyFollower
from foretune.run.trial_folders import TrialFolders
from foretune.run.trial_results import Measured, ResultError, check_result
from foretune.run.watch import Watch
from foretune.search.optimizer import Optimizer

REPEATED = "repeated_seconds"
"""The note of a trial that began anew after a pause."""
UNHEEDED_SECONDS = 1.0
"""Reports that come so long after a request to stop were not on their way."""


class Retry(Protocol):
    """Repeats an action while the store is away."""

    def __call__(self, action: Callable[[], None], /) -> None:
        """Do the action; again, if the store was away."""


@dataclass(slots=True)
class Turn:
    """One call of a trial's function."""

    trial: Trial
    seconds_before: float = 0.0
    """CPU seconds of earlier turns."""
    decision: StepDecision | None = None
    """Why it is to stop, if it is."""
    runs_to_end: bool = False
    """True if it is not paused again: the search ends with it."""
    last_values: dict[str, float] = field(default_factory=dict)
    decided_at: float = math.inf
    """When it was asked to stop, by the clock of the loop."""
    has_reported: bool = False


class Turns:
    """All turns that an executor takes now."""

    def __init__(
        self,
        study: Study,
        optimizer: Optimizer,
        executor: Executor[dict[str, Any], Any],
        follower: StudyFollower,
        folders: TrialFolders | None,
        watch: Watch,
        retry: Retry,
        clock: Callable[[], float],
    ) -> None:
        self._study, self._optimizer, self._executor = study, optimizer, executor
        self._follower, self._folders, self._watch, self._retry = follower, folders, watch, retry
        self._clock = clock
        self._running: dict[int, Turn] = {}
        """By the key of the executor."""
        self._warned: set[str] = set()

    def __len__(self) -> int:
        return len(self._running)

    @property
    def numbers(self) -> set[int]:
        """The numbers of the trials that run here."""
        return {turn.trial.number for turn in self._running.values()}

    def begin(self, trial: Trial, *, runs_to_end: bool = False) -> None:
        """Start a trial, or go on with one that has reported before."""
        curve = trial.curve
        folder = None if self._folders is None else str(self._folders.path(trial.number))
        start = TrialStart(trial.number, folder, trial.last_step)
        turn = Turn(trial, _seconds_before(trial, curve), runs_to_end=runs_to_end)
        turn.last_values = {} if curve is None else curve.last_values
        turn.has_reported = curve is not None
        key = self._executor.submit(trial.config, start)
        self._running[key] = turn
        self._watch.trial_began(trial)

    def hear(self, key: int, reports: Sequence[Report]) -> bool:
        """Store what a trial reported, and return True if it is to stop."""
        turn = self._running.get(key)
        if turn is None:
            return True  # of an earlier run of this executor
        number = turn.trial.number
        points = [self._point(turn, report) for report in reports]
        self._retry(partial(self._study.report, number, points))
        for point in points:
            self._take_in_point(turn, point)
        return turn.decision is not None

    def take_in(self, outcome: Outcome[Any]) -> None:
        """Store how a turn ended."""
        turn = self._running.get(outcome.key)
        if turn is None:
            return  # of an earlier run of this executor
        seconds = turn.seconds_before + outcome.seconds
        notes = self._notes(turn, outcome)
        if outcome.status is Status.DONE and outcome.facts.saw_stop and turn.decision is not None:
            self._end_early(turn, turn.decision, seconds, notes)
        else:
            self._end(turn, outcome, seconds, notes)
        del self._running[outcome.key]

    def decide_again(self, trial: Trial) -> bool:
        """Decide about a trial that was left behind; False if it does not go on now.

        The process that heard its last report may have died before it could keep the decision.
        """
        if trial.curve is None:
            return True
        decided = self._optimizer.racing.decide(self._follower.ids[trial.number])
        if decided.decision is Decision.CONTINUE:
            return True
        turn = Turn(trial, last_values=trial.curve.last_values)
        self._end_early(turn, decided, _seconds_before(trial, trial.curve), dict(trial.notes))
        return False

    def end_hopeless(self, trial: Trial) -> None:
        """End a paused trial that the policy will never resume."""
        reason = f"{trial.reason}; it went on without it" if trial.reason else "not resumed"
        self._study.end(
            trial.number,
            status=Status.STOPPED,
            values=_finite(trial.values),
            seconds=trial.seconds,
            reason=reason,
            notes=trial.notes,
        )

    # Reports

    def _point(self, turn: Turn, report: Report) -> CurvePoint:
        values, problem = read_values(report, self._study.metrics)
        if problem is not None:
            self._warn(f"report-{problem.field}", problem)
        return CurvePoint(report.step, values, turn.seconds_before + report.seconds)

    def _take_in_point(self, turn: Turn, point: CurvePoint) -> None:
        number = turn.trial.number
        turn.has_reported = True
        turn.last_values |= point.values
        self._watch.trial_reported(number, point.step)
        losses = self._follower.losses(dict(point.values))
        if turn.decision is not None:
            self._follower.record(number, point.step, dict(point.values))
            self._note_unheeded(turn, point.step)
        elif not math.isnan(losses[0]):
            self._decide(turn, point.step, losses)

    def _decide(self, turn: Turn, step: float, losses: tuple[float, ...]) -> None:
        number, racing = turn.trial.number, self._optimizer.racing
        id_ = self._follower.ids[number]
        self._follower.note_step(number, step)
        decided = self._optimizer.tell_step(id_, step, losses)
        if decided.decision is Decision.PAUSE:
            # It still runs. It is paused when that is stored.
            racing.move(id_, Status.RUNNING)
        if decided.decision is Decision.STOP or (
            decided.decision is Decision.PAUSE and not turn.runs_to_end
        ):
            turn.decision, turn.decided_at = decided, self._clock()

    def _note_unheeded(self, turn: Turn, step: float) -> None:
        if self._clock() - turn.decided_at > UNHEEDED_SECONDS:
            self._warn(
                "unheeded",
                ForetuneWarning(
                    f"trial {turn.trial.number} was asked to stop and goes on, at step {step:g} "
                    "now: ask  trial.should_stop()  after each report, and return if it is true",
                    rule="stop-not-heeded",
                    value=turn.trial.number,
                ),
            )

    # Ends

    def _end(
        self, turn: Turn, outcome: Outcome[Any], seconds: float, notes: dict[str, Any]
    ) -> None:
        status, reason, result = outcome.status, outcome.reason, Measured({})
        if status is Status.DONE:
            try:
                result = check_result(outcome.result, self._study.metrics)
            except ResultError as error:
                status, reason = Status.FAILED, str(error)
        if status is Status.DONE and not turn.has_reported and self._optimizer.racing.is_on:
            self._warn(
                "silent",
                ForetuneWarning(
                    "no trial can be stopped early, because a trial ended without a report: call  "
                    "trial.report(step, value)  as it goes, or yield  step, value",
                    rule="no-report",
                    value=turn.trial.number,
                ),
            )
        self._study.end(
            turn.trial.number,
            status=status,
            values=result.values,
            seconds=seconds,
            reason=reason,
            notes={**notes, **result.notes},
        )

    def _end_early(
        self, turn: Turn, decided: StepDecision, seconds: float, notes: dict[str, Any]
    ) -> None:
        number, reason = turn.trial.number, decided.reason
        if decided.decision is Decision.PAUSE:
            self._study.pause(number, seconds=seconds, reason=reason, notes=notes)
            return
        self._study.end(
            number,
            status=Status.STOPPED,
            values=_finite(turn.last_values),
            seconds=seconds,
            reason=reason,
            notes=notes,
        )

    def _notes(self, turn: Turn, outcome: Outcome[Any]) -> dict[str, Any]:
        """Return the notes of a trial, with what it spent on steps that it had taken before."""
        notes = {REPEATED: turn.trial.notes[REPEATED]} if REPEATED in turn.trial.notes else {}
        if outcome.facts.repeated_reports:
            repeated = outcome.facts.repeated_seconds
            notes[REPEATED] = notes.get(REPEATED, 0.0) + repeated
            self._warn(
                "anew",
                ForetuneWarning(
                    f"trial {turn.trial.number} was to go on after step "
                    f"{turn.trial.last_step or 0:g}, and took {repeated:.3g} s of CPU time for "
                    "steps it had taken before: keep a checkpoint in  trial.folder  and go on "
                    "from  trial.resumed_from",
                    rule="begun-anew",
                    value=turn.trial.number,
                ),
            )
        return notes

    def _warn(self, once: str, warning: ForetuneWarning) -> None:
        """Warn of each kind of problem once in a run."""
        if once not in self._warned:
            self._warned.add(once)
            warnings.warn(warning, stacklevel=3)


def _seconds_before(trial: Trial, curve: Curve | None) -> float:
    """Return the CPU seconds of earlier turns; those after the last report may be unknown."""
    known = [0.0 if math.isnan(trial.seconds) else trial.seconds]
    if curve is not None and curve.seconds is not None:
        known.append(curve.seconds[-1])
    return max(known)


def _finite(values: Any) -> dict[str, float]:
    return {name: value for name, value in values.items() if math.isfinite(value)}
