"""The base classes of methods that learn from the curves of trials that still run or wait."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from foretune._base.arrays import Floats
from foretune.methods.contracts import Observations, Posterior, Prediction, Surrogate
from foretune.space import Encoded


@dataclass(frozen=True, slots=True)
class SeenCurves:
    """What the trials of a target have reported: complete, partial and paused ones."""

    configs: Encoded
    """(n,), one configuration for each trial."""
    steps: Sequence[Floats]
    """n arrays of ascending steps; a trial without a report has an empty one."""
    losses: Sequence[Floats]
    """n arrays (number of steps, objectives), minimised. A loss that is not finite says that the
    trial diverged."""
    goals: Floats
    """(n,), the step at which a running trial is decided about next; NaN for all others."""
    first_step: float
    """The first step at which a trial may pause."""
    last_step: float
    """The step of a complete trial."""

    def __len__(self) -> int:
        return len(self.steps)

    def key(self) -> tuple[object, ...]:
        """Return what tells these curves from earlier and later ones of the same search."""
        counts = tuple(map(len, self.steps))
        return counts, self.goals.tobytes(), self.first_step, self.last_step


class CurvePosterior(Posterior):
    """A posterior that predicts the losses at the last step, and the way there."""

    __slots__ = ()

    @abstractmethod
    def predict_end(self, x: Encoded) -> Prediction:
        """Return the loss of the first objective at the last step, in its unit, for people."""

    @abstractmethod
    def predict_curve(self, x: Encoded, steps: Floats) -> Prediction:
        """Return the loss of the first objective at some steps: (len(x), number of steps)."""


class CurveSurrogate(Surrogate):
    """A surrogate that can be given curves in place of final losses."""

    __slots__ = ()

    @abstractmethod
    def condition_on_curves(
        self, seen: SeenCurves, elsewhere: Observations, *, seed: int
    ) -> CurvePosterior:
        """Return the posterior after curves, which may all be empty.

        elsewhere: trials that were told with their final losses, and have no curve.
        """

    @property
    def usual_last_step(self) -> float | None:
        """The last step of past trials, if past tasks agree about it."""
        return None


NO_STEPS = np.empty(0)
