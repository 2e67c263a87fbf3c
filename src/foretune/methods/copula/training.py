"""The networks' training in JAX: Equation 1 of the copula paper, minimised by Adam."""

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


@partial(jax.jit, static_argnames="heads")
def fit_networks(
    keys: jax.Array,
    x: jax.Array,
    z: jax.Array,
    firsts: jax.Array,
    counts: jax.Array,
    tasks: int,
    *,
    heads: int,
) -> list[Layer]:
    """One network for each of `keys`, stacked: with one head for all tasks, or one a task.

    Task t < `tasks` has the `counts[t]` rows of x (N, W) and z (N,) from `firsts[t]` on; what
    comes after that in any array is padding. The last layer has the means of all heads first and
    then their standard deviations before the activation.
    """
    fit = partial(_fit, x=x, z=z, firsts=firsts, counts=counts, tasks=tasks, heads=heads)
    return jax.vmap(fit)(keys)


def _fit(
    key: jax.Array,
    x: jax.Array,
    z: jax.Array,
    firsts: jax.Array,
    counts: jax.Array,
    tasks: int,
    heads: int,
) -> list[Layer]:
    start, training = jax.random.split(key)

    def loss(layers: list[Layer], key: jax.Array) -> jax.Array:
        for_task, for_row, for_dropout = jax.random.split(key, 3)
        task = jax.random.randint(for_task, (BATCH,), 0, tasks)
        share = jax.random.uniform(for_row, (BATCH,))
        row = firsts[task] + jnp.floor(share * counts[task]).astype(int)
        weights, biases = layers[-1]
        outputs = hidden(layers[:-1], x[row], for_dropout, DROPOUT) @ weights + biases
        head = task if heads > 1 else jnp.zeros_like(task)
        mu = jnp.take_along_axis(outputs, head[:, None], axis=1)[:, 0]
        raw = jnp.take_along_axis(outputs, heads + head[:, None], axis=1)[:, 0]
        return negative_log_likelihood(mu, jax.nn.softplus(raw) + LEAST_SIGMA, z[row])

    layers = initial_layers(start, (x.shape[1], *UNITS, 2 * heads))
    rates = jnp.repeat(jnp.asarray(RATES), UPDATES_PER_RATE)
    return descend(loss, layers, training, rates)
