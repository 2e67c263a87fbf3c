"""What a person sees while trials run: how far it is, the best so far, what runs now."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from foretune.cli.naming import named
from foretune.experience import Metric, Status
from foretune.report.wording import counted
from foretune.run.study import StudyTrial

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from foretune.run.tuning import Watch

LINE_SECONDS = 30.0
"""How often a log hears of progress that is no improvement."""


class Score:
    """The best so far."""

    def __init__(self, metric: Metric) -> None:
        self.metric = metric
        self.ended = self.failed = 0
        self.best: StudyTrial | None = None

    def take(self, trial: StudyTrial) -> bool:
        """Count a trial that has ended; whether it is the best now."""
        self.ended += 1
        if trial.status is not Status.DONE:
            self.failed += 1
            return False
        if self.best is not None and not self._loss(trial) < self._loss(self.best):
            return False
        self.best = trial
        return True

    def __str__(self) -> str:
        if self.best is None:
            return f"{self.failed} failed" if self.failed else "the first trials are running"
        value = self.best.values[self.metric.name]
        name = named(self.best.config)
        return f"best {self.metric.name} {value:.4g}{f' ({name})' if name else ''}"

    def _loss(self, trial: StudyTrial) -> float:
        return self.metric.sign * trial.values[self.metric.name]


class Lines:
    """For logs: a line when the work begins, for every improvement, and from time to time.

    What had ended before is told in one line, when the first trial begins.
    """

    def __init__(self, metric: Metric, trials: int | None) -> None:
        self._score, self._trials = Score(metric), trials
        self._said, self._silent = time.monotonic(), True

    def began(self, trial: StudyTrial) -> None:
        """Only the first one is worth a line: it may take long, and nothing else has been said."""
        if self._silent and self._score.ended:
            self._say_how_far()
        elif self._silent:
            name = named(trial.config)
            self._say(f"trial {trial.number} began{f': {name}' if name else ''}")

    def ended(self, trial: StudyTrial) -> None:
        """Say it where it matters."""
        better = self._score.take(trial)
        last = self._score.ended == self._trials
        worth_it = better or last or time.monotonic() - self._said >= LINE_SECONDS
        if worth_it and not self._silent:
            self._say_how_far()

    def _say_how_far(self) -> None:
        self._say(f"{_how_far(self._score.ended, self._trials)}: {self._score}")

    def _say(self, line: str) -> None:
        self._said, self._silent = time.monotonic(), False
        click.echo(line, err=True)


def _how_far(ended: int, trials: int | None) -> str:
    """How many trials have ended: a count, which is not the number that a trial bears."""
    return counted(ended, "trial") if trials is None else f"{ended:,} of {counted(trials, 'trial')}"


class Bar:
    """For terminals: one line that changes. It appears with the first trial."""

    def __init__(self, metric: Metric, bar: "Progress", task: "TaskID", trials: int | None) -> None:
        self._score, self._bar, self._task, self._trials = Score(metric), bar, task, trials
        self._running: dict[int, str] = {}
        self._visible = False

    def began(self, trial: StudyTrial) -> None:
        """Show what runs."""
        if not self._visible:
            # A new beginning: what had ended before does not tell how fast it goes.
            self._bar.reset(self._task, completed=self._score.ended)
            self._bar.start()
            self._visible = True
        self._running[trial.number] = named(trial.config)
        self._show(0)

    def ended(self, trial: StudyTrial) -> None:
        """Show what came of it."""
        self._running.pop(trial.number, None)
        self._score.take(trial)
        if self._visible:
            self._show(1)

    def _show(self, step: int) -> None:
        now = ", ".join(dict.fromkeys(filter(None, self._running.values())))
        far = _how_far(self._score.ended, self._trials)
        self._bar.update(self._task, advance=step, far=far, best=str(self._score), now=now)


@contextmanager
def display(metric: Metric, trials: int | None, seconds: float | None) -> Iterator["Watch"]:
    """Whatever suits where standard error goes."""
    if not sys.stderr.isatty():
        yield Lines(metric, trials)
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
        # Names of metrics and of choices are the user's: brackets in them are no markup.
        TextColumn("{task.fields[best]}", style="bold", markup=False),
        TextColumn("{task.fields[now]}", style="dim", markup=False),
    ]
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    far = _how_far(0, trials)
    task = bar.add_task("trials", total=trials, far=far, best="starting", now="")
    try:
        yield Bar(metric, bar, task, trials)
    finally:
        bar.stop()
