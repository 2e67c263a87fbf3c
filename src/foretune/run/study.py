"""Studies: the trials of one tuning task, kept where they survive and others can join.

A study lives in an Optuna storage (an SQLite file, PostgreSQL or MySQL), or in memory. Whoever
runs trials reads all of them, begins one, and ends it; docs/decisions/011-studies.md gives the
reasons.
"""

import threading
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from foretune.errors import UsageError
from foretune.experience import Metric, Status
from foretune.experience.curves import Curve, CurvePoint, join_points
from foretune.experience.trial import Trial
from foretune.run.trial_log import Changes, TrialLog
from foretune.run.trial_results import finite
from foretune.space import Space

NOTHING: Mapping[str, Any] = {}


class StoreAwayError(UsageError):
    """A server that does not answer now, and may later: nothing is wrong with what was asked."""


class Study(ABC):
    """The trials of one task. Use it in a `with` statement.

    with open_study("runs.db", "digits", space=space, metrics=[Metric("error")]) as study:
        number = study.begin(config, chosen_by="random")
        study.end(number, status=Status.DONE, values={"error": 0.1}, seconds=2.5)
    """

    def __init__(self, name: str, url: str | None, space: Space, metrics: Sequence[Metric]) -> None:
        self.name = name
        self.url = url
        """None in memory."""
        self.space = space
        self.metrics = tuple(metrics)
        """What is optimised; a trial that is DONE has a value for each."""

    @property
    def folder(self) -> Path | None:
        """Where the folders of its trials lie if nobody chooses a place; None in memory."""
        return None

    @abstractmethod
    def trials(self) -> list[Trial]:
        """All trials of all processes as they are now, by number."""

    @abstractmethod
    def changes(self, seen: int = 0) -> Changes:
        """Trials of all processes that began, paused, went on or ended since an earlier look.

        seen: `Changes.seen` of that look; 0 for all trials. It holds for this object alone.
        """

    @abstractmethod
    def begin(self, config: Mapping[str, Any], *, chosen_by: str) -> int:
        """Store a running trial, which others see at once, and return its number."""

    @abstractmethod
    def end(
        self,
        number: int,
        *,
        status: Status,
        values: Mapping[str, float] = NOTHING,
        seconds: float = float("nan"),
        reason: str = "",
        notes: Mapping[str, Any] = NOTHING,
    ) -> None:
        """Store how a trial of this process ended, in one step.

        Nothing happens where another process, believing this one dead, has taken the trial over:
        its outcome counts.
        """

    @abstractmethod
    def report(self, number: int, points: Sequence[CurvePoint]) -> None:
        """Store what a trial of this process reported, in one step and before it returns.

        points: later than what is stored. Nothing happens where another process has taken the
            trial over.
        """

    @abstractmethod
    def curve(self, number: int) -> Curve | None:
        """Return all that a trial of this process has reported, in earlier processes too."""

    @abstractmethod
    def pause(
        self,
        number: int,
        *,
        seconds: float,
        reason: str = "",
        notes: Mapping[str, Any] = NOTHING,
    ) -> None:
        """Store that a trial of this process waits to be resumed.

        Nothing happens where another process has taken the trial over.
        """

    @abstractmethod
    def resume(self, number: int) -> bool:
        """Make a paused trial one of this process. False if it is no longer paused."""

    @abstractmethod
    def abandoned_trials(self) -> list[Trial]:
        """Trials to be run again: those of dead processes, and those that were let go."""

    @abstractmethod
    def unsure(self) -> list[Trial]:
        """Running trials of other machines of which no sign of life or death is known yet."""

    @abstractmethod
    def take_over(self, number: int) -> int:
        """Make a trial that was left behind one of this process, to be run under its number.

        Returns how many processes have died while they ran it; to let it go is no death.
        """

    @abstractmethod
    def let_go(self, number: int) -> None:
        """Give a running trial of this process back, unfinished: whoever comes next runs it.

        Nothing happens where this process does not run it.
        """

    @abstractmethod
    def lock(self) -> AbstractContextManager[None]:
        """Inside it no other process begins, ends or takes over a trial. Keep it short."""

    @abstractmethod
    def close(self) -> None:
        """Let go what is running and leave the storage."""

    def _check_end(
        self,
        number: int,
        running: Collection[int],
        status: Status,
        values: Mapping[str, float],
    ) -> None:
        """Refuse the end of what this process does not run, and a success without its values."""
        check_running(number, running)
        if status is not Status.DONE:
            return
        for metric in self.metrics:
            value = values.get(metric.name)
            if finite(value) is None:
                raise UsageError(
                    f"a trial that is DONE needs a finite number for each metric, but "
                    f"'{metric.name}' of trial {number} is {value!r}: end it with Status.FAILED",
                    rule="missing-value",
                    field=metric.name,
                    value=value,
                )

    def _check_take_over(self, number: int, unfinished: Collection[int]) -> None:
        """Refuse to run what has ended, or does not exist."""
        if number not in unfinished:
            raise UsageError(
                f"only a trial that has not ended can be taken over, but {number} is none of these "
                f"({sorted(unfinished) or 'none'}): take one of `left_behind`",
                rule="trial-ended",
                field="number",
                value=number,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def check_running(number: int, running: Collection[int]) -> None:
    """Refuse to end or pause a trial that this process does not run."""
    if number not in running:
        raise UsageError(
            f"only a trial that was begun or taken over here can be ended, and only once, but "
            f"{number} is none of those that are running ({sorted(running) or 'none'})",
            rule="trial-not-running",
            field="number",
            value=number,
        )


class MemoryStudy(Study):
    """A study of this process only, gone with it."""

    def __init__(self, name: str, space: Space, metrics: Sequence[Metric]) -> None:
        super().__init__(name, None, space, metrics)
        self._log = TrialLog()
        self._unfinished: set[int] = set()
        self._running: set[int] = set()
        self._points: dict[int, list[CurvePoint]] = {}
        self._lock = threading.RLock()

    def trials(self) -> list[Trial]:
        """All trials."""
        return [
            replace(trial, curve=self.curve(trial.number))
            if trial.status is Status.RUNNING and trial.number in self._points
            else trial
            for trial in self._log.trials()
        ]

    def changes(self, seen: int = 0) -> Changes:
        """Trials that began or ended since an earlier look."""
        return self._log.changes(seen)

    def begin(self, config: Mapping[str, Any], *, chosen_by: str) -> int:
        """Add a running trial."""
        with self._lock:
            number = len(self._log)
            known = self.space.encode([config]).dicts()[0]
            self._log.put(Trial(number, known, chosen_by=chosen_by))
            self._unfinished.add(number)
            self._running.add(number)
            return number

    def end(
        self,
        number: int,
        *,
        status: Status,
        values: Mapping[str, float] = NOTHING,
        seconds: float = float("nan"),
        reason: str = "",
        notes: Mapping[str, Any] = NOTHING,
    ) -> None:
        """Keep how a trial ended."""
        with self._lock:
            self._check_end(number, self._running, status, values)
            self._running.remove(number)
            ended = replace(
                self._log[number],
                status=status,
                values=dict(values),
                seconds=seconds,
                reason=reason,
                notes=dict(notes),
                curve=self.curve(number),
            )
            self._unfinished.discard(number)
            self._log.put(ended)

    def report(self, number: int, points: Sequence[CurvePoint]) -> None:
        """Keep what a trial reported."""
        self._points.setdefault(number, []).extend(points)

    def curve(self, number: int) -> Curve | None:
        """Return all that a trial has reported."""
        return join_points(self._points.get(number, []))

    def pause(
        self,
        number: int,
        *,
        seconds: float,
        reason: str = "",
        notes: Mapping[str, Any] = NOTHING,
    ) -> None:
        """Keep that a trial waits."""
        with self._lock:
            check_running(number, self._running)
            self._running.remove(number)
            curve = self.curve(number)
            paused = replace(
                self._log[number],
                status=Status.PAUSED,
                values={} if curve is None else curve.last_values,
                seconds=seconds,
                reason=reason,
                notes=dict(notes),
                curve=curve,
            )
            self._log.put(paused)

    def resume(self, number: int) -> bool:
        """Let a paused trial run again."""
        with self._lock:
            paused = self._log[number]
            if paused.status is not Status.PAUSED:
                return False
            self._log.put(replace(paused, status=Status.RUNNING, reason=""))
            self._running.add(number)
            return True

    def abandoned_trials(self) -> list[Trial]:
        """Trials that were let go."""
        found = (self._log[number] for number in sorted(self._unfinished - self._running))
        return [trial for trial in found if trial.status is not Status.PAUSED]

    def unsure(self) -> list[Trial]:
        """None: nobody else can join."""
        return []

    def take_over(self, number: int) -> int:
        """Run a trial again; whoever dies takes the study along."""
        with self._lock:
            self._check_take_over(number, self._unfinished)
            self._running.add(number)
            return 0

    def let_go(self, number: int) -> None:
        """Give a trial back."""
        self._running.discard(number)

    def lock(self) -> AbstractContextManager[Any]:
        """Keep other threads out."""
        return self._lock

    def close(self) -> None:
        """Let go what is running."""
        self._running.clear()
