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
from foretune.methods.pipeline.model import DeepPipe, HalfTaught, Places
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
    schedules_for,
)
from foretune.numerics.training import as_arrays, bucket, cache_compilation
from foretune.space import Encoded

TUNING_RATE = 3e-3
"""For new parts of a network, and for a network that past tasks did not train."""
CAREFUL_RATE = 1e-4
"""For a whole network that past tasks have trained, as in the paper."""
MOST_TUNED = 128
"""The most trials of the target that the network is tuned to."""
LEAST_PADDED = 16
LEAST_HALVED = 4
"""With fewer trials of the target its kernel is not fitted."""
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
    rate: float = TUNING_RATE
    fine_tune: Callable[..., DeepKernel] = fine_tune
    _known: BoundedCache[tuple[DeepPipe, Places]] = field(
        default_factory=lambda: BoundedCache(CACHED)
    )
    _known_halves: BoundedCache[tuple[HalfTaught, ...]] = field(
        default_factory=lambda: BoundedCache(CACHED)
    )

    def after(self, configs: Encoded, losses: Floats) -> tuple[DeepPipe, Places]:
        """Return the network tuned to the last prefix of the trials (n, L) that is due."""
        prefix, before, key = self._last_prefix(configs, losses)
        return self._known.get(key, lambda: self._find(prefix, before))

    def halves(self, configs: Encoded, losses: Floats) -> tuple[HalfTaught, ...]:
        """Return a network tuned to every second trial of that prefix, and one to the others."""
        prefix, before, key = self._last_prefix(configs, losses)
        return self._known_halves.get(key, lambda: self._find_halves(prefix, before))

    def _last_prefix(self, configs: Encoded, losses: Floats) -> tuple[Encoded, Floats, bytes]:
        n = last_due(len(losses), self.growth)
        prefix = configs.take(np.arange(n))
        return prefix, losses[:n], sha256(prefix.values.tobytes() + losses[:n].tobytes()).digest()

    def _find(self, configs: Encoded, losses: Floats) -> tuple[DeepPipe, Places]:
        tuned = self._tune(configs, self._scores(configs, losses))
        return tuned, CachedOnPool(tuned.place, self.pool)

    def _find_halves(self, configs: Encoded, losses: Floats) -> tuple[HalfTaught, ...]:
        if len(losses) < LEAST_HALVED:
            return ()
        y = self._scores(configs, losses)
        each = (np.arange(first, len(y), 2) for first in (0, 1))
        return tuple(HalfTaught(self._tune(configs.take(rows), y[rows]), rows) for rows in each)

    def _scores(self, configs: Encoded, losses: Floats) -> Floats:
        return self.start.scores(losses, self.start.place(configs))

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
            rate=self.rate,
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
