"""Shows that work goes on: the interface, no display, and bars or lines for people."""

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

T = TypeVar("T")
BEAT_SECONDS, QUIET_SECONDS = 1.0, 2.0
LOGGER = logging.getLogger("foretune")


class Progress(Protocol):
    """Receives the progress of one piece of work."""

    def start(self, what: str, total: int | None) -> None:
        """Begin a piece of work of `total` steps (None if unknown)."""

    def step(self, n: int = 1, note: str = "") -> None:
        """Report that `n` more steps are done."""

    def stop(self) -> None:
        """End the piece of work."""


class Silent:
    """A progress that shows nothing. It is the default of every library call."""

    def start(self, what: str, total: int | None) -> None:
        """Ignore."""

    def step(self, n: int = 1, note: str = "") -> None:
        """Ignore."""

    def stop(self) -> None:
        """Ignore."""


SILENT = Silent()


def track(items: Iterable[T], progress: Progress, what: str, total: int | None) -> Iterator[T]:
    """Yield `items`, and report one step after each."""
    progress.start(what, total)
    try:
        for item in items:
            yield item
            progress.step()
    finally:
        progress.stop()


@contextmanager
def report_every_second(
    progress: Progress, what: str, *, mostly_quick: bool = False
) -> Iterator[None]:
    """Report once a second that the work goes on, even while a library is silent.

    mostly_quick: report nothing for work that ends within a second. Such work must not use
        `progress` itself.
    """
    if progress is SILENT:
        yield
        return
    ended = threading.Event()

    def beat() -> None:
        if mostly_quick and not ended.wait(BEAT_SECONDS):
            progress.start(what, None)
        while not ended.wait(BEAT_SECONDS):
            progress.step(0)

    if not mostly_quick:
        progress.start(what, None)
    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        progress.stop()


class LoggedProgress:
    """Logs the progress of work to the logger `foretune`, at most every two seconds."""

    def __init__(self) -> None:
        self._what, self._done, self._total = "", 0, 0
        self._last = -QUIET_SECONDS

    def start(self, what: str, total: int | None) -> None:
        """Log which work begins."""
        self._what, self._done, self._total = what, 0, total or 0
        LOGGER.info("%s", what)
        self._last = time.monotonic()

    def step(self, n: int = 1, note: str = "") -> None:
        """Log how far the work is."""
        self._done += n
        if time.monotonic() - self._last >= QUIET_SECONDS:
            self._last = time.monotonic()
            LOGGER.info("%s: %d of %s  %s", self._what, self._done, self._total or "?", note)

    def stop(self) -> None:
        """Log nothing: the next piece of work logs that it begins."""


SLOW_SECONDS = 2.0
"""A log is not silent for longer while a command works."""
LONG_SHARE = 1 / 300
"""After ten minutes it may be silent for this share of the time, so that it stays short."""
SHORT_SECONDS = 0.2
"""Work that takes less gets no line, also if the log has been silent for long."""


class TerminalProgress:
    """Shows a bar on standard error while work goes on. A log gets one line if it takes long."""

    def __init__(self, slow_seconds: float | None = None) -> None:
        self._slow_seconds = slow_seconds
        self._slow: LogLines | None = None
        self._bar: RichProgress | None = None
        self._task: TaskID | None = None

    def start(self, what: str, total: int | None) -> None:
        """Show a new bar if standard error is a terminal."""
        self.stop()
        if not sys.stderr.isatty() or _shows_a_bar():
            # A timer writes the line, because one step may be all the work.
            self._slow = LogLines(partial(_tell_duration, what), self._slow_seconds)
            return
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            SpinnerColumn,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )
        from rich.progress import Progress as Bar

        self._bar = Bar(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[note]}", style="dim"),
            console=Console(stderr=True),
            transient=True,
        )
        self._bar.start()
        self._task = self._bar.add_task(what, total=total, note="")

    def step(self, n: int = 1, note: str = "") -> None:
        """Advance the bar."""
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, advance=n, note=note)

    def stop(self) -> None:
        """Remove the bar. Finished work needs no line."""
        if self._slow is not None:
            self._slow.cancel()
            self._slow = None
        if self._bar is not None:
            self._bar.stop()
        self._bar = self._task = None


class LogLines(threading.Thread):
    """A thread that writes a line whenever the log has been silent for long, until it is cancelled.

    line: a function of the seconds since the beginning that returns the line.
    """

    last_said = time.monotonic()
    """When the log got its last line, or this process began."""

    def __init__(self, line: Callable[[float], str], slow_seconds: float | None = None) -> None:
        super().__init__(daemon=True)
        self._line, self._ended = line, threading.Event()
        self._slow_seconds = SLOW_SECONDS if slow_seconds is None else slow_seconds
        self.start()

    def run(self) -> None:
        """Write lines, but none about quick work. Much quick work together is not silent either."""
        began, least = time.monotonic(), SHORT_SECONDS
        while True:
            gap = max(self._slow_seconds, LONG_SHARE * (time.monotonic() - began))
            left = LogLines.last_said + gap - time.monotonic()
            if left <= 0.0 and least <= 0.0:
                self.say(self._line(time.monotonic() - began))
            elif self._ended.wait(max(left, min(gap, least))):
                return
            least = 0.0

    def cancel(self) -> None:
        """Write no more lines."""
        self._ended.set()

    @classmethod
    def say(cls, line: str) -> None:
        """Write a line to standard error."""
        cls.last_said = time.monotonic()
        print(line, file=sys.stderr, flush=True)


def _tell_duration(what: str, seconds: float) -> str:
    return f"{what}: {seconds:.0f} s so far" if seconds >= 1.0 else f"{what}: this takes a while"


def _shows_a_bar() -> bool:
    """Return whether another bar is on the terminal. Lines then appear above it."""
    from rich.file_proxy import FileProxy

    return isinstance(sys.stderr, FileProxy)
