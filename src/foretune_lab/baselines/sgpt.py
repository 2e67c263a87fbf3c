"""SGPT: each past task has its own Gaussian process, which votes if it ranks as the target does.

Wistuba et al. (2018), as in the copula paper's appendix B. The process of a past task is fitted
once. The better a process ranks the target's trials, the higher is its weight in the transfer
acquisition function: the weighted mean of the target's expected improvement and of the
improvements that the past processes predict.
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
from foretune.numerics import (
    Floats,
    copula_scores,
    expected_improvement,
    log_of_improvement,
    scalarise,
    standardise,
)
from foretune.space import Encoded
from foretune_lab.baselines.agreement import PEAK, epanechnikov, rank_distances

LIMITS = SourceLimits(evaluations=1000, fitted=300)
BANDWIDTH = 0.01
"""rho: a past task counts only while it misranks less than this share of the pairs of trials."""


@dataclass(frozen=True, slots=True)
class TransferPosterior(Posterior):
    """The target's own posterior, and the past processes, weighted by their agreement with it."""

    own: Posterior
    past_means: Sequence[Callable[[Encoded], Floats]]
    """For each of M past processes: configurations -> means (len(x),)."""
    weights: Floats
    """(M,), the weight of each past process."""
    past_best: Floats
    """(M,), the lowest mean of each past process at the target's trials."""

    @property
    def best(self) -> float:
        """The lowest loss of the target, transformed."""
        return self.own.best

    def predict(self, x: Encoded) -> Prediction:
        """Return the target's own prediction."""
        return self.own.predict(x)

    def sample(self, x: Encoded, n: int, *, seed: int) -> Floats:
        """Draw from the target's own posterior."""
        return self.own.sample(x, n, seed=seed)

    def log_utility(self, x: Encoded) -> Floats:
        """Return (len(x),), the log of the transfer acquisition function (a mean improvement)."""
        own = self.own.predict(x)
        total = PEAK * expected_improvement(own.mean, own.std, self.own.best)
        for number in np.flatnonzero(self.weights).tolist():
            predicted = self.past_best[number] - self.past_means[number](x)
            total += self.weights[number] * np.maximum(predicted, 0.0)
        return log_of_improvement(total / (PEAK + float(self.weights.sum())))


@dataclass(frozen=True, slots=True)
class TransferSurrogate(Surrogate):
    """The target's process beside those of the past tasks."""

    own: GaussianProcessSurrogate
    output: Callable[[Floats], Floats]
    voices: Voices
    past_at_trials: ExpectedLosses
    bandwidth: float

    def condition(self, seen: Observations, *, seed: int) -> Posterior:
        """Return the posterior after all successful trials; observed ones decide the weights."""
        good = seen.successes()
        real = ~good.believed
        predicted = self.past_at_trials(good.configs.x)
        z = scalarise(good.losses[real], self.output)
        weights = epanechnikov(rank_distances(z, predicted[:, real]), self.bandwidth)
        own = self.own.condition(seen, seed=seed)
        return TransferPosterior(own, self.voices.means, weights, predicted.min(axis=1))


def voting(
    output: Callable[[Floats], Floats], bandwidth: float, voices: Voices, target: Target
) -> Surrogate:
    """Make a surrogate of losses that `output` has brought to the past processes' unit."""
    own = GaussianProcessSurrogate.on(output, target)
    return TransferSurrogate(own, output, voices, ExpectedLosses(voices.stacked), bandwidth)


def sgpt() -> SourcesLearner:
    """Make the learner of SGPT on standardised losses."""
    return SourcesLearner("sgpt", standardise, LIMITS, partial(voting, standardise, BANDWIDTH))


def sgpt_copula() -> SourcesLearner:
    """Make the learner of SGPT on Gaussian scores of the losses."""
    listen = partial(voting, copula_scores, BANDWIDTH)
    return SourcesLearner("sgpt-copula", copula_scores, LIMITS, listen)
