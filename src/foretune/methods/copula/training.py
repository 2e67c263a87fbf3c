"""The networks' training in JAX: Equation 1 of the copula paper, minimised by Adam.

Three hidden layers of 50 rectified units with dropout 0.1; 3 x 1000 updates of batches of 64, the
rate 0.01 divided by 5 after each thousand. Tasks are drawn with equal probability and then rows
within a task, which weights every term inversely to its task's number of observations.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from foretune.methods.copula.prior import LEAST_SIGMA
from foretune.numerics.training import Descent, Layer, advance

UNITS = (50, 50, 50)
DROPOUT = 0.1
BATCH = 64
RATES = (0.01, 0.002, 0.0004)
UPDATES_PER_RATE = 1000
UPDATES_AT_ONCE = 100
"""Random numbers are drawn for this number of updates at once, about a megabyte a network."""


class CopulaTasks(NamedTuple):
    """The past tasks' scores, task after task. The rest of each array is padding."""

    x: jax.Array
    """(N, W), the inputs of all networks."""
    firsts: jax.Array
    """(T,), the first row of each task."""
    counts: jax.Array
    """(T,), the number of rows of each task."""
    number: jax.Array
    """(), the number of tasks; the rest of T is padding."""


class Draws(NamedTuple):
    """The random numbers of each update: arrays with a leading axis of updates."""

    task: jax.Array
    """(BATCH,), in [0, 1): the place among all tasks."""
    row: jax.Array
    """(BATCH,), in [0, 1): the place among the task's rows."""
    kept: jax.Array
    """(layers, BATCH, units), whether a unit does not drop out."""


def schedule() -> list[float]:
    """Return the rate of each `UPDATES_AT_ONCE`."""
    return [rate for rate in RATES for _ in range(UPDATES_PER_RATE // UPDATES_AT_ONCE)]


def draw(rngs: Sequence[np.random.Generator], updates: int = UPDATES_AT_ONCE) -> Draws:
    """Draw what decides the next updates of each network, stacked."""
    batch = (updates, BATCH)
    units = (updates, len(UNITS), BATCH, UNITS[0])
    return Draws(
        jnp.asarray([rng.random(batch, np.float32) for rng in rngs]),
        jnp.asarray([rng.random(batch, np.float32) for rng in rngs]),
        jnp.asarray([rng.random(units, np.float32) >= DROPOUT for rng in rngs]),
    )


def negative_log_likelihood(mu: jax.Array, sigma: jax.Array, z: jax.Array) -> jax.Array:
    """Return the mean over a batch of Equation 1, without its constant."""
    return jnp.mean(jnp.log(sigma) + 0.5 * jnp.square((z - mu) / sigma))


def outputs(
    layers: Sequence[Layer], x: jax.Array, kept: jax.Array, dropout: float = DROPOUT
) -> jax.Array:
    """Return mu, and sigma before its activation, (n, 2). Units that are not `kept` drop out."""
    for (weights, biases), its_kept in zip(layers[:-1], kept, strict=True):
        x = jax.nn.relu(x @ weights + biases)
        x = jnp.where(its_kept, x / (1.0 - dropout), 0.0)
    weights, biases = layers[-1]
    return x @ weights + biases


@jax.jit
def advance_networks(
    descents: Descent[list[Layer]], z: jax.Array, draws: Draws, rate: float, tasks: CopulaTasks
) -> Descent[list[Layer]]:
    """Update stacked networks, each towards its row of z (networks, N)."""

    def advance_one(
        descent: Descent[list[Layer]], z: jax.Array, draws: Draws
    ) -> Descent[list[Layer]]:
        def loss(layers: list[Layer], draws: Draws) -> jax.Array:
            task = (draws.task * tasks.number).astype(jnp.int32)
            row = tasks.firsts[task] + (draws.row * tasks.counts[task]).astype(jnp.int32)
            mu, raw_sigma = outputs(layers, tasks.x[row], draws.kept).T
            return negative_log_likelihood(mu, jax.nn.softplus(raw_sigma) + LEAST_SIGMA, z[row])

        return advance(loss, descent, draws, jnp.full(len(draws.task), rate))

    return jax.vmap(advance_one)(descents, z, draws)
