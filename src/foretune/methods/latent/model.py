"""The surrogate of CASH on a shared latent space: a multi-task process (section 3.1).

Each algorithm is a task of one coregionalised Gaussian process whose inputs are the embedded
hyperparameters. The prior mean is the bowl that pre-training has learnt from a source's losses, or
the average bowl of several sources that agree with the target's first trials.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from foretune._base.arrays import Floats
from foretune.methods.contracts import Observations, Posterior, Prediction, Surrogate, Target
from foretune.methods.latent.embedding import AlgorithmEmbedding, Bowls, Stack, activations
from foretune.methods.latent.fit import HeadFit, Trials
from foretune.methods.latent.sources import panel
from foretune.methods.past_data import CachedOnPool
from foretune.numerics.anchored import LARGEST_FIT, LARGEST_GP, informative_subset
from foretune.numerics.coregion import CoregionalGP, CoregionPoints, HyperPrior
from foretune.numerics.objectives import scalarise
from foretune.numerics.scores import without_penalties
from foretune.numerics.transforms import standardise
from foretune.space import Encoded
from foretune.space.algorithms import Algorithms

ALPHA = 1e5
"""The penalty of moving away from the pre-trained weights (Equation 5).

With 1e-3, as in the paper, the likelihood of two dozen trials moves hundreds of weights freely.
"""
BOWL = (0.7, 0.5)
"""Mode and spread of the prior over the bowl's slope, for losses of standard deviation 1."""
FLAT = (0.0, 0.0)
"""The prior of the slope if no source has made a bowl."""
TRIALS_PER_ALGORITHM = 2
"""The initial design of the paper."""
LEAST_HEARD = 10
"""The least number of trials that choose the sources, even with few algorithms."""


@dataclass(frozen=True, slots=True)
class LatentPosterior(Posterior):
    """A conditioned process, read at encoded configurations."""

    algorithms: Algorithms
    features: Callable[[Encoded], Floats]
    beside: Callable[[Encoded], Floats]
    head: Stack
    process: CoregionalGP
    best: float

    def predict(self, x: Encoded) -> Prediction:
        """Return mean and standard deviation of the transformed loss, without noise."""
        return Prediction(*self.process.predict(self.points(x)))

    def sample(self, x: Encoded, n: int, *, seed: int) -> Floats:
        """Draw the transformed losses jointly."""
        return self.process.sample(self.points(x), n, np.random.default_rng(seed))

    def points(self, x: Encoded) -> CoregionPoints:
        """Return the latent coordinates after the fit."""
        which = self.algorithms.algorithm_of(x)
        return CoregionPoints(
            activations(self.head, self.features(x), which)[-1], which, self.beside(x)
        )


@dataclass(frozen=True, slots=True)
class LatentSurrogate(Surrogate):
    """Fits the process and the head of one embedding to the target's trials."""

    embedding: AlgorithmEmbedding
    features: Callable[[Encoded], Floats]
    beside: Callable[[Encoded], Floats]
    """(n, k), the bowls of other sources."""
    fit: HeadFit

    def condition(self, seen: Observations, *, seed: int) -> Posterior:
        """Return the posterior after all successful trials. The fit uses observed ones only."""
        del seed
        good = seen.successes()
        algorithms = self.embedding.algorithms
        trials = Trials(
            self.features(good.configs),
            algorithms.algorithm_of(good.configs),
            self.beside(good.configs),
            good.losses,
        )
        z, real = self.fit.output(good.losses), ~good.believed
        observed = np.flatnonzero(real)
        known = observed[informative_subset(good.configs.x[real], z[real], LARGEST_FIT)]
        fitted = self.fit(trials.take(known))
        keep = informative_subset(good.configs.x, z, LARGEST_GP)
        process = CoregionalGP.condition(
            trials.take(keep).place(fitted.head), z[keep], fitted.hyper
        )
        return LatentPosterior(
            algorithms, self.features, self.beside, fitted.head, process, float(z.min())
        )


@dataclass(frozen=True)
class ChoosingSurrogate(Surrogate):
    """Chooses the sources that agree with the target's first trials, and keeps them.

    Only the trials of the initial design choose, so the choice is final after the design. The first
    source gives the embedding, and the others lend their bowls to the prior mean.
    """

    embeddings: tuple[AlgorithmEmbedding, ...]
    preferences: Floats
    """(S,), the preference of the ranking model for each source, from 0 to 1."""
    target: Target
    _chosen: dict[bytes, tuple[int, ...]] = field(default_factory=dict)
    _made: dict[tuple[int, ...], LatentSurrogate] = field(default_factory=dict)

    def condition(self, seen: Observations, *, seed: int) -> Posterior:
        """Return the posterior of the chosen sources' surrogate."""
        good = seen.successes()
        first = max(TRIALS_PER_ALGORITHM * len(self.embeddings[0].algorithms), LEAST_HEARD)
        real = np.flatnonzero(~good.believed)[:first]
        chosen = self.choose_sources(good.configs.take(real), good.losses[real])
        if chosen not in self._made:
            best, *others = (self.embeddings[source] for source in chosen)
            self._made[chosen] = latent_surrogate(best, self.target, beside=others)
        return self._made[chosen].condition(seen, seed=seed)

    def choose_sources(self, configs: Encoded, losses: Floats) -> tuple[int, ...]:
        """Return the sources for a target with these losses (n, L)."""
        key = configs.x.tobytes() + losses.tobytes()
        if key not in self._chosen:
            self._chosen[key] = panel(self.embeddings, self.preferences, configs, _output(losses))
        return self._chosen[key]


def latent_surrogate(
    embedding: AlgorithmEmbedding, target: Target, *, beside: Sequence[AlgorithmEmbedding] = ()
) -> LatentSurrogate:
    """Return the surrogate of an embedding for one task. beside: sources that lend their bowls."""
    algorithms, pre_trained = embedding.algorithms, embedding.movable < len(embedding.stack)
    weights = sum(array[0].size for layer in embedding.stack for array in layer)
    fit = HeadFit(
        embedding.head,
        HyperPrior.of(len(algorithms), BOWL if pre_trained else FLAT),
        np.full(len(algorithms), ALPHA / weights if pre_trained else 0.0),
        _output,
    )

    return LatentSurrogate(
        embedding,
        CachedOnPool(embedding.features, target.pool),
        CachedOnPool(Bowls.of(beside) if beside else _no_bowls, target.pool),
        fit,
    )


def _no_bowls(x: Encoded) -> Floats:
    return np.empty((len(x), 0))


def _output(losses: Floats) -> Floats:
    """Return losses (n, L) as the process models them, (n,)."""
    return scalarise(losses, lambda y: standardise(without_penalties(y)))
