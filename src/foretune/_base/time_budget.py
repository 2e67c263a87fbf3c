"""The time that a user gave, counted from the start of the command."""

import math
import os
import time
from dataclasses import dataclass, field

from foretune._base.threads import cores

TOLERANCE_SHARE = 0.1
TOLERANCE_SECONDS = 5.0
"""A fit may end late by this share of its time or by these seconds, whichever is more."""
SHARE_TO_FINISH = 0.05
LEAST_SECONDS_TO_FINISH = 1.0
"""Time kept for checking and saving the model and for the report."""
MOST_CONTENTION = 4.0


def contention() -> float:
    """Return how many times longer than alone work takes now, because the machine is busy."""
    if not hasattr(os, "getloadavg"):
        return 1.0
    return min(MOST_CONTENTION, max(1.0, os.getloadavg()[0] / cores()))


@dataclass(frozen=True, slots=True)
class TimeBudget:
    """A number of seconds that began at a moment of the monotonic clock."""

    seconds: float = math.inf
    began: float = field(default_factory=time.monotonic)

    @classmethod
    def of(cls, seconds: float | None, began: float) -> "TimeBudget":
        """Make a budget; None means no limit."""
        return cls(math.inf if seconds is None else seconds, began)

    @property
    def is_limited(self) -> bool:
        """Whether there is a limit."""
        return math.isfinite(self.seconds)

    @property
    def end(self) -> float:
        """When the time ends, by the monotonic clock."""
        return self.began + self.seconds

    @property
    def model_end(self) -> float:
        """When the model must be fitted, so that there is time to save it."""
        return self.end - max(LEAST_SECONDS_TO_FINISH, SHARE_TO_FINISH * self.seconds)

    def remaining(self) -> float:
        """Return the seconds until the end; 0 after it."""
        return max(0.0, self.end - time.monotonic())

    def remaining_for_model(self) -> float:
        """Return the seconds until the model must be fitted; 0 after that."""
        return max(0.0, self.model_end - time.monotonic())
