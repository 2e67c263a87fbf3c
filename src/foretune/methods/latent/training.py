"""Pre-training of embeddings in JAX (section 3.2): a bowl to fit, and classifiers to deceive.

|phi^(m)(lambda)|² learns the gap between a configuration's loss and the best one (Equation 11).
This leaves all directions free. One-versus-one classifiers learn how algorithms differ (Equation
12), and the embedding is moved against them (Equation 13). Both sides descend at once: the gradient
of the classifiers is reversed where it reaches the embedding.
"""

from functools import partial
from itertools import combinations
from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from foretune.methods.latent.embedding import DIMENSION, UNITS
from foretune.numerics.networks import initial_layers
from foretune.numerics.training import Layer, advance, jax_layers, start_descent

CLASSIFIER_UNITS = 16
BATCH = 32
"""Evaluations of each algorithm in one step."""
RATE = 0.01
BETA = 1e-4
"""The weight of deceiving the classifiers."""

Layers: TypeAlias = list[Layer]
"""Weights (networks, inputs, outputs) and biases (networks, outputs), stacked."""


class AdversarialNetworks(NamedTuple):
    """All trained networks."""

    embedding: Layers
    """One network for each algorithm."""
    classifiers: Layers
    """One network for each pair of algorithms."""


class SourceEvaluations(NamedTuple):
    """The evaluations of one source dataset, those of each algorithm apart, padded."""

    x: jax.Array
    """(M, R, W), the inputs of each algorithm."""
    gap: jax.Array
    """(M, R), the gap of each evaluation to the best."""
    counts: jax.Array
    """(M,), the number of the R rows that are evaluations."""


def initial_networks(rng: np.random.Generator, algorithms: int, width: int) -> AdversarialNetworks:
    """Return untrained networks for algorithms that read `width` columns."""
    pairs = max(algorithms * (algorithms - 1) // 2, 1)
    embedding = initial_layers(rng, (width, UNITS, UNITS, DIMENSION), stack=(algorithms,))
    classifiers = initial_layers(rng, (DIMENSION, CLASSIFIER_UNITS, 1), stack=(pairs,))
    return AdversarialNetworks(jax_layers(embedding), jax_layers(classifiers))


def apply_layers(layers: Layers, x: jax.Array) -> jax.Array:
    """Return the outputs (networks, n, outputs) of stacked networks at x (networks, n, inputs)."""
    for number, (weights, biases) in enumerate(layers):
        x = jnp.einsum("mni,mio->mno", x, weights) + biases[:, None, :]
        if number < len(layers) - 1:
            x = jax.nn.relu(x)
    return x


def bowl_loss(u: jax.Array, gap: jax.Array, present: jax.Array) -> jax.Array:
    """Return Equation 11 of u (M, n, d) and `gap` (M, n), summed over algorithms `present`."""
    each = jnp.mean(jnp.square(gap - jnp.sum(u * u, axis=2)), axis=1)
    return jnp.sum(jnp.where(present, each, 0.0))


def cross_entropy(classifiers: Layers, u: jax.Array, present: jax.Array) -> jax.Array:
    """Return Equation 12 summed over pairs: the classifiers' errors in telling algorithms apart."""
    first, second = pairs_of(len(u))
    logits = apply_layers(classifiers, jnp.concatenate([u[first], u[second]], axis=1))[:, :, 0]
    n = u.shape[1]
    # The target is a high logit for the first algorithm of a pair, a low one for the second.
    each = jax.nn.softplus(jnp.concatenate([-logits[:, :n], logits[:, n:]], axis=1))
    both = present[first] & present[second] & (first != second)
    return jnp.sum(jnp.where(both, jnp.mean(each, axis=1), 0.0))


def pairs_of(algorithms: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the first and second algorithm of each pair. A single algorithm pairs with itself."""
    pairs = np.array(list(combinations(range(algorithms), 2)) or [(0, 0)])
    return pairs[:, 0], pairs[:, 1]


def reverse_gradient(u: jax.Array, beta: jax.Array) -> jax.Array:
    """Return u. Its gradient comes back times -beta."""
    return (1.0 + beta) * jax.lax.stop_gradient(u) - beta * u


def pre_training_loss(
    networks: AdversarialNetworks, draws: jax.Array, source: SourceEvaluations, beta: jax.Array
) -> jax.Array:
    """Return the loss whose descent is Equation 13.

    `draws` (M, n), in [0, 1), choose n evaluations of each algorithm.
    """
    present = source.counts > 0
    rows = (draws * source.counts[:, None]).astype(jnp.int32)
    x = jnp.take_along_axis(source.x, rows[:, :, None], axis=1)
    gap = jnp.take_along_axis(source.gap, rows, axis=1)
    u = apply_layers(networks.embedding, x)
    deceived = cross_entropy(networks.classifiers, reverse_gradient(u, beta), present)
    return bowl_loss(u, gap, present) + deceived


def pre_train(
    source: SourceEvaluations, beta: float, *, steps: int, seed: int
) -> AdversarialNetworks:
    """Return the networks of one source after `steps` steps of Adam.

    Several sources are trained one after the other. Under `vmap` they take longer, because XLA
    multiplies stacks of small matrices one by one.
    """
    rng = np.random.default_rng(seed)
    algorithms, _, width = source.x.shape
    networks = initial_networks(rng, algorithms, width)
    draws = rng.random((steps, algorithms, BATCH), np.float32)
    trained: AdversarialNetworks = _train_steps(
        networks, jnp.asarray(draws), source, jnp.asarray(beta)
    )
    return trained


@jax.jit
def _train_steps(
    networks: AdversarialNetworks, draws: jax.Array, source: SourceEvaluations, beta: jax.Array
) -> AdversarialNetworks:
    """Return the networks after a step of Adam for each of `draws`."""
    steps = len(draws)
    rates = RATE * 0.5 * (1.0 + jnp.cos(jnp.pi * jnp.arange(steps) / steps))
    loss = partial(pre_training_loss, source=source, beta=beta)
    return advance(loss, start_descent(networks), draws, rates).params
