"""The surrogate: an exact Gaussian process on embedded pipelines (Algorithm 2).

The latent space is scaled so that the kernel which past tasks taught is the most probable one
before any trial; each trial then fits the process's few hyperparameters from there, in double
precision, at the cost of a plain Gaussian process.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from foretune.arrays import Floats
from foretune.contracts import Observations, Posterior, Prediction
from foretune.learning import CachedOnPool
from foretune.methods.pipeline.layout import Layout
from foretune.methods.pipeline.network import Embedding
from foretune.numerics.anchored import LARGEST_FIT, LARGEST_GP, informative_subset
from foretune.numerics.gp import GP, fit_hyper
from foretune.numerics.hyper import GPHyper
from foretune.numerics.networks import Layers
from foretune.numerics.objectives import scalarise
from foretune.space import Encoded

Latent = CachedOnPool[Floats]
"""Configurations -> their scaled embeddings (n, latent)."""


@dataclass(frozen=True, slots=True)
class DeepPipe:
    """A trained network and its kernel."""

    layout: Layout
    layers: Layers
    log_lengthscale: float
    """Of all latent dimensions alike: the network sets their scales."""
    log_signal: float
    log_noise: float

    def latent(self, configs: Encoded) -> Floats:
        """(n, latent), scaled so that the learnt lengthscale is the process's most probable one."""
        scale = np.exp(self.start.log_lengthscales[0] - self.log_lengthscale)
        scaled: Floats = Embedding(self.layout).embed(self.layers, configs) * scale
        return scaled

    @property
    def start(self) -> GPHyper:
        """The learnt kernel in the scaled latent space."""
        default = GPHyper.default(one_group(self.layout.sizes.latent))
        return GPHyper(default.log_lengthscales, self.log_signal, self.log_noise)


def one_group(width: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """All latent dimensions share one lengthscale."""
    return np.zeros(width, dtype=np.int64)


class Source(Protocol):
    """Where the network for some observations comes from."""

    def after(self, configs: Encoded, losses: Floats) -> tuple[DeepPipe, Latent]:
        """The network after the target's trials (n, L) so far: a pure function of them."""


@dataclass(frozen=True, slots=True)
class Learnt:
    """The network of past tasks, whatever the target's trials."""

    model: DeepPipe
    latent: Latent

    @classmethod
    def on(cls, model: DeepPipe, pool: Encoded | None) -> "Learnt":
        """With the pool's embeddings computed once."""
        return cls(model, CachedOnPool(model.latent, pool))

    def after(self, configs: Encoded, losses: Floats) -> tuple[DeepPipe, Latent]:
        """Always the same."""
        del configs, losses
        return self.model, self.latent


@dataclass(frozen=True, slots=True)
class LatentPosterior:
    """A conditioned process in the latent space, read at configurations."""

    latent: Latent
    model: GP
    best: float

    def predict(self, x: Encoded) -> Prediction:
        """Mean and standard deviation of the transformed loss."""
        return Prediction(*self.model.predict(self.latent(x)))

    def sample(self, x: Encoded, n: int, *, seed: int) -> Floats:
        """Joint draws of the transformed loss."""
        return self.model.sample(self.latent(x), n, np.random.default_rng(seed))


@dataclass(frozen=True, slots=True)
class DeepPipeSurrogate:
    """Tunes the kernel to what was observed, then conditions on the believed rows too."""

    source: Source
    transform: Callable[[Floats], Floats]
    notes: tuple[str, ...] = ()
    """What the target's space has that the past tasks' had not."""

    def condition(self, seen: Observations, *, seed: int) -> Posterior:
        """The process after all successful trials."""
        del seed
        good = seen.successes()
        real = ~good.believed
        y = scalarise(good.losses, self.transform)
        told = good.configs.take(np.flatnonzero(real))
        learnt, latent = self.source.after(told, good.losses[real])
        u = latent(good.configs)
        hyper = _tuned(u[real], scalarise(good.losses[real], self.transform), learnt)
        keep = informative_subset(u, y, LARGEST_GP)
        return LatentPosterior(latent, GP.condition(u[keep], y[keep], hyper), float(y[real].min()))


def _tuned(u: Floats, y: Floats, learnt: DeepPipe) -> GPHyper:
    """FineTune of Algorithm 2: the kernel's parameters alone, always from the learnt ones."""
    keep = informative_subset(u, y, LARGEST_FIT)
    groups = one_group(u.shape[1])
    return fit_hyper(u[keep], y[keep], starts=(learnt.start,), groups=groups)
