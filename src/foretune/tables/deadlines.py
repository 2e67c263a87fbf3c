"""Deadlines for inspecting a table, so that there is time left to learn from it."""

import math
import time
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Deadlines:
    """Moments of the monotonic clock."""

    columns: float = math.inf
    """When to stop searching texts for numbers, dates and durations."""
    texts: float = math.inf
    """When to stop searching texts for words, and testing whether these help."""

    @property
    def columns_are_over(self) -> bool:
        """Whether some columns may not have been searched."""
        return time.monotonic() >= self.columns

    @property
    def texts_are_over(self) -> bool:
        """Whether some texts may not have been searched."""
        return time.monotonic() >= self.texts


NO_DEADLINES = Deadlines()
