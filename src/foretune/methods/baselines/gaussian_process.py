"""Plain Gaussian-process optimisation: the target's own trials and nothing else.

On standardised losses this is the usual GP; on Gaussian scores it is the Gaussian Copula Process
without a prior (copula paper, section 4.2).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from foretune.arrays import Floats
from foretune.contracts import Observations, Posterior, Prediction
from foretune.methods.baselines.stateless import StatelessLearner
from foretune.numerics.anchored import AnchoredFit
from foretune.numerics.gp import GP
from foretune.numerics.objectives import scalarise
from foretune.numerics.transforms import copula_scores, standardise
from foretune.space import Encoded


@dataclass(frozen=True, slots=True)
class GaussianProcessPosterior:
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
class GaussianProcessSurrogate:
    """Fits hyperparameters to what was observed, then conditions on the believed rows too."""

    output: Callable[[Floats], Floats]
    fit: AnchoredFit = field(default_factory=AnchoredFit)

    def condition(self, seen: Observations, *, seed: int) -> Posterior:
        """The GP's belief after all successful trials."""
        del seed
        good = seen.successes()
        y = scalarise(good.losses, self.output)
        real = ~good.believed
        hyper = self.fit.hyper(good.configs.x[real], y[real])
        model = GP.condition(good.configs.x, y, hyper)
        return GaussianProcessPosterior(model, float(y[real].min()))


def gaussian_process() -> StatelessLearner:
    """The usual GP, on standardised losses."""
    return StatelessLearner("gp", partial(GaussianProcessSurrogate, standardise))


def gaussian_copula_process() -> StatelessLearner:
    """The same GP on Gaussian scores: robust to outliers and to any monotone scale."""
    return StatelessLearner("gcp", partial(GaussianProcessSurrogate, copula_scores))
