"""The surrogate: beliefs about the curves of each objective."""

from dataclasses import dataclass

import numpy as np

from foretune._base.arrays import Floats
from foretune.methods.contracts import Observations, Posterior, Prediction
from foretune.methods.curve_contracts import CurvePosterior, CurveSurrogate, SeenCurves
from foretune.methods.freeze_thaw.belief import Belief, WeightedPrior
from foretune.methods.freeze_thaw.points import Points, points_of_curves, points_of_losses
from foretune.methods.freeze_thaw.several import CurveFrontPosterior
from foretune.space import Encoded


@dataclass(frozen=True, slots=True)
class FreezeThawPosterior(CurvePosterior):
    """What is believed of one objective at the last step."""

    belief: Belief
    best: float

    def predict(self, x: Encoded) -> Prediction:
        """Return mean and standard deviation of the loss at the last step."""
        return self.belief.predict(x)

    def sample(self, x: Encoded, n: int, *, seed: int) -> Floats:
        """Draw losses at the last step."""
        return self.belief.sample(x, n, np.random.default_rng(seed))

    def log_improvement(self, x: Encoded) -> Floats:
        """Return the log expected improvement at the last step on the best report so far."""
        return self.belief.log_improvement(x)

    @property
    def trusts_past(self) -> bool:
        """Whether past configurations still help to predict."""
        return self.belief.trusts_past

    def predict_end(self, x: Encoded) -> Prediction:
        """Return the loss at the last step."""
        return self.belief.predict_losses(x)

    def predict_curve(self, x: Encoded, steps: Floats) -> Prediction:
        """Return the losses at some steps."""
        return self.belief.predict_curve(x, steps)


@dataclass(frozen=True, slots=True)
class FreezeThawSurrogate(CurveSurrogate):
    """Conditions the beliefs about each objective."""

    beliefs: tuple[tuple[WeightedPrior, ...], ...]
    """For each objective."""
    pool: Encoded | None
    last_step: float | None

    @property
    def usual_last_step(self) -> float | None:
        """The last step of past trials, if past tasks agree about it."""
        return self.last_step

    def condition(self, seen: Observations, *, seed: int) -> Posterior:
        """Return the posterior after complete trials."""
        del seed
        knots = self.beliefs[0][0].prior.knots
        return self._posterior(points_of_losses(seen.successes(), knots), 1.0)

    def condition_on_curves(
        self, seen: SeenCurves, elsewhere: Observations, *, seed: int
    ) -> CurvePosterior:
        """Return the posterior after curves."""
        del seed
        knots = self.beliefs[0][0].prior.knots
        points = points_of_curves(seen, elsewhere.successes(), knots)
        return self._posterior(points, seen.last_step)

    def _posterior(self, points: Points, last_step: float) -> CurvePosterior:
        beliefs = [
            Belief.condition(priors, points, objective, last_step)
            for objective, priors in enumerate(self.beliefs)
        ]
        if len(beliefs) > 1:
            return CurveFrontPosterior.of(beliefs, points)
        return FreezeThawPosterior(beliefs[0], beliefs[0].best)
