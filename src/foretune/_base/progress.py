"""Reports of progress from long work. The work need not know about terminals."""

import logging
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Protocol, TypeVar

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
