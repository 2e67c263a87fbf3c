"""When a run of the loop that tunes ends, and how long it waits."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from foretune.experience.trial import Trial
from foretune.run.executor import check_positive

Ending: TypeAlias = Literal["trials", "time", "exhausted"]
Reserve: TypeAlias = Callable[[Sequence[Trial]], float]
"""Says by the trials so far how many seconds a run should end before its time."""


@dataclass(frozen=True, slots=True)
class Budget:
    """When to stop; None is without a limit."""

    trials: int | None = None
    """How many trials the study is to have, those of other processes and earlier runs included."""
    seconds: float | None = None
    """How long this run may take, on the clock. What is running then is left to the next run."""
    reserve: Reserve | None = None
    """How much of the seconds is left for what comes after this run."""

    def __post_init__(self) -> None:
        check_positive("a budget of", self, "trials", "seconds")


@dataclass(frozen=True, slots=True)
class LoopTimes:
    """How long the loop waits, in seconds, and its clock."""

    look: float = 2.0
    """Between two looks for changes by other processes."""
    look_while_learning: float = 0.5
    """The same while the optimiser learns before its next suggestion."""
    away: float = 300.0
    """For a server that went away. It may be restarting."""
    clock: Callable[[], float] = time.monotonic


USUAL_TIMES = LoopTimes()


class TimeLeft:
    """The time that a run has left."""

    def __init__(self, budget: Budget, times: LoopTimes) -> None:
        self._times, self._reserve = times, budget.reserve
        self._end = None if budget.seconds is None else times.clock() + budget.seconds
        self._reserved = 0.0

    def update(self, trials: Callable[[], Sequence[Trial]]) -> None:
        """Find out by the trials so far how much of the time is reserved."""
        if self._end is not None and self._reserve is not None:
            self._reserved = self._reserve(trials())

    @property
    def seconds(self) -> float:
        """Seconds; infinity if there is no limit."""
        if self._end is None:
            return math.inf
        return self._end - self._reserved - self._times.clock()

    @property
    def is_over(self) -> bool:
        """True if nothing is left."""
        return self.seconds <= 0.0

    def patience(self, is_learning: bool) -> float:
        """Return for how many seconds the loop may wait for results."""
        look = self._times.look_while_learning if is_learning else self._times.look
        return max(0.0, min(self.seconds, look))
