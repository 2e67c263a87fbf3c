"""What passes between the optimiser and whoever runs the trials."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from foretune.experience import Status


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A configuration to try next."""

    id: int
    config: dict[str, Any]
    reason: str
    """What chose it: the name of a design or of an acquisition function."""
    pool_index: int | None = None
    """Its row in the target's pool, where there is one."""
    resumed_from: float | None = None
    """The last step of a paused trial that goes on; None for a new trial."""


@dataclass(frozen=True, slots=True)
class Told:
    """The outcome of one trial: of a suggestion (`id`), or of a configuration tried elsewhere.

    `losses` holds one number an objective, minimised; where there is one objective, the number
    will do. A trial that failed, timed out or gave NaN is told as well: it teaches where not to
    look.
    """

    losses: tuple[float, ...] | float
    id: int | None = None
    config: Mapping[str, Any] | None = None
    status: Status = Status.DONE
