"""The trial that runs, as its function sees it: it reports steps and asks whether to stop."""

import inspect
import math
import os
import shutil
import tempfile
import threading
import warnings
from collections.abc import Callable, Generator, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, TypeAlias

from foretune.errors import ForetuneWarning
from foretune.run.call import Job, Result
from foretune.run.reports import CallFacts, Report, ReportError, ReportLine, TrialStart
from foretune.run.trial_results import MOST_ENTRIES, as_float, show_briefly

__all__ = ["MOST_REPORTS", "RunningTrial", "TrialFunction", "call_with_trial"]

MOST_REPORTS = 10_000
"""How many reports of one trial are kept."""
ALL_REPORTS = MOST_REPORTS // 2
"""Up to here all reports are kept. Later ones are thinned."""
SAME_GAP = MOST_REPORTS // 20
"""After so many more the gap between two kept reports doubles: a million reports fit."""


class RunningTrial:
    """The trial that runs, as its function sees it: the second argument of `train(config, trial)`.

    Example:
        >>> def train(config, trial):
        ...     for epoch in range(1, 101):
        ...         loss = train_one_epoch(config)
        ...         trial.report(epoch, loss)
        ...         if trial.should_stop():
        ...             break
        ...     return loss
    """

    def __init__(self, start: TrialStart, line: ReportLine, clock: Callable[[], float]) -> None:
        self.number = start.number
        """Its number in the study. Without a study, its place in the order of submission."""
        self.resumed_from = start.resumed_from
        """The last step that was reported before a pause; None if the trial was not paused."""
        self._line, self._clock, self._begun = line, clock, clock()
        self._folder = start.folder
        self._temporary: str | None = None
        self._last_step = -math.inf
        self._reported = self._sent = 0
        self._next = 1
        """The next report that is sent, counted from 1."""
        self._withheld: Report | None = None
        """The last report, if thinning has left it out."""
        self._is_over = self._saw_stop = False
        self._repeated, self._repeated_seconds = 0, 0.0
        self._lock = threading.Lock()

    @property
    def folder(self) -> Path:
        """A folder of this trial alone, for checkpoints. It is made when it is first used."""
        if self._folder is not None:
            path = Path(self._folder)
            path.mkdir(parents=True, exist_ok=True)
            return path
        with self._lock:
            self._check_open()
            if self._temporary is None:
                self._temporary = tempfile.mkdtemp(prefix="foretune-trial-")
            return Path(self._temporary)

    def report(self, step: float, value: float | None = None, **other_values: float) -> None:
        """Report what was measured at a step: an epoch, a round, a share of the rows.

        Args:
            step: later than the steps before. After a resume, steps up to `resumed_from` may come
                again; they are not kept twice.
            value: of the only metric. NaN or infinity says that the trial diverged.
            other_values: values by name. With several metrics, each is given in this way.

        Of more than 10,000 reports an ever smaller share is kept, always with the last one.
        """
        self.report_values(
            step, other_values if value is None else {"value": value, **other_values}
        )

    def report_values(
        self, step: float, given: Mapping[str, float], *, seconds: float | None = None
    ) -> None:
        """Do the same with values by name, that of the only metric under "value".

        seconds: the CPU seconds so far, if they are not those of this process.
        """
        number = _number("step", step)
        if not 0 <= number < math.inf:
            raise ReportError(
                f"a step must be a finite number and not below 0, but got {number:g}: count steps "
                "upwards from 0 or 1",
                rule="step-range",
                field="step",
                value=number,
            )
        values = _numbers(given)
        spent = self._clock() - self._begun if seconds is None else seconds
        with self._lock:
            self._check_open()
            self._check_ascends(number)
            self._last_step = number
            if self._was_kept(number):
                self._repeated += 1
                self._repeated_seconds = spent
                return
            if not self._line.is_heard:
                return
            first = values.pop("value", None)
            self._send_or_withhold(Report(number, first, values, spent))

    def should_stop(self) -> bool:
        """Return True if the trial is to end now; what it needs to go on later is in `folder`.

        It waits at most 20 ms for the answer to the last report.
        """
        is_asked = self._line.stop_asked()
        self._saw_stop = self._saw_stop or is_asked
        return is_asked

    @property
    def facts(self) -> CallFacts:
        """Facts of this call of the trial's function besides its result."""
        return CallFacts(self._saw_stop, self._repeated, self._repeated_seconds)

    def close(self) -> None:
        """End the trial: later reports are refused."""
        with self._lock:
            if self._withheld is not None:
                self._line.send(self._withheld)
            self._withheld, self._is_over = None, True
            if self._temporary is not None:
                shutil.rmtree(self._temporary, ignore_errors=True)
            if self._folder is not None:
                with suppress(OSError):  # it is not there, or it has something in it
                    os.rmdir(self._folder)

    def _was_kept(self, step: float) -> bool:
        return self.resumed_from is not None and step <= self.resumed_from

    def _check_open(self) -> None:
        if self._is_over:
            raise ReportError(
                f"a trial must report before it ends, but trial {self.number} is over: wait for "
                "its threads before the function returns",
                rule="report-after-end",
                value=self.number,
            )

    def _check_ascends(self, step: float) -> None:
        if not step > self._last_step:
            raise ReportError(
                f"the steps of a trial must ascend, but {step:g} came after {self._last_step:g}: "
                "report each step once, in order, with all its values",
                rule="steps-ascend",
                field="step",
                value=step,
            )

    def _send_or_withhold(self, report: Report) -> None:
        """Send a report, or keep it back if there were very many."""
        self._reported += 1
        if self._reported < self._next or self._sent >= MOST_REPORTS - 1:
            if self._reported == ALL_REPORTS + 1:
                _warn_of_thinning()
            self._withheld = report
            return
        self._withheld = None
        self._line.send(report)
        self._sent += 1
        self._next = self._reported + _gap_after(self._sent)


def _gap_after(sent: int) -> int:
    """Return how many reports further on the next one is sent."""
    return 1 if sent < ALL_REPORTS else 2 ** (1 + (sent - ALL_REPORTS) // SAME_GAP)


def _warn_of_thinning() -> None:
    warnings.warn(
        ForetuneWarning(
            f"a trial has reported {ALL_REPORTS:,} times: from here on an ever smaller share of "
            f"its reports is kept, at most {MOST_REPORTS:,} in all; report less often",
            rule="many-reports",
            value=ALL_REPORTS,
        ),
        stacklevel=5,
    )


def _number(name: str, given: Any) -> float:
    number = as_float(given)
    if number is None:
        raise ReportError(
            f"a report must hold numbers, but '{name}' is {show_briefly(given)}: give a number, "
            "such as float(loss)",
            rule="report-not-a-number",
            field=name,
            value=given,
        )
    return number


def _numbers(given: Mapping[str, Any]) -> dict[str, float]:
    """Return the values of a report by name as numbers."""
    if not given:
        raise ReportError(
            "a report needs a value, but got a step alone: give the value of the metric",
            rule="report-without-value",
            field="value",
        )
    if len(given) > MOST_ENTRIES:
        raise ReportError(
            f"a report may hold at most {MOST_ENTRIES:,} values, but got {len(given):,}: report "
            "the metrics, and write the rest to a file",
            rule="too-many-entries",
            value=len(given),
        )
    return {str(name): _number(name, each) for name, each in given.items()}


# Functions

TrialFunction: TypeAlias = Callable[[Job], Result] | Callable[[Job, RunningTrial], Result]


def call_with_trial(function: Callable[..., Any], config: Any, trial: RunningTrial) -> Any:
    """Call the function of a trial, with the trial if it takes one.

    A generator yields `(step, value)`, where a value is a number or a mapping. It is closed when
    the trial is to stop. Its result is what it returns, or the last value if it returns nothing.
    """
    result: Any = function(config, trial) if _takes_trial(function) else function(config)
    return _report_all(result, trial) if isinstance(result, Generator) else result


def _takes_trial(function: Callable[..., Any]) -> bool:
    """Return True if a function needs a second argument, or calls its second one `trial`."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # of a builtin
        return False
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    places = [each for each in parameters if each.kind in kinds]
    if len(places) < 2:
        return False
    second = places[1]
    return second.default is second.empty or second.name == "trial"


def _report_all(points: Generator[Any, None, Any], trial: RunningTrial) -> Any:
    """Report what a generator yields, and return the result of the trial."""
    last = None
    with closing(points):
        while True:
            try:
                point = next(points)
            except StopIteration as end:
                return last if end.value is None else end.value
            step, last = _step_and_value(point)
            trial.report_values(step, last if isinstance(last, Mapping) else {"value": last})
            if trial.should_stop():
                return last


def _step_and_value(point: Any) -> tuple[Any, Any]:
    if isinstance(point, tuple) and len(point) == 2:
        return point
    raise ReportError(
        f"a function that yields must yield (step, value), but yielded {show_briefly(point)}: "
        "write  yield step, value",
        rule="yields-no-pair",
        value=point,
    )
