"""Plain Gaussian-process optimisation: the target's own trials and nothing else.

On standardised losses this is the usual GP; on Gaussian scores it is the Gaussian Copula Process
without a prior (copula paper, section 4.2), and on smoothed ones what `auto` uses. Several
objectives are averaged (section 5.2), but by what `auto` uses (`front`).
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
        """Mean and standard deviation of the transformed loss."""
        return Prediction(*self.model.predict(x.x))

    def sample(self, x: Encoded, n: int, *, seed: int) -> Floats:
        """Joint draws of the transformed loss."""
        return self.model.sample(x.x, n, np.random.default_rng(seed))


@dataclass(frozen=True, slots=True)
class GaussianProcessSurrogate(Surrogate):
    """Fits hyperparameters to what was observed, then conditions on the believed rows too."""

    fit: AnchoredFit

    @classmethod
    def on(cls, transform: Callable[[Floats], Floats], target: Target) -> Self:
        """A surrogate of losses that `transform` has brought to one unit."""
        output = partial(scalarise, transform=transform)
        return cls(AnchoredFit(output=output, groups=target.space.column_groups))

    def condition(self, seen: Observations, *, seed: int) -> Posterior:
        """The GP's belief after all successful trials."""
        del seed
        good = seen.successes()
        x, y, real = good.configs.x, self.fit.output(good.losses), ~good.believed
        hyper = self.fit.hyper(x[real], good.losses[real])
        keep = informative_subset(x, y, LARGEST_GP)
        return GaussianProcessPosterior(GP.condition(x[keep], y[keep], hyper), float(y.min()))


def gaussian_process() -> StatelessLearner:
    """The usual GP, on standardised losses."""
    return StatelessLearner("gp", partial(GaussianProcessSurrogate.on, standardise))


def gaussian_copula_process() -> StatelessLearner:
    """The same GP on Gaussian scores: robust to outliers and to any monotone scale."""
    return StatelessLearner("gcp", partial(GaussianProcessSurrogate.on, copula_scores))


def smooth_copula_process() -> StatelessLearner:
    """The same on smoothed scores: robust as these, and it goes on refining where trials gather."""
    return StatelessLearner("gcp-smooth", _smooth)


def _smooth(target: Target) -> Surrogate:
    if len(target.objectives) > 1:
        return FrontSurrogate.of(target)
    return GaussianProcessSurrogate.on(smooth_scores, target)
