"""DyHPO: a deep kernel over configuration, budget and curve (Wistuba, Kadra, Grabocka 2022).

"Supervising the Multi-Fidelity Race of Hyperparameter Configurations", section 3. A network gives
features of a configuration, of the share of all steps, and of the losses so far. A Gaussian process
with a squared exponential kernel on these features predicts the loss of the next level (section
3.2). The candidate with the highest multi-fidelity expected improvement goes on (equation 4): it
improves on the best loss of its own level, or on the best of all if no trial has reached the level.

As in the authors' code, the network has two layers of 64 and 128 units with leaky rectifiers, and
a convolution of width 3 with 4 channels over the curve, whose maximum is used.
There are three differences: a decision is about a level of several steps, not about one epoch;
there is no batch normalisation; there are fewer steps of Adam (300 at first, then 30 at each
decision, 64 reports each).
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.spatial.distance import cdist

from foretune.numerics import (
    Floats,
    Ints,
    Layer,
    advance,
    bucket,
    cache_compilation,
    expected_improvement,
    start_descent,
)
from foretune_lab.baselines.step_tuner import SeenCurves

UNITS = (64, 128)
WIDTH, CHANNELS = 3, 4
"""Of the convolution."""
RATE = 1e-3
BATCH = 64
FIRST, FURTHER = 300, 30
"""Steps of Adam."""
CHUNK = 30
LEAST_NOISE = 1e-4
MOST = 1024
"""The number of reports that a prediction uses, drawn at random if there are more."""


class DeepKernel(NamedTuple):
    """All learnt parameters."""

    inputs: Layer
    """(W + 1, 64)"""
    convolution: Layer
    """(3, 4)"""
    outputs: Layer
    """(68, 128)"""
    log_length: jax.Array
    log_signal: jax.Array
    log_noise: jax.Array


class Reports(NamedTuple):
    """The inputs of the network: one row for each loss that is known or predicted."""

    x: jax.Array
    """(n, W)"""
    share: jax.Array
    """(n,), the share of all steps that each loss belongs to."""
    curve: jax.Array
    """(n, levels), the earlier losses; 0 for unknown ones."""


def features(kernel: DeepKernel, reports: Reports) -> jax.Array:
    """Return (n, 128), the features that the process reads."""
    weights, biases = kernel.inputs
    inputs = jnp.column_stack([reports.x, reports.share])
    hidden = jax.nn.leaky_relu(inputs @ weights + biases)
    weights, biases = kernel.convolution
    width = reports.curve.shape[1] - WIDTH + 1
    windows = jnp.stack([reports.curve[:, i : i + width] for i in range(WIDTH)], axis=2)
    curve = jnp.max(windows @ weights + biases, axis=1)
    weights, biases = kernel.outputs
    return jax.nn.leaky_relu(jnp.column_stack([hidden, curve]) @ weights + biases)


def covariance(kernel: DeepKernel, a: jax.Array, b: jax.Array) -> jax.Array:
    """Return (n, m), the squared exponential kernel between features."""
    squares = jnp.sum(a * a, axis=1)[:, None] + jnp.sum(b * b, axis=1)[None, :]
    squared = jnp.maximum(squares - 2.0 * a @ b.T, 0.0)
    return jnp.exp(kernel.log_signal - 0.5 * squared * jnp.exp(-2.0 * kernel.log_length))


def negative_log_likelihood(
    kernel: DeepKernel, reports: Reports, losses: jax.Array, counts: jax.Array
) -> jax.Array:
    """Return -log p(losses) for each of the reports (n,) that count."""
    phi = features(kernel, reports)
    noise = jnp.exp(kernel.log_noise) + LEAST_NOISE
    together = counts[:, None] * counts[None, :]
    # A report that does not count is an independent observation of 0 with variance 1.
    full = covariance(kernel, phi, phi) * together + jnp.diag(jnp.where(counts > 0, noise, 1.0))
    factor = jnp.linalg.cholesky(full)
    surprise = jax.scipy.linalg.solve_triangular(factor, losses * counts, lower=True)
    n = jnp.sum(counts)
    total = 0.5 * surprise @ surprise + jnp.sum(jnp.log(jnp.diagonal(factor)))
    return total / n + 0.5 * jnp.log(2.0 * jnp.pi)


@jax.jit
def train(
    kernel: DeepKernel, reports: Reports, losses: jax.Array, rows: jax.Array, counts: jax.Array
) -> DeepKernel:
    """Take one step of Adam for each batch; rows, counts: (steps, BATCH)."""

    def loss(kernel: DeepKernel, batch: tuple[jax.Array, jax.Array]) -> jax.Array:
        rows, counts = batch
        drawn = Reports(*(column[rows] for column in reports))
        return negative_log_likelihood(kernel, drawn, losses[rows], counts)

    rates = jnp.full(len(rows), RATE)
    return advance(loss, start_descent(kernel), (rows, counts), rates).params


def initial_kernel(width: int, seed: int) -> DeepKernel:
    """Return random weights, uniform within 1 / sqrt(inputs), and a kernel of length 1."""
    rng = np.random.default_rng(seed)

    def layer(inputs: int, outputs: int) -> Layer:
        bound = 1.0 / np.sqrt(inputs)
        weights = rng.uniform(-bound, bound, (inputs, outputs))
        biases = rng.uniform(-bound, bound, outputs)
        return jnp.asarray(weights, dtype=jnp.float32), jnp.asarray(biases, dtype=jnp.float32)

    zero = jnp.zeros((), dtype=jnp.float32)
    return DeepKernel(
        layer(width + 1, UNITS[0]),
        layer(WIDTH, CHANNELS),
        layer(UNITS[0] + CHANNELS, UNITS[1]),
        zero,
        zero,
        zero - 4.0,
    )


class DyhpoModel:
    """Ranks candidates by expected improvement at their next level."""

    def __init__(self, *, seed: int) -> None:
        cache_compilation()
        self._seed = seed
        self._kernel: DeepKernel | None = None

    def score(self, seen: SeenCurves, candidates: Ints) -> Floats:
        """Learn from all reports, and return the expected improvement of the candidates."""
        members, levels, losses = seen.points()
        rng = np.random.default_rng([self._seed, len(losses)])
        if len(losses) > MOST:
            keep = rng.choice(len(losses), MOST, replace=False)
            members, levels, losses = members[keep], levels[keep], losses[keep]
        centre, scale = losses.mean(), losses.std() or 1.0
        known = as_reports(seen, members, levels)
        z = (losses - centre) / scale
        self._learn(known, z, rng)
        ahead = seen.next_levels(candidates)
        mean, std = self._predict(known, z, as_reports(seen, candidates, ahead), len(candidates))
        best = np.array([seen.best_at(level) for level in range(seen.levels)])[ahead]
        return expected_improvement(mean * scale + centre - best, std * scale, 0.0)

    def _learn(self, known: Reports, z: Floats, rng: np.random.Generator) -> None:
        steps = FURTHER
        if self._kernel is None:
            self._kernel, steps = initial_kernel(known.x.shape[1], self._seed), FIRST
        losses = jnp.asarray(np.resize(z, len(known.x)), dtype=jnp.float32)
        counts = jnp.tile((jnp.arange(BATCH) < len(z)).astype(jnp.float32), (CHUNK, 1))
        for _ in range(steps // CHUNK):
            orders = [rng.permutation(max(len(z), BATCH))[:BATCH] for _ in range(CHUNK)]
            if len(z) < BATCH:
                orders = [np.arange(BATCH) for _ in range(CHUNK)]
            self._kernel = train(self._kernel, known, losses, jnp.asarray(orders), counts)

    def _predict(self, known: Reports, z: Floats, ahead: Reports, n: int) -> tuple[Floats, Floats]:
        """Return mean and standard deviation (n,) of the standardised losses ahead."""
        kernel = self._kernel
        assert kernel is not None
        # In double precision, because the covariance of single precision may not factorise.
        phi = np.asarray(read_features(kernel, known), dtype=float)[: len(z)]
        new = np.asarray(read_features(kernel, ahead), dtype=float)[:n]
        noise = float(jnp.exp(kernel.log_noise)) + LEAST_NOISE
        among = covariance_of(kernel, phi, phi) + noise * np.eye(len(z))
        across = covariance_of(kernel, new, phi)
        factor = cho_factor(among, lower=True)
        mean = across @ cho_solve(factor, z)
        explained = solve_triangular(factor[0], across.T, lower=True)
        signal = float(jnp.exp(kernel.log_signal))
        variance = np.maximum(signal - np.square(explained).sum(axis=0), 1e-10)
        return mean, np.sqrt(variance)


read_features = jax.jit(features)


def covariance_of(kernel: DeepKernel, a: Floats, b: Floats) -> Floats:
    """Return `covariance` in double precision."""
    squared = cdist(a, b, "sqeuclidean")
    signal, length = float(kernel.log_signal), float(kernel.log_length)
    found: Floats = np.exp(signal - 0.5 * squared * np.exp(-2.0 * length))
    return found


def as_reports(seen: SeenCurves, members: Ints, levels: Ints) -> Reports:
    """Return the inputs of the network; rows are repeated, so that few shapes are compiled."""
    rows = bucket(len(members), least=BATCH)
    curves = seen.pad_losses(members, levels)
    curves = np.pad(curves, ((0, 0), (0, max(WIDTH - seen.levels, 0))))
    columns = (seen.x[members], (levels + 1) / seen.levels, curves)
    return Reports(
        *(
            jnp.asarray(np.resize(column, (rows, *column.shape[1:])), dtype=jnp.float32)
            for column in columns
        )
    )
