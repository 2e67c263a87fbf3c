"""A surrogate of final losses, and a model of curves beside it for trials that report steps."""

from dataclasses import dataclass

from foretune.methods.contracts import Observations, Surrogate
from foretune.methods.curve_contracts import CurvePosterior, CurveSurrogate, SeenCurves
from foretune.methods.wrapped import WrappedSurrogate


@dataclass(frozen=True, slots=True)
class WithCurves(WrappedSurrogate, CurveSurrogate):
    """Asks `inner` about complete trials, and `curves` about trials with reports."""

    inner: Surrogate
    curves: CurveSurrogate

    @property
    def usual_last_step(self) -> float | None:
        """What the model of curves says."""
        return self.curves.usual_last_step

    def condition_on_curves(
        self, seen: SeenCurves, elsewhere: Observations, *, seed: int
    ) -> CurvePosterior:
        """Ask the model of curves."""
        return self.curves.condition_on_curves(seen, elsewhere, seed=seed)
