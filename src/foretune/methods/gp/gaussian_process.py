"""Plain Gaussian processes on the target's own trials.

On standardised losses this is the usual GP. On Gaussian scores it is the Gaussian Copula Process
without a prior (copula paper, section 4.2). `auto` uses smoothed scores. Several objectives are
averaged (section 5.2), but `auto` looks for their front.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Self

import numpy as np

from foretune._base.arrays import Floats
from foretune.methods.contracts import Observations, Posterior, Prediction, Surrogate, Target
from foretune.methods.gp.several_objectives import FrontSurrogate
from foretune.methods.random.stateless import StatelessLearner
from foretune.numerics.anchored import LARGEST_GP, AnchoredFit, informative_subset
from foretune.numerics.gp import GP
from foretune.numerics.objectives import scalarise
from foretune.numerics.scores import smooth_scores
from foretune.numerics.transforms import copula_scores, standardise
from foretune.space import Encoded


@dataclass(frozen=True, slots=True)
class GaussianProcessPosterior(Posterior):
    """A conditioned GP, read at encoded configurations."""

    model: GP
    best: float

    def predict(self, x: Encoded) -> Prediction:
        """Return mean and standard deviation of the transformed loss."""
        return Prediction(*self.model.predict(x.x))

    def sample(self, x: Encoded, n: int, *, seed: int) -> Floats:
        """Draw the transformed losses jointly."""
        return self.model.sample(x.x, n, np.random.default_rng(seed))


@dataclass(frozen=True, slots=True)
class GaussianProcessSurrogate(Surrogate):
    """Fits hyperparameters to observed trials, and conditions on believed ones too."""

    fit: AnchoredFit

    @classmethod
    def on(cls, transform: Callable[[Floats], Floats], target: Target) -> Self:
        """Return a surrogate of losses that `transform` brings to one unit."""
        output = partial(scalarise, transform=transform)
        return cls(AnchoredFit(output=output, groups=target.space.column_groups))

    def condition(self, seen: Observations, *, seed: int) -> Posterior:
        """Return the posterior after all successful trials."""
        del seed
        good = seen.successes()
        x, y, real = good.configs.x, self.fit.output(good.losses), ~good.believed
        hyper = self.fit.hyper(x[real], good.losses[real])
        keep = informative_subset(x, y, LARGEST_GP)
        return GaussianProcessPosterior(GP.condition(x[keep], y[keep], hyper), float(y.min()))


def gaussian_process() -> StatelessLearner:
    """Return the learner of the usual GP, on standardised losses."""
    return StatelessLearner("gp", partial(GaussianProcessSurrogate.on, standardise))


def gaussian_copula_process() -> StatelessLearner:
    """Return the learner of a GP on Gaussian scores, robust to outliers and monotone scales."""
    return StatelessLearner("gcp", partial(GaussianProcessSurrogate.on, copula_scores))


def smooth_copula_process() -> StatelessLearner:
    """Return the learner of a GP on smoothed scores, which still refines where many trials lie."""
    return StatelessLearner("gcp-smooth", _smooth)


def _smooth(target: Target) -> Surrogate:
    if len(target.objectives) > 1:
        return FrontSurrogate.of(target)
    return GaussianProcessSurrogate.on(smooth_scores, target)
