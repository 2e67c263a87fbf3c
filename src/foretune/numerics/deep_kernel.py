"""Deep kernels: a Gaussian process on features that a network learns from many tasks.

The kernel is Matérn-5/2 on phi(x; theta), for any feature function. Training, in JAX and single
precision, maximises the marginal likelihood of batches of tasks. `numerics.gp` predicts in double
precision, with the features and the hyperparameters (`DeepKernel.hyper`) of the trained network.
Losses are standardised by the caller. The mean is zero, or the network learns it too.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from foretune._base.arrays import Floats, Ints
from foretune._base.progress import SILENT, Progress
from foretune.numerics.hyper import GPHyper
from foretune.numerics.training import Descent, advance, bucket, start_descent
from foretune.numerics.transforms import standardise

Network: TypeAlias = Any
"""Any pytree of float32 arrays."""
Features: TypeAlias = Callable[[Network, jax.Array], jax.Array | tuple[jax.Array, jax.Array]]
"""(network, x (n, W)) -> phi (n, Q), or phi and the process's mean (n,).

Code is compiled for each different function, so a function that is made anew must equal the last.
"""
Singles: TypeAlias = NDArray[np.float32]

LEAST_NOISE = 1e-4
"""Added to the variance of the noise, so that covariances factorise in single precision."""
NOISE = (-4.0, 1.5)
SIGNAL = (0.0, 1.0)
"""Normal priors (mode, spread) of the log variances, for losses of standard deviation 1."""


class Kernel(NamedTuple):
    """Hyperparameters of the process: float32 arrays."""

    log_lengthscales: jax.Array
    """(Q,), or (1,) if all features share one."""
    log_signal: jax.Array
    """(), log variance of the function."""
    log_noise: jax.Array
    """(), log variance of the noise above `LEAST_NOISE`."""


class DeepKernel(NamedTuple):
    """All trained parameters."""

    network: Network
    kernel: Kernel

    def hyper(self, width: int) -> GPHyper:
        """Return the hyperparameters for `numerics.gp` and features (n, width)."""
        lengthscales = np.asarray(self.kernel.log_lengthscales, dtype=np.float64)
        noise = np.exp(np.float64(self.kernel.log_noise)) + LEAST_NOISE
        return GPHyper(
            np.broadcast_to(lengthscales, (width,)).copy(),
            float(self.kernel.log_signal),
            float(np.log(noise)),
        )


def initial_kernel(phi: Singles) -> Kernel:
    """Return a first kernel, whose lengthscale is the usual distance between features phi (n, Q).

    All features share the one lengthscale.
    """
    distance = np.sqrt(2.0 * phi.var(axis=0).sum()) or 1.0
    return Kernel(
        jnp.full(1, np.log(distance), dtype=jnp.float32),
        jnp.asarray(SIGNAL[0], dtype=jnp.float32),
        jnp.asarray(NOISE[0], dtype=jnp.float32),
    )


def negative_log_likelihood(
    features: Features, params: DeepKernel, x: jax.Array, y: jax.Array, mask: jax.Array
) -> jax.Array:
    """Return -log p(y | x) of one task, for each observation: a scalar.

    x (n, W) and y (n,) count where `mask` (n,) is true. Other rows may hold any finite numbers.
    """
    kernel = params.kernel
    phi, mean = _split_mean(features(params.network, x))
    phi = phi - jnp.mean(phi, axis=0, where=mask[:, None])
    scaled = phi * jnp.exp(-kernel.log_lengthscales)
    noise = jnp.exp(kernel.log_noise) + LEAST_NOISE
    together = mask[:, None] & mask[None, :]
    covariance = jnp.exp(kernel.log_signal) * matern52(_squared_distances(scaled))
    # A masked row is an independent observation of 0 with variance 1: its surprise is 0.
    covariance = jnp.where(together, covariance, 0.0) + jnp.diag(jnp.where(mask, noise, 1.0))
    surprise = _surprise(covariance, jnp.where(mask, y - mean, 0.0))
    return surprise / jnp.sum(mask) + 0.5 * jnp.log(2.0 * jnp.pi)


def _split_mean(
    found: jax.Array | tuple[jax.Array, jax.Array],
) -> tuple[jax.Array, jax.Array | float]:
    """Return features, and the mean that came with them, or zero."""
    return found if isinstance(found, tuple) else (found, 0.0)


@jax.custom_jvp
def matern52(squared: jax.Array) -> jax.Array:
    """Return (1 + t + t²/3) exp(-t) with t = sqrt(5 r²), for any r² >= 0."""
    t = jnp.sqrt(5.0 * squared)
    return (1.0 + t + t * t / 3.0) * jnp.exp(-t)


@matern52.defjvp
def _matern52_slope(
    primals: tuple[jax.Array], tangents: tuple[jax.Array]
) -> tuple[jax.Array, jax.Array]:
    # JAX's own derivative divides by zero at r = 0, where the slope is -5/6.
    t = jnp.sqrt(5.0 * primals[0])
    return matern52(primals[0]), -(5.0 / 6.0) * (1.0 + t) * jnp.exp(-t) * tangents[0]


def _squared_distances(scaled: jax.Array) -> jax.Array:
    """Return (n, n), with a diagonal of exact zeros."""
    squares = jnp.sum(scaled * scaled, axis=1)
    # By default accelerators multiply with ten bits. The difference of these large terms would then
    # be no distance any more, and covariances of a few trials would not factorise.
    products = jnp.matmul(scaled, scaled.T, precision=jax.lax.Precision.HIGHEST)
    squared = squares[:, None] + squares[None, :] - 2.0 * products
    return jnp.where(jnp.eye(len(scaled), dtype=bool), 0.0, jnp.maximum(squared, 0.0))


@jax.custom_vjp
def _surprise(covariance: jax.Array, y: jax.Array) -> jax.Array:
    """Return (y' K^-1 y + log det K) / 2."""
    return _surprise_forward(covariance, y)[0]


def _surprise_forward(
    covariance: jax.Array, y: jax.Array
) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
    factor = jnp.linalg.cholesky(covariance)
    inverse = jax.scipy.linalg.cho_solve((factor, True), jnp.eye(len(y), dtype=y.dtype))
    alpha = jax.scipy.linalg.cho_solve((factor, True), y)
    value = 0.5 * jnp.sum(y * alpha) + jnp.sum(jnp.log(jnp.diagonal(factor)))
    return value, (0.5 * (inverse - jnp.outer(alpha, alpha)), alpha)


def _surprise_backward(
    kept: tuple[jax.Array, jax.Array], cotangent: jax.Array
) -> tuple[jax.Array, jax.Array]:
    # In closed form: the slope with respect to K is (K^-1 - alpha alpha') / 2.
    to_covariance, alpha = kept
    return cotangent * to_covariance, cotangent * alpha


_surprise.defvjp(_surprise_forward, _surprise_backward)


def negative_log_posterior(
    features: Features, params: DeepKernel, x: jax.Array, y: jax.Array, mask: jax.Array
) -> jax.Array:
    """Add -log of the priors over the log variances, for each observation."""
    log_variances = jnp.stack([params.kernel.log_signal, params.kernel.log_noise])
    modes, spreads = jnp.asarray([SIGNAL, NOISE]).T
    penalty = 0.5 * jnp.sum(jnp.square((log_variances - modes) / spreads))
    likelihood = negative_log_likelihood(features, params, x, y, mask)
    return likelihood + penalty / jnp.sum(mask)


class TaskEvaluations(Protocol):
    """The evaluations of one task, such as a `PastTask`."""

    @property
    def rows(self) -> Ints:
        """(n,), rows of the table of configurations."""

    @property
    def z(self) -> Floats:
        """(n,), their losses."""


Label: TypeAlias = Callable[[Floats, np.random.Generator], Floats]
"""Drawn losses (n,) -> labels (n,) that a step learns to predict."""


def standardise_labels(z: Floats, rng: np.random.Generator) -> Floats:
    """Return labels in the unit of the target's losses: mean 0, standard deviation 1."""
    del rng
    return standardise(z)


@dataclass(frozen=True, slots=True)
class Schedule:
    """The options of `meta_train`."""

    tasks: int = 16
    """The number of tasks that a step learns from."""
    observations: int = 64
    """The number of observations of each task."""
    rate: float = 1e-3
    chunk: int = 100
    """The number of steps between two looks at the validation tasks."""
    most_chunks: int = 50
    patience: int = 8
    """Training stops after this number of chunks without progress on the validation tasks."""


AT_EASE = Schedule()
MOST_TASKS, MOST_OBSERVATIONS = 16, 64
"""The most tasks and observations of each that one step learns from."""


def schedules_for(tasks: Sequence["TaskEvaluations"]) -> list[Schedule]:
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


@dataclass(frozen=True, slots=True)
class Curriculum:
    """The tasks that `meta_train` reads."""

    x: Singles
    """(N, W), the table of configurations. Tasks number its rows."""
    tasks: Sequence[TaskEvaluations]
    validation: Sequence[TaskEvaluations]
    """At least one task that decides when to stop. Nothing is learnt from it."""
    label: Label = standardise_labels


class Batch(NamedTuple):
    """Draws from tasks: arrays (..., tasks, observations)."""

    rows: jax.Array
    y: jax.Array
    mask: jax.Array


def meta_train(
    features: Features,
    params: DeepKernel,
    curriculum: Curriculum,
    *,
    seed: int,
    schedule: Schedule = AT_EASE,
    trainable: DeepKernel | None = None,
    progress: Progress = SILENT,
) -> DeepKernel:
    """Train on the tasks, and return the parameters that make the validation tasks most probable.

    Parameters move where `trainable` is true (arrays shaped like them, or broadcast to them). None
    means that all move.
    """
    rng = np.random.default_rng(seed)
    tasks, validation = curriculum.tasks, curriculum.validation
    # Shapes are padded, so that other tables and numbers of tasks find compiled code.
    rows = bucket(len(curriculum.x), least=256)
    table = jnp.pad(jnp.asarray(curriculum.x), ((0, rows - len(curriculum.x)), (0, 0)))
    looks = [validation[n % len(validation)] for n in range(bucket(len(validation), least=32))]
    held_out = draw(looks, schedule.observations, curriculum.label, rng)
    rates = jnp.full(schedule.chunk, schedule.rate, dtype=jnp.float32)
    descent = start_descent(jax.tree.map(partial(jnp.asarray, dtype=jnp.float32), params))
    best: DeepKernel = descent.params
    least, patience = np.inf, schedule.patience
    progress.start("training a deep kernel", schedule.most_chunks)
    try:
        for _ in range(schedule.most_chunks):
            chosen = rng.integers(len(tasks), size=schedule.chunk * schedule.tasks).tolist()
            drawn = draw([tasks[n] for n in chosen], schedule.observations, curriculum.label, rng)
            by_step = partial(jnp.reshape, shape=(schedule.chunk, schedule.tasks, -1))
            batches = jax.tree.map(by_step, drawn)
            descent = _advance(features, descent, table, batches, rates, trainable)
            loss = float(mean_loss(features, descent.params, table, held_out))
            progress.step(note=f"held-out loss {loss:.3f}")
            patience -= 1
            if loss < least:
                best, least, patience = descent.params, loss, schedule.patience
            if patience == 0:
                break
    finally:
        progress.stop()
    return best


def draw(
    tasks: Sequence[TaskEvaluations], observations: int, label: Label, rng: np.random.Generator
) -> Batch:
    """Draw at most `observations` different evaluations of each task."""
    shape = (len(tasks), observations)
    rows, y, mask = (np.zeros(shape, dtype=kind) for kind in (np.int32, np.float32, np.bool_))
    for place, task in enumerate(tasks):
        n = min(len(task.rows), observations)
        drawn = rng.choice(len(task.rows), n, replace=False, shuffle=False)
        rows[place, :n] = task.rows[drawn]
        y[place, :n] = label(task.z[drawn], rng)
        mask[place, :n] = True
    return Batch(jnp.asarray(rows), jnp.asarray(y), jnp.asarray(mask))


@partial(jax.jit, static_argnums=0)
def mean_loss(features: Features, params: DeepKernel, x: jax.Array, batch: Batch) -> jax.Array:
    """Return the negative log likelihood for each observation, averaged over tasks."""
    each = jax.vmap(partial(negative_log_likelihood, features, params))
    return jnp.mean(each(x[batch.rows], batch.y, batch.mask))


@partial(jax.jit, static_argnums=0)
def _advance(
    features: Features,
    descent: Descent[DeepKernel],
    x: jax.Array,
    batches: Batch,
    rates: jax.Array,
    trainable: DeepKernel | None,
) -> Descent[DeepKernel]:
    def loss(params: DeepKernel, batch: Batch) -> jax.Array:
        each = jax.vmap(partial(negative_log_posterior, features, params))
        return jnp.mean(each(x[batch.rows], batch.y, batch.mask))

    return advance(loss, descent, batches, rates, trainable)


@partial(jax.jit, static_argnames=("features", "steps"))
def fine_tune(
    features: Features,
    params: DeepKernel,
    x: jax.Array,
    y: jax.Array,
    mask: jax.Array,
    *,
    steps: int,
    rate: float,
    trainable: DeepKernel | None = None,
) -> DeepKernel:
    """Return the parameters after steps of Adam on the observations of one task.

    x (n, W), y (n,) and `mask` (n,) are those of the likelihood. Pad n: each n is compiled anew.
    """

    def loss(params: DeepKernel, _: jax.Array) -> jax.Array:
        return negative_log_posterior(features, params, x, y, mask)

    rates = jnp.full(steps, rate, dtype=jnp.float32)
    tuned = advance(loss, start_descent(params), rates, rates, trainable)
    return tuned.params
