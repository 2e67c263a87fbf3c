"""When to stop to look at a table, so that there is time left to learn from it."""

import math
import time
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Deadlines:
    """Moments of the monotonic clock."""

    columns: float = math.inf
    """When to stop to look whether texts are numbers, dates or durations."""
    texts: float = math.inf
    """When to stop to look which words texts have, and whether they help."""

    @property
    def columns_are_over(self) -> bool:
        """Whether some columns may not have been looked at."""
        return time.monotonic() >= self.columns

    @property
    def texts_are_over(self) -> bool:
        """Whether some texts may not have been looked at."""
        return time.monotonic() >= self.texts


NO_DEADLINES = Deadlines()
