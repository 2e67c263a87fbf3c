"""Training the network in JAX: on past tasks (Algorithm 1), or on the target's own trials."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TypeAlias

import jax.numpy as jnp
import numpy as np

from foretune.arrays import Floats
from foretune.learning import CachedOnPool, PastTask
from foretune.methods.pipeline.layout import Layout, Singles
from foretune.methods.pipeline.model import DeepPipe, Latent
from foretune.methods.pipeline.network import Embedding
from foretune.numerics.anchored import informative_subset
from foretune.numerics.deep_kernel import (
    LEAST_NOISE,
    Curriculum,
    DeepKernel,
    Kernel,
    Schedule,
    fine_tune,
    initial_kernel,
    meta_train,
)
from foretune.numerics.objectives import scalarise
from foretune.numerics.training import as_arrays, bucket, keep_compiled
from foretune.progress import Progress
from foretune.space import Encoded

RATE = 3e-3
MOST_TUNED = 128
"""The network is tuned to at most so many of the target's trials."""
LEAST_PADDED = 16
CACHED = 8

Parts: TypeAlias = Sequence[tuple[Singles, Singles]]
"""Arrays like a network's layers: 1 where a weight may move."""


def untrained(layout: Layout, configs: Encoded, seed: int) -> DeepPipe:
    """A random network, with a lengthscale that suits the embeddings of these configurations."""
    embedding = Embedding(layout)
    layers = embedding.initial(np.random.default_rng(seed))
    kernel = initial_kernel(embedding.embed(layers, configs).astype(np.float32))
    return _model(layout, DeepKernel(list(layers), kernel))


def meta_trained(
    start: DeepPipe,
    configs: Encoded,
    tasks: Sequence[PastTask],
    validation: Sequence[PastTask],
    *,
    seed: int,
    progress: Progress,
) -> DeepPipe:
    """The network and kernel that make the validation tasks most probable (Algorithm 1).

    The tasks' rows are of `configs`.
    """
    keep_compiled()
    layout = start.layout
    trained = meta_train(
        Embedding(layout),
        _deep_kernel(start),
        Curriculum(layout.read(configs), tasks, validation),
        seed=seed,
        schedule=schedule_for(tasks),
        progress=progress,
    )
    return _model(layout, trained)


def schedule_for(tasks: Sequence[PastTask]) -> Schedule:
    """Batches as large as the past allows, and a look at the validation tasks once an epoch."""
    at_once = bucket(min(len(tasks), 16), least=2)
    largest = max(len(task.rows) for task in tasks)
    return Schedule(
        tasks=at_once,
        observations=bucket(min(largest, 64), least=8),
        rate=RATE,
        chunk=int(np.clip(4 * len(tasks) // at_once, 10, 100)),
        most_chunks=150,
        patience=10,
    )


@dataclass(frozen=True)
class Tuned:
    """A network that is tuned to the target's own trials, the whole or the parts that are new."""

    start: DeepPipe
    transform: Callable[[Floats], Floats]
    pool: Encoded | None
    trainable: Parts | None = None
    """Which weights move; all, and the kernel too, where None."""
    steps: int = 100
    growth: float = 1.0
    """It is tuned again whenever the trials have grown by this factor, always from `start`."""
    _known: dict[bytes, tuple[DeepPipe, Latent]] = field(default_factory=dict)

    def after(self, configs: Encoded, losses: Floats) -> tuple[DeepPipe, Latent]:
        """The network tuned to the last prefix of the trials (n, L) that is due."""
        n = last_due(len(losses), self.growth)
        prefix = configs.take(np.arange(n))
        key = sha256(prefix.values.tobytes() + losses[:n].tobytes()).digest()
        if key not in self._known:
            if len(self._known) >= CACHED:
                del self._known[next(iter(self._known))]
            tuned = self._tuned(prefix, scalarise(losses[:n], self.transform))
            self._known[key] = (tuned, CachedOnPool(tuned.latent, self.pool))
        return self._known[key]

    def _tuned(self, configs: Encoded, y: Floats) -> DeepPipe:
        read = self.start.layout.read(configs)
        kept = informative_subset(read.astype(np.float64), y, MOST_TUNED)
        places = bucket(len(kept), least=LEAST_PADDED)
        x = np.zeros((places, read.shape[1]), dtype=np.float32)
        z = np.zeros(places, dtype=np.float32)
        x[: len(kept)], z[: len(kept)] = read[kept], y[kept]
        keep_compiled()
        tuned = fine_tune(
            Embedding(self.start.layout),
            _deep_kernel(self.start),
            x,
            z,
            np.arange(places) < len(kept),
            steps=self.steps,
            rate=RATE,
            trainable=None if self.trainable is None else _only(self.trainable),
        )
        return _model(self.start.layout, tuned)


def last_due(n: int, growth: float) -> int:
    """The largest of 1, 2, ... that is at most n, each at least `growth` times the one before."""
    due = 1
    while (later := max(due + 1, round(due * growth))) <= n:
        due = later
    return due


def _deep_kernel(model: DeepPipe) -> DeepKernel:
    noise = np.log(max(np.exp(model.log_noise) - LEAST_NOISE, 1e-12))
    kernel = Kernel(
        jnp.full(1, model.log_lengthscale, dtype=jnp.float32),
        jnp.asarray(model.log_signal, dtype=jnp.float32),
        jnp.asarray(noise, dtype=jnp.float32),
    )
    return DeepKernel(list(model.layers), kernel)


def _model(layout: Layout, trained: DeepKernel) -> DeepPipe:
    hyper = trained.hyper(1)
    return DeepPipe(
        layout,
        as_arrays(trained.network),
        float(hyper.log_lengthscales[0]),
        hyper.log_signal,
        hyper.log_noise,
    )


def _only(parts: Parts) -> DeepKernel:
    """A mask over all parameters: these weights, and nothing of the kernel."""
    fixed = jnp.asarray(False)
    layers = [(weights > 0, biases > 0) for weights, biases in parts]
    return DeepKernel(layers, Kernel(fixed, fixed, fixed))
