"""The base class of stopping policies, and the levels at which most of them decide."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

from foretune.errors import UsageError
from foretune.methods.stopping.race import Race


class Decision(Enum):
    """Whether a trial that has just reported goes on."""

    CONTINUE = "continue"
    PAUSE = "pause"
    """End the process and keep its folder: the trial may go on later."""
    STOP = "stop"
    """End it for good."""


@dataclass(frozen=True, slots=True)
class StepDecision:
    """A decision, and why, in words that a person understands."""

    decision: Decision
    reason: str = ""


CONTINUE = StepDecision(Decision.CONTINUE)


@dataclass(frozen=True, slots=True)
class StepRange:
    """The first step at which a trial may be stopped, and the last one that it can take."""

    first: float
    last: float
    eta: float = 3.0
    """One of `eta` trials goes on from each level to the next."""

    def __post_init__(self) -> None:
        if not (0 < self.first <= self.last and math.isfinite(self.last)):
            raise UsageError(
                f"the first step must be positive and at most the last one, but got "
                f"{self.first:g} and {self.last:g}: choose others",
                rule="step-range",
                field="first",
                value=(self.first, self.last),
            )
        if not self.eta > 1:
            raise UsageError(
                f"eta must be above 1, but got {self.eta:g}: 3 and 4 are usual",
                rule="eta",
                field="eta",
                value=self.eta,
            )

    @property
    def levels(self) -> tuple[float, ...]:
        """The steps at which trials are compared, ascending, without the last step."""
        found, step = [], self.first
        while step < self.last * (1 - 1e-9):
            found.append(step)
            step *= self.eta
        return tuple(found)


class StoppingPolicy:
    """Decides which trials go on. This base class lets every trial run to its end.

    A policy has no memory. Its answers depend on the race only, so a killed search can go on.
    """

    def decide(self, race: Race, trial: int) -> StepDecision:  # noqa: ARG002
        """Decide about a trial after its last report."""
        return CONTINUE

    def resume(self, race: Race) -> int | None:  # noqa: ARG002
        """Return the paused trial that an idle worker continues; None to start a new one."""
        return None

    def hopeless(self, race: Race) -> set[int]:  # noqa: ARG002
        """Return the paused trials that will never be resumed: their folders can be deleted."""
        return set()

    def without_pauses(self) -> StoppingPolicy:
        """Return the policy for programs that cannot resume a trial: it stops, and never pauses."""
        return self

    def next_decision(self, race: Race, trial: int) -> float:  # noqa: ARG002
        """Return the next step at which `decide` may answer something else than CONTINUE."""
        return math.inf
