"""The networks' training in JAX: Equation 1 of the copula paper, minimised by Adam.

Three hidden layers of 50 rectified units with dropout 0.1; 3 x 1000 updates of batches of 64, the
rate 0.01 divided by 5 after each thousand. Tasks are drawn with equal probability and then rows
within a task, which weights every term inversely to its task's number of observations.
"""

from functools import partial

import jax
import jax.numpy as jnp

from foretune.methods.copula.prior import LEAST_SIGMA
from foretune.numerics.training import Layer, descend, hidden, initial_layers

UNITS = (50, 50, 50)
DROPOUT = 0.1
BATCH = 64
RATES = (0.01, 0.002, 0.0004)
UPDATES_PER_RATE = 1000


def negative_log_likelihood(mu: jax.Array, sigma: jax.Array, z: jax.Array) -> jax.Array:
    """The mean over a batch of Equation 1, without its constant."""
    return jnp.mean(jnp.log(sigma) + 0.5 * jnp.square((z - mu) / sigma))


@jax.jit
def fit_networks(
    keys: jax.Array,
    x: jax.Array,
    z: jax.Array,
    firsts: jax.Array,
    counts: jax.Array,
    tasks: int,
) -> list[Layer]:
    """One network for each of `keys` and its row of z (keys, N), stacked.

    Task t < `tasks` has the `counts[t]` rows of x (N, W) and of z from `firsts[t]` on; what comes
    after that in any array is padding.
    """
    return jax.vmap(partial(_fit, x=x, firsts=firsts, counts=counts, tasks=tasks))(keys, z)


def _fit(
    key: jax.Array,
    z: jax.Array,
    x: jax.Array,
    firsts: jax.Array,
    counts: jax.Array,
    tasks: int,
) -> list[Layer]:
    start, training = jax.random.split(key)

    def loss(layers: list[Layer], key: jax.Array) -> jax.Array:
        for_task, for_row, for_dropout = jax.random.split(key, 3)
        task = jax.random.randint(for_task, (BATCH,), 0, tasks)
        share = jax.random.uniform(for_row, (BATCH,))
        row = firsts[task] + jnp.floor(share * counts[task]).astype(int)
        weights, biases = layers[-1]
        outputs = hidden(layers[:-1], x[row], for_dropout, DROPOUT) @ weights + biases
        sigma = jax.nn.softplus(outputs[:, 1]) + LEAST_SIGMA
        return negative_log_likelihood(outputs[:, 0], sigma, z[row])

    layers = initial_layers(start, (x.shape[1], *UNITS, 2))
    rates = jnp.repeat(jnp.asarray(RATES), UPDATES_PER_RATE)
    return descend(loss, layers, training, rates)
