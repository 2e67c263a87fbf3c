"""TST and TAF: past processes weighted by a kernel over how they rank the target's trials.

The two-stage transfer surrogate (Wistuba et al., 2016) averages the expectations of the past
processes and of the target's own, with the uncertainty of the target's own. The transfer
acquisition function (Wistuba et al., 2018) averages improvements instead; it is SGPT with a wider
bandwidth. Both are the ranking variants (TST-R, TAF-R), which need no meta-features.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from foretune.methods import (
    ExpectedLosses,
    GaussianProcessSurrogate,
    Observations,
    Posterior,
    Prediction,
    SourceLimits,
    SourcesLearner,
    Surrogate,
    Target,
    Voices,
)
from foretune.numerics import Floats, scalarise, standardise
from foretune.space import Encoded
from foretune_lab.baselines.agreement import PEAK, epanechnikov, rank_distances
from foretune_lab.baselines.sgpt import voting

LIMITS = SourceLimits(evaluations=1000, fitted=300, tasks=100)
"""Only means of past processes are read, so large ones are affordable."""
BANDWIDTH = 0.1
"""rho: a past task counts while it misranks less than this share of the pairs of trials."""


@dataclass(frozen=True, slots=True)
class TwoStagePosterior(Posterior):
    """A weighted mean of expectations, with the uncertainty of the target's own process."""

    own: Posterior
    past_means: Sequence[Callable[[Encoded], Floats]]
    """For each of M past processes: configurations -> means (len(x),)."""
    weights: Floats
    """(M,), the weight of each past process; the weight of the target's own is `PEAK`."""
    best: float
    """The lowest of the weighted means at the trials."""

    def predict(self, x: Encoded) -> Prediction:
        """Return the weighted mean, and the target's own standard deviation."""
        own = self.own.predict(x)
        return Prediction(self._mix(own.mean, x), own.std)

    def sample(self, x: Encoded, n: int, *, seed: int) -> Floats:
        """Return the target's own draws, moved to the weighted mean."""
        own = self.own.predict(x).mean
        return self.own.sample(x, n, seed=seed) + (self._mix(own, x) - own)

    def _mix(self, own: Floats, x: Encoded) -> Floats:
        total = PEAK * own
        for number in np.flatnonzero(self.weights).tolist():
            total += self.weights[number] * self.past_means[number](x)
        return total / (PEAK + float(self.weights.sum()))


@dataclass(frozen=True, slots=True)
class TwoStageSurrogate(Surrogate):
    """The target's process mixed with those of the past tasks that agree with its trials."""

    own: GaussianProcessSurrogate
    output: Callable[[Floats], Floats]
    voices: Voices
    past_at_trials: ExpectedLosses

    def condition(self, seen: Observations, *, seed: int) -> Posterior:
        """Return the posterior after all successful trials; observed ones decide the weights."""
        good = seen.successes()
        real = np.flatnonzero(~good.believed)
        predicted = self.past_at_trials(good.configs.x)
        z = scalarise(good.losses[real], self.output)
        weights = epanechnikov(rank_distances(z, predicted[:, real]), BANDWIDTH)
        own = self.own.condition(seen, seed=seed)
        at_trials = PEAK * own.predict(good.configs).mean + weights @ predicted
        best = float(at_trials.min()) / (PEAK + float(weights.sum()))
        return TwoStagePosterior(own, self.voices.means, weights, best)


def _mixing(output: Callable[[Floats], Floats], voices: Voices, target: Target) -> Surrogate:
    own = GaussianProcessSurrogate.on(output, target)
    return TwoStageSurrogate(own, output, voices, ExpectedLosses(voices.stacked))


def tst() -> SourcesLearner:
    """Make the learner of the two-stage transfer surrogate."""
    return SourcesLearner("tst", standardise, LIMITS, partial(_mixing, standardise))


def taf() -> SourcesLearner:
    """Make the learner of the transfer acquisition function."""
    return SourcesLearner("taf", standardise, LIMITS, partial(voting, standardise, BANDWIDTH))
