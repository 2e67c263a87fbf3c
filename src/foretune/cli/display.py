"""What a person sees while trials run: how far it is, the best so far, what runs now."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

import click

from foretune.cli.naming import named
from foretune.experience import Metric, Status
from foretune.run.study import StudyTrial

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

LINE_SECONDS = 30.0
"""How often a log hears of progress that is no improvement."""


class TrialDisplay(Protocol):
    """Hears of trials and shows them."""

    def began(self, trial: StudyTrial) -> None:
        """A trial was begun."""

    def ended(self, trial: StudyTrial) -> None:
        """A trial has ended."""


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
        return f"best {self.metric.name} {value:.4g} ({named(self.best.config)})"

    def _loss(self, trial: StudyTrial) -> float:
        return self.metric.sign * trial.values[self.metric.name]


class Lines:
    """For logs: a line for every improvement, and one from time to time."""

    def __init__(self, metric: Metric, trials: int | None) -> None:
        self._score, self._trials = Score(metric), trials
        self._said = time.monotonic()

    def began(self, trial: StudyTrial) -> None:
        """Nothing to say yet."""

    def ended(self, trial: StudyTrial) -> None:
        """Say it where it matters."""
        better = self._score.take(trial)
        last = self._score.ended == self._trials
        if not better and not last and time.monotonic() - self._said < LINE_SECONDS:
            return
        self._said = time.monotonic()
        of = f" of {self._trials}" if self._trials else ""
        click.echo(f"trial {self._score.ended}{of}: {self._score}", err=True)


class Bar:
    """For terminals: one line that changes. It appears with the first trial."""

    def __init__(self, metric: Metric, bar: "Progress", task: "TaskID") -> None:
        self._score, self._bar, self._task = Score(metric), bar, task
        self._running: dict[int, str] = {}

    def began(self, trial: StudyTrial) -> None:
        """Show what runs."""
        self._bar.start()
        self._running[trial.number] = named(trial.config)
        self._show(0)

    def ended(self, trial: StudyTrial) -> None:
        """Show what came of it."""
        self._running.pop(trial.number, None)
        self._score.take(trial)
        self._show(1)

    def _show(self, step: int) -> None:
        now = ", ".join(dict.fromkeys(filter(None, self._running.values())))
        self._bar.update(self._task, advance=step, best=str(self._score), now=now)


@contextmanager
def display(metric: Metric, trials: int | None, seconds: float | None) -> Iterator[TrialDisplay]:
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
        TextColumn("trial {task.completed:.0f}" + (f" of {trials}" if trials else "")),
        BarColumn(bar_width=20),
        TimeElapsedColumn(),
        *([TextColumn("left"), TimeRemainingColumn()] if trials is not None else []),
        *([TextColumn(f"of {seconds:.0f} s")] if seconds is not None else []),
        TextColumn("{task.fields[best]}", style="bold"),
        TextColumn("{task.fields[now]}", style="dim"),
    ]
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    task = bar.add_task("trials", total=trials, best="starting", now="")
    try:
        yield Bar(metric, bar, task)
    finally:
        bar.stop()
