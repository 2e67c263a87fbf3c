"""Training the network in JAX: on past tasks (Algorithm 1), or on the target's own trials."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import TypeAlias

import jax.numpy as jnp
import numpy as np

from foretune._base.arrays import Floats
from foretune._base.progress import Progress
from foretune.methods.past_data import CachedOnPool, PastTask
from foretune.methods.pipeline.layout import NetworkLayout, Singles
from foretune.methods.pipeline.model import DeepPipe, Places
from foretune.methods.pipeline.network import PipelineEmbedding
from foretune.numerics.anchored import informative_subset
from foretune.numerics.bounded_cache import BoundedCache
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
from foretune.numerics.training import as_arrays, bucket, cache_compilation
from foretune.space import Encoded

MOST_TASKS, MOST_OBSERVATIONS = 16, 64
"""The most tasks and observations of each that one step learns from."""
TUNING_RATE = 3e-3
MOST_TUNED = 128
"""The most trials of the target that the network is tuned to."""
LEAST_PADDED = 16
MOST_REFRESHED = 4
"""The most chunks of a training that goes on from an earlier network."""
CACHED = 8

Parts: TypeAlias = Sequence[tuple[Singles, Singles]]
"""Arrays like the layers of a network, with 1 for each weight that may move."""


def initial_network(layout: NetworkLayout, configs: Encoded, seed: int) -> DeepPipe:
    """Return a random network whose lengthscale suits the embeddings of these configurations."""
    embedding = PipelineEmbedding(layout)
    layers = embedding.initial(np.random.default_rng(seed))
    kernel = initial_kernel(embedding.embed(layers, configs)[0].astype(np.float32))
    return _model(layout, DeepKernel(list(layers), kernel))


def train_on_past_tasks(
    start: DeepPipe,
    configs: Encoded,
    tasks: Sequence[PastTask],
    validation: Sequence[PastTask],
    *,
    seed: int,
    progress: Progress,
    schedules: Sequence[Schedule] | None = None,
    train_network: Callable[..., DeepKernel] = meta_train,
) -> DeepPipe:
    """Return the network and kernel that make the validation tasks most probable (Algorithm 1).

    The tasks' rows are rows of `configs`. schedules: default: as suits the number of tasks.
    """
    cache_compilation()
    layout = start.layout
    curriculum = Curriculum(layout.read(configs), tasks, validation)
    trained = _deep_kernel(start)
    for number, schedule in enumerate(schedules or schedules_for(tasks)):
        trained = train_network(
            PipelineEmbedding(layout),
            trained,
            curriculum,
            seed=seed + number,
            schedule=schedule,
            progress=progress,
        )
    return _model(layout, trained)


def schedules_for(tasks: Sequence[PastTask]) -> list[Schedule]:
    """Return three schedules of falling rate with batches as large as past tasks allow.

    A network soon knows few tasks by heart, so these get fewer looks and fewer steps between them.
    """
    effort = float(np.clip(len(tasks) / 100, 0.2, 1.0))
    at_once = bucket(min(len(tasks), MOST_TASKS), least=2)
    largest = max(len(task.rows) for task in tasks)
    return [
        Schedule(
            tasks=at_once,
            observations=bucket(min(largest, MOST_OBSERVATIONS), least=8),
            rate=rate,
            chunk=round(100 * effort),
            most_chunks=round(chunks * effort),
            patience=patience,
        )
        for rate, chunks, patience in ((3e-3, 90, 12), (1e-3, 40, 6), (3e-4, 20, 4))
    ]


def refreshing(tasks: Sequence[PastTask]) -> list[Schedule]:
    """Return a short training at the lowest rate, for a network that knows nearly all tasks."""
    *_, last = schedules_for(tasks)
    return [replace(last, most_chunks=MOST_REFRESHED)]


@dataclass(frozen=True)
class TunedNetwork:
    """A network whose weights (all, or new ones only) are tuned to the target's own trials."""

    start: DeepPipe
    pool: Encoded | None
    trainable: Parts | None = None
    """The weights that move; None means all, and the kernel too."""
    steps: int = 100
    growth: float = 1.0
    """The network is tuned again, from `start`, when the trials have grown by this factor."""
    most_trials: int = MOST_TUNED
    fine_tune: Callable[..., DeepKernel] = fine_tune
    _known: BoundedCache[tuple[DeepPipe, Places]] = field(
        default_factory=lambda: BoundedCache(CACHED)
    )

    def after(self, configs: Encoded, losses: Floats) -> tuple[DeepPipe, Places]:
        """Return the network tuned to the last prefix of the trials (n, L) that is due."""
        n = last_due(len(losses), self.growth)
        prefix = configs.take(np.arange(n))
        key = sha256(prefix.values.tobytes() + losses[:n].tobytes()).digest()
        return self._known.get(key, lambda: self._find(prefix, losses[:n]))

    def _find(self, configs: Encoded, losses: Floats) -> tuple[DeepPipe, Places]:
        tuned = self._tune(configs, self.start.scores(losses, self.start.place(configs)))
        return tuned, CachedOnPool(tuned.place, self.pool)

    def _tune(self, configs: Encoded, y: Floats) -> DeepPipe:
        read = self.start.layout.read(configs)
        kept = informative_subset(read.astype(np.float64), y, self.most_trials)
        places = bucket(len(kept), least=LEAST_PADDED)
        x = np.zeros((places, read.shape[1]), dtype=np.float32)
        z = np.zeros(places, dtype=np.float32)
        x[: len(kept)], z[: len(kept)] = read[kept], y[kept]
        cache_compilation()
        tuned = self.fine_tune(
            PipelineEmbedding(self.start.layout),
            _deep_kernel(self.start),
            x,
            z,
            np.arange(places) < len(kept),
            steps=self.steps,
            rate=TUNING_RATE,
            trainable=None if self.trainable is None else _only(self.trainable),
        )
        return replace(
            _model(self.start.layout, tuned), new=self.start.new, shares=self.start.shares
        )


def last_due(n: int, growth: float) -> int:
    """Return the last of 1, 2, ... up to n; each is at least `growth` times the one before."""
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


def _model(layout: NetworkLayout, trained: DeepKernel) -> DeepPipe:
    hyper = trained.hyper(1)
    return DeepPipe(
        layout,
        as_arrays(trained.network),
        float(hyper.log_lengthscales[0]),
        hyper.log_signal,
        hyper.log_noise,
    )


def _only(parts: Parts) -> DeepKernel:
    """Return a mask over all parameters with these weights, without the kernel."""
    fixed = jnp.asarray(False)
    layers = [(weights > 0, biases > 0) for weights, biases in parts]
    return DeepKernel(layers, Kernel(fixed, fixed, fixed))
