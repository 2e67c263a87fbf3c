"""The messages between the optimiser and the caller who runs the trials."""

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
    """The design or acquisition function that chose it."""
    pool_index: int | None = None
    """Its row in the target's pool, if there is one."""
    resumed_from: float | None = None
    """The last step of a paused trial that goes on; None for a new trial."""


@dataclass(frozen=True, slots=True)
class Told:
    """The outcome of one trial: of a suggestion (`id`), or of a configuration tried elsewhere.

    `losses` holds one number for each objective; lower is better. A single number may be given as
    it is. Tell failed trials, timeouts and NaN too: they teach where not to look.
    """

    losses: tuple[float, ...] | float
    id: int | None = None
    config: Mapping[str, Any] | None = None
    status: Status = Status.DONE
