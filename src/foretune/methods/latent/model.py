"""The surrogate of CASH on a shared latent space: a multi-task process (section 3.1).

Every algorithm is a task of one coregionalised Gaussian process whose inputs are the embedded
hyperparameters. Its prior mean is the bowl that pre-training has made of the source's losses.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from foretune.arrays import Floats, Ints
from foretune.contracts import Observations, Posterior, Prediction, Target
from foretune.learning import CachedOnPool
from foretune.methods.latent.embedding import Embedding, Stack, activations
from foretune.methods.latent.fit import Fitted, HeadFit, Trials
from foretune.methods.latent.sources import BOWL, most_likely
from foretune.numerics.anchored import LARGEST_FIT, LARGEST_GP, informative_subset
from foretune.numerics.coregion import CoregionalGP, HyperPrior
from foretune.numerics.objectives import scalarise
from foretune.numerics.transforms import standardise
from foretune.space import Encoded
from foretune.space.algorithms import Algorithms

ALPHA = 1e-3
"""How much staying near the pre-trained weights counts (Equation 5)."""
FLAT = (0.0, 0.0)
"""The slope's prior where no source has made a bowl."""
TRIALS_PER_ALGORITHM = 2
"""The initial design of the paper."""


@dataclass(frozen=True, slots=True)
class LatentPosterior:
    """A conditioned process, read at encoded configurations."""

    algorithms: Algorithms
    features: Callable[[Encoded], Floats]
    head: Stack
    process: CoregionalGP
    best: float

    def predict(self, x: Encoded) -> Prediction:
        """Mean and standard deviation of the transformed loss, without noise."""
        which = self.algorithms.chosen(x)
        return Prediction(*self.process.predict(self.place(x), which))

    def sample(self, x: Encoded, n: int, *, seed: int) -> Floats:
        """Joint draws of the transformed loss."""
        which = self.algorithms.chosen(x)
        return self.process.sample(self.place(x), which, n, np.random.default_rng(seed))

    def place(self, x: Encoded) -> Floats:
        """(n, d), the latent coordinates after the fit."""
        return activations(self.head, self.features(x), self.algorithms.chosen(x))[-1]


@dataclass(frozen=True, slots=True)
class LatentSurrogate:
    """Fits the process and the head of one embedding to the target's trials."""

    embedding: Embedding
    features: Callable[[Encoded], Floats]
    fit: HeadFit

    def condition(self, seen: Observations, *, seed: int) -> Posterior:
        """The belief after all successful trials; what is fitted follows the observed ones."""
        del seed
        good = seen.successes()
        algorithms = self.embedding.algorithms
        features, which = self.features(good.configs), algorithms.chosen(good.configs)
        z, real = self.fit.output(good.losses), ~good.believed
        observed = np.flatnonzero(real)
        known = observed[informative_subset(good.configs.x[real], z[real], LARGEST_FIT)]
        fitted = self.fit(Trials(features[known], which[known], good.losses[known]))
        keep = informative_subset(good.configs.x, z, LARGEST_GP)
        process = self._process(fitted, features[keep], which[keep], z[keep])
        return LatentPosterior(
            algorithms, self.features, fitted.head, process, float(z[real].min())
        )

    def _process(self, fitted: Fitted, features: Floats, which: Ints, z: Floats) -> CoregionalGP:
        u = activations(fitted.head, features, which)[-1]
        return CoregionalGP.condition(u, which, z, fitted.hyper)


@dataclass(frozen=True)
class ChoosingSurrogate:
    """Takes the embedding that the target's first trials speak for, and goes on with it.

    Only as many trials as the initial design has are asked, so the choice settles when it is over.
    """

    embeddings: tuple[Embedding, ...]
    target: Target
    _made: dict[int, LatentSurrogate] = field(default_factory=dict)

    def condition(self, seen: Observations, *, seed: int) -> Posterior:
        """The belief of the chosen embedding's surrogate."""
        return self._surrogate(self._chosen(seen)).condition(seen, seed=seed)

    def _chosen(self, seen: Observations) -> int:
        good = seen.successes()
        first = TRIALS_PER_ALGORITHM * len(self.embeddings[0].algorithms)
        real = np.flatnonzero(~good.believed)[:first]
        configs, losses = good.configs.take(real), good.losses[real]
        return most_likely(self.embeddings, configs, _output(losses))

    def _surrogate(self, chosen: int) -> LatentSurrogate:
        if chosen not in self._made:
            self._made[chosen] = latent_surrogate(self.embeddings[chosen], self.target)
        return self._made[chosen]


def latent_surrogate(embedding: Embedding, target: Target) -> LatentSurrogate:
    """The surrogate that an embedding gives for one task."""
    algorithms, pre_trained = embedding.algorithms, embedding.movable < len(embedding.stack)
    weights = sum(array[0].size for layer in embedding.stack for array in layer)
    fit = HeadFit(
        embedding.head,
        HyperPrior.of(len(algorithms), BOWL if pre_trained else FLAT),
        np.full(len(algorithms), ALPHA / weights if pre_trained else 0.0),
        _output,
    )
    return LatentSurrogate(embedding, CachedOnPool(embedding.features, target.pool), fit)


def _output(losses: Floats) -> Floats:
    """Losses (n, L) as the process models them (n,)."""
    return scalarise(losses, standardise)
