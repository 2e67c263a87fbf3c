"""The reports of a running trial, and the line on which they reach a listener."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, TypeAlias

from foretune.errors import ForetuneError

__all__ = [
    "NO_FACTS",
    "CallFacts",
    "DirectLine",
    "Listener",
    "Report",
    "ReportError",
    "ReportLine",
    "TrialStart",
]


class ReportError(ForetuneError):
    """A trial reported something that cannot be used. It fails the trial, with this reason."""


class Report(NamedTuple):
    """The values of a trial at one step."""

    step: float
    value: float | None
    """The value of the only metric, where the trial gave it no name. NaN or infinite if the trial
    diverged."""
    other_values: dict[str, float]
    """Values by name."""
    seconds: float
    """CPU seconds since the trial was started."""


Listener: TypeAlias = Callable[[int, Sequence[Report]], bool]
"""Gets the key of a job and its new reports, and returns True if the trial is to stop."""


class CallFacts(NamedTuple):
    """Facts of one call of a trial's function besides its result."""

    saw_stop: bool = False
    """True if it asked whether to stop, and was told so. Its result is then not complete."""
    repeated_reports: int = 0
    """Reports of steps that had been reported before a pause: the function began anew."""
    repeated_seconds: float = 0.0
    """CPU seconds that it spent up to the last of these."""


NO_FACTS = CallFacts()


@dataclass(frozen=True, slots=True)
class TrialStart:
    """The facts that a trial gets about itself when it starts."""

    number: int
    """Its number in the study."""
    folder: str | None = None
    """A folder of its own. None: a temporary folder, which is removed when the call is over."""
    resumed_from: float | None = None
    """The last step that it reported before a pause. None: it was not paused."""


class ReportLine(Protocol):
    """The way on which the reports of one trial reach a listener."""

    @property
    def is_heard(self) -> bool:
        """False if nobody listens."""

    def send(self, report: Report) -> None:
        """Send a report."""

    def stop_asked(self) -> bool:
        """Return True if the trial is to stop, by the answer to the last report."""


@dataclass
class DirectLine:
    """A line within one process: the listener is called at once.

    What the listener raises is not for the trial. It is kept, and the trial is asked to stop.
    """

    key: int
    listener: Listener | None
    error: Exception | None = field(default=None, init=False)
    _stop: bool = field(default=False, init=False)

    @property
    def is_heard(self) -> bool:
        """True if there is a listener, which has raised nothing yet."""
        return self.listener is not None and self.error is None

    def send(self, report: Report) -> None:
        """Call the listener."""
        assert self.listener is not None
        try:
            self._stop = self.listener(self.key, [report]) or self._stop
        except Exception as error:
            self.error, self._stop = error, True

    def stop_asked(self) -> bool:
        """Return True if the listener once said so."""
        return self._stop
