"""How long work reports where it stands, without the workers knowing about terminals."""

from collections.abc import Iterable, Iterator
from typing import Protocol, TypeVar

T = TypeVar("T")


class Progress(Protocol):
    """Receives the progress of one piece of work."""

    def start(self, what: str, total: int | None) -> None:
        """Begin a piece of work of `total` steps (None when unknown)."""

    def step(self, n: int = 1, note: str = "") -> None:
        """Say that `n` more steps are done."""

    def stop(self) -> None:
        """End the piece of work."""


class Silent:
    """A progress that shows nothing: the default of every library call."""

    def start(self, what: str, total: int | None) -> None:
        """Ignore."""

    def step(self, n: int = 1, note: str = "") -> None:
        """Ignore."""

    def stop(self) -> None:
        """Ignore."""


SILENT = Silent()


def tracked(items: Iterable[T], progress: Progress, what: str, total: int | None) -> Iterator[T]:
    """Yield `items`, stepping `progress` once after each."""
    progress.start(what, total)
    try:
        for item in items:
            yield item
            progress.step()
    finally:
        progress.stop()
