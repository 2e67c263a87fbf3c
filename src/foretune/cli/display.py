"""What a person sees while trials run: progress, the best so far, and running trials."""

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from foretune._base.progress import LogLines
from foretune.cli.option_values import config_label
from foretune.experience import Metric, Status
from foretune.experience.trial import Trial
from foretune.report.wording import count_text, list_text
from foretune.run.watch import Watch

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID


REDRAW_SECONDS = 0.1


class BestSoFar:
    """The best trial so far; with several metrics, the trials that no other beats in all."""

    def __init__(self, metrics: Sequence[Metric]) -> None:
        self.metrics = tuple(metrics)
        self.ended = self.failed = self.stopped = 0
        self.unbeaten: list[Trial] = []

    def take(self, trial: Trial) -> bool:
        """Count a trial that has ended. Return whether it is among the best now."""
        self.ended += 1
        if trial.status is not Status.DONE:
            self.stopped += trial.status is Status.STOPPED
            self.failed += trial.status is not Status.STOPPED
            return False
        if any(self._as_good(other, trial) for other in self.unbeaten):
            return False
        self.unbeaten = [each for each in self.unbeaten if not self._as_good(trial, each)]
        self.unbeaten.append(trial)
        return True

    def __str__(self) -> str:
        if not self.unbeaten:
            return f"{self.failed} failed" if self.failed else "the first trials are running"
        if len(self.metrics) > 1:
            names = list_text([metric.name for metric in self.metrics])
            return f"{len(self.unbeaten)} unbeaten in {names}"
        [metric], [best] = self.metrics, self.unbeaten
        name = config_label(best.config)
        return f"best {metric.name} {best.values[metric.name]:.4g}{f' ({name})' if name else ''}"

    def _as_good(self, one: Trial, other: Trial) -> bool:
        """Return whether no metric of a trial is worse than that of another."""
        return all(
            m.sign * one.values[m.name] <= m.sign * other.values[m.name] for m in self.metrics
        )


class StepCount:
    """Counts the steps that trials report, and those trials that end early or wait.

    It says nothing about trials that do not report.
    """

    def __init__(self) -> None:
        self._last: dict[int, float] = {}
        self._running: set[int] = set()
        self._paused: set[int] = set()

    def begin(self, trial: Trial) -> None:
        """Count a trial that runs now."""
        self._note(trial)
        self._running.add(trial.number)
        self._paused.discard(trial.number)

    def report(self, number: int, step: float) -> None:
        """Count a step."""
        self._last[number] = step

    def pause(self, trial: Trial) -> None:
        """Count a trial that waits."""
        self._note(trial)
        self._running.discard(trial.number)
        self._paused.add(trial.number)

    def end(self, trial: Trial) -> None:
        """Count a trial that has ended."""
        self._note(trial)
        self._running.discard(trial.number)
        self._paused.discard(trial.number)

    def text(self, stopped: int) -> str:
        """Return how many trials run, wait or were stopped, and the steps so far."""
        if not self._last:
            return ""
        counts = {"running": len(self._running), "paused": len(self._paused), "stopped": stopped}
        shown = [f"{count:,} {name}" for name, count in counts.items() if count]
        return ", ".join([*shown, f"{sum(self._last.values()):,.10g} steps"])

    def _note(self, trial: Trial) -> None:
        if trial.last_step is not None:
            self._last[trial.number] = trial.last_step


class Lines(Watch):
    """For logs: a line when the work begins, for every improvement, and when it is silent for long.

    Trials of earlier runs get one line together, when the first trial begins.
    """

    def __init__(self, score: BestSoFar, trials: int | None) -> None:
        self._score, self._trials, self._steps = score, trials, StepCount()
        self._silent = True
        """Whether nothing was said yet."""

    @contextmanager
    def end_silences(self) -> Iterator["Lines"]:
        """Write a line whenever the log has been silent for long."""
        lines = LogLines(self._tell_time)
        try:
            yield self
        finally:
            lines.cancel()

    def trial_began(self, trial: Trial) -> None:
        """Write a line about the first trial only: it may take long."""
        self._steps.begin(trial)
        if self._silent and self._score.ended:
            self._say_how_far()
        elif self._silent:
            name = config_label(trial.config)
            self._say(f"trial {trial.number} began{f': {name}' if name else ''}")

    def trial_ended(self, trial: Trial) -> None:
        """Write a line after an improvement, or after the last trial."""
        self._steps.end(trial)
        better = self._score.take(trial)
        last = self._score.ended == self._trials
        if (better or last) and not self._silent:
            self._say_how_far()

    def trial_reported(self, number: int, step: float) -> None:
        """Count the step."""
        self._steps.report(number, step)

    def trial_paused(self, trial: Trial) -> None:
        """Count it among those that wait."""
        self._steps.pause(trial)

    def _tell_time(self, seconds: float) -> str:
        return f"after {seconds:.0f} s, {self._tell_how_far()}"

    def _tell_how_far(self) -> str:
        steps = self._steps.text(self._score.stopped)
        far = _how_far(self._score.ended, self._trials)
        return f"{far}{f' ({steps})' if steps else ''}: {self._score}"

    def _say_how_far(self) -> None:
        self._say(self._tell_how_far())

    def _say(self, line: str) -> None:
        self._silent = False
        LogLines.say(line)


def _how_far(ended: int, trials: int | None) -> str:
    """Return how many trials have ended, as a text."""
    return (
        count_text(ended, "trial")
        if trials is None
        else f"{ended:,} of {count_text(trials, 'trial')}"
    )


class Bar(Watch):
    """For terminals: one line that changes. It appears with the first trial."""

    def __init__(
        self, score: BestSoFar, bar: "Progress", task: "TaskID", trials: int | None
    ) -> None:
        self._score, self._bar, self._task, self._trials = score, bar, task, trials
        self._running: dict[int, str] = {}
        self._steps = StepCount()
        self._visible, self._drawn = False, 0.0

    def trial_began(self, trial: Trial) -> None:
        """Show which trials run."""
        if not self._visible:
            # Trials of earlier runs say nothing about the speed of this one.
            self._bar.reset(self._task, completed=self._score.ended)
            self._bar.start()
            self._visible = True
        self._running[trial.number] = config_label(trial.config)
        self._steps.begin(trial)
        self._show(0)

    def trial_ended(self, trial: Trial) -> None:
        """Show the new state."""
        self._running.pop(trial.number, None)
        self._steps.end(trial)
        self._score.take(trial)
        if self._visible:
            self._show(1)

    def trial_reported(self, number: int, step: float) -> None:
        """Count the step. The line changes at most ten times a second."""
        self._steps.report(number, step)
        if self._visible and time.monotonic() - self._drawn >= REDRAW_SECONDS:
            self._show(0)

    def trial_paused(self, trial: Trial) -> None:
        """Show that it waits."""
        self._running.pop(trial.number, None)
        self._steps.pause(trial)
        if self._visible:
            self._show(0)

    def _show(self, step: int) -> None:
        now = ", ".join(dict.fromkeys(filter(None, self._running.values())))
        far = _how_far(self._score.ended, self._trials)
        steps = self._steps.text(self._score.stopped)
        best = str(self._score)
        self._bar.update(self._task, advance=step, far=far, best=best, now=now, steps=steps)
        self._drawn = time.monotonic()


@contextmanager
def display(
    metrics: Sequence[Metric],
    trials: int | None,
    seconds: float | None,
    *,
    console: "Console | None" = None,
    score: BestSoFar | None = None,
) -> Iterator[Watch]:
    """Show a bar on a terminal, and lines in a log.

    console: where the bar is shown; by default standard error, if that is a terminal.
    score: what is said about the results so far. Default: the best trial.
    """
    score = score or BestSoFar(metrics)
    if console is None and not sys.stderr.isatty():
        with Lines(score, trials).end_silences() as lines:
            yield lines
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = [
        TextColumn("{task.fields[far]}"),
        BarColumn(bar_width=20),
        TimeElapsedColumn(),
        *([TextColumn("left"), TimeRemainingColumn()] if trials is not None else []),
        *([TextColumn(f"of {seconds:.0f} s")] if seconds is not None else []),
        TextColumn("{task.fields[steps]}"),
        # Names of metrics and of choices are the user's: brackets in them are no markup.
        TextColumn("{task.fields[best]}", style="bold", markup=False),
        TextColumn("{task.fields[now]}", style="dim", markup=False),
    ]
    bar = Progress(*columns, console=console or Console(stderr=True), transient=True)
    far = _how_far(0, trials)
    task = bar.add_task("trials", total=trials, far=far, best="starting", now="", steps="")
    try:
        yield Bar(score, bar, task, trials)
    finally:
        bar.stop()
