"""Meta-learning an ensemble in JAX (Algorithm 1).

At every step every scorer gets a task of its own, and of it a query list to rank and a support
list for the meta-features, which share no evaluation. The shared deep set follows the mean of all
scorers' gradients.
"""

from functools import partial
from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jax.scipy.special import ndtri

from foretune.methods.ranking.ensemble import CLIP
from foretune.numerics.ranking import LOSSES, standardise_losses
from foretune.numerics.training import Layer, advance, start_descent

QUERY = 100
"""The most evaluations of a query list."""
SUPPORT = 50
"""The most evaluations of a support list."""
RATE = 1e-3

Network: TypeAlias = list[Layer]


class Weights(NamedTuple):
    """All that is learnt."""

    scorers: Network
    """Stacked: weights (M, inputs, outputs), biases (M, outputs)."""
    each: Network
    all: Network


class RankingTasks(NamedTuple):
    """The past tasks' evaluations, task after task, in random order within each; padded."""

    x: jax.Array
    """(N, W), centred."""
    y: jax.Array
    """(N,), losses in any unit of their task."""
    firsts: jax.Array
    """(T,), where each task begins."""
    counts: jax.Array
    """(T,)"""
    primes: jax.Array
    """(T,), the least prime that is at least as large as the count."""
    number: jax.Array
    """How many of the T are tasks; the others are padding."""


class Lists(NamedTuple):
    """Disjoint lists of one task."""

    query: jax.Array
    """(QUERY,), rows."""
    in_query: jax.Array
    """(QUERY,), False for padding."""
    support: jax.Array
    """(SUPPORT,), rows."""
    in_support: jax.Array
    """(SUPPORT,)"""


@partial(jax.jit, static_argnames=("loss",))
def meta_learn(
    weights: Weights, draws: jax.Array, rates: jax.Array, tasks: RankingTasks, *, loss: str
) -> Weights:
    """Train several ensembles, stacked.

    `draws` (ensembles, steps, M, 4) are uniform in [0, 1): they choose the tasks and lists of every
    step. `rates` (steps,) are the learning rates.
    """

    def learn(weights: Weights, draws: jax.Array) -> Weights:
        def total_loss(weights: Weights, draws: jax.Array) -> jax.Array:
            one = partial(_list_loss, weights, tasks=tasks, loss=loss)
            return jnp.sum(jax.vmap(one)(weights.scorers, draws))

        return advance(total_loss, start_descent(weights), draws, rates).params

    return jax.vmap(learn)(weights, draws)


def draw_lists(draws: jax.Array, first: jax.Array, count: jax.Array, prime: jax.Array) -> Lists:
    """Disjoint lists of the `count` evaluations from row `first` on, by three draws from [0, 1).

    A walk a + b k modulo a prime meets every place once before it returns; the few places between
    the count and the prime stay empty. The task's rows are in random order, so a random start and
    a random stride draw without replacement at the cost of the list, however large the task is.

    The size of the support list is drawn log-uniformly up to half of the task: as the history of a
    search, it may be short or long.
    """
    start = (draws[0] * prime).astype(jnp.int32)
    stride = 1 + (draws[1] * (prime - 1)).astype(jnp.int32)
    most = jnp.clip(count // 2, 1, SUPPORT)
    size = jnp.exp(draws[2] * jnp.log(most + 1.0)).astype(jnp.int32)
    size = jnp.where(count < 2, 0, jnp.minimum(size, most))
    places = jnp.arange(SUPPORT + QUERY)
    rows = (start + stride * places) % prime
    exists = (places < prime) & (rows < count)
    rows = first + jnp.where(exists, rows, 0)
    query = jnp.arange(QUERY) + size
    in_support = exists[:SUPPORT] & (places[:SUPPORT] < size)
    return Lists(rows[query], exists[query], rows[:SUPPORT], in_support)


def history_features(y: jax.Array, valid: jax.Array) -> jax.Array:
    """As `ensemble.history_features`, for a padded list."""
    n = jnp.maximum(jnp.sum(valid), 1)
    below = jnp.sum((y[None, :] < y[:, None]) & valid, axis=1)
    equal = jnp.sum((y[None, :] == y[:, None]) & valid, axis=1)
    share = jnp.where(valid, (below + 0.5 * equal) / n, 0.5)
    values = jnp.clip(standardise_losses(y, valid), -CLIP, CLIP)
    return jnp.stack([ndtri(share), values], axis=1)


def meta_features_of(weights: Weights, x: jax.Array, y: jax.Array, valid: jax.Array) -> jax.Array:
    """As `Ensemble.meta_features`, for a padded history x (n, W), y (n,)."""
    pairs = jnp.concatenate([x, history_features(y, valid)], axis=1)
    total = jnp.sum(_apply_relu_layers(weights.each, pairs) * valid[:, None], axis=0)
    mean = total / jnp.maximum(jnp.sum(valid), 1)
    last, bias = weights.all[-1]
    return _apply_relu_layers(weights.all[:-1], mean) @ last + bias


def _list_loss(
    weights: Weights, scorer: Network, draws: jax.Array, *, tasks: RankingTasks, loss: str
) -> jax.Array:
    """What one scorer loses, per evaluation, on one list of a task that is drawn for it."""
    task = (draws[0] * tasks.number).astype(jnp.int32)
    lists = draw_lists(draws[1:], tasks.firsts[task], tasks.counts[task], tasks.primes[task])
    inputs = tasks.x[lists.query]
    if weights.all:
        support = tasks.x[lists.support], tasks.y[lists.support], lists.in_support
        z = meta_features_of(weights, *support)
        inputs = jnp.concatenate([inputs, jnp.tile(z, (QUERY, 1))], axis=1)
    last, bias = scorer[-1]
    scores = (_apply_relu_layers(scorer[:-1], inputs) @ last + bias)[:, 0]
    total = LOSSES[loss](scores, tasks.y[lists.query], lists.in_query)
    return total / jnp.maximum(jnp.sum(lists.in_query), 1)


def _apply_relu_layers(layers: Network, x: jax.Array) -> jax.Array:
    for weights, biases in layers:
        x = jax.nn.relu(x @ weights + biases)
    return x
