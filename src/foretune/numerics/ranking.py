"""Losses of learning to rank, in JAX, for scores s (higher is better) of a list of losses y.

Lists may be padded: entries that are not `valid` are ignored. Ties are not broken: the rank of y_i
is the number of y_j <= y_i, and equal losses share their denominators (Breslow's rule). So a
constant list prefers equal scores, and no order of its entries.
"""

from collections.abc import Callable
from typing import TypeAlias

from foretune.errors import MissingExtraError

try:
    import jax
    import jax.numpy as jnp
except ImportError as missing:
    raise MissingExtraError("jax", "neural", "learning to rank from past tasks") from missing

ListLoss: TypeAlias = Callable[[jax.Array, jax.Array, jax.Array], jax.Array]
"""(scores (n,), losses (n,), valid (n,)) -> the list's loss, a scalar."""
Weighting: TypeAlias = Callable[[jax.Array, jax.Array], jax.Array]
"""(ranks (n,), from 1 for the best; entries in the list) -> weights (n,)."""


def ranks(losses: jax.Array, valid: jax.Array) -> jax.Array:
    """Return (n,), the ranks from 1 for the best; ties have the rank of the last of them."""
    return jnp.sum((losses[None, :] <= losses[:, None]) & valid, axis=1)


def inverse_log(rank: jax.Array, n: jax.Array) -> jax.Array:
    """Return 1 / log(rank + 1), as in the paper."""
    del n
    return 1.0 / jnp.log(rank + 1.0)


def inverse_linear(rank: jax.Array, n: jax.Array) -> jax.Array:
    """Return 1 / rank: little weight for poor ranks."""
    del n
    return 1.0 / rank


def position_dependent_attention(rank: jax.Array, n: jax.Array) -> jax.Array:
    """Return (n - rank + 1) / (1 + 2 + ... + n): more weight for poor ranks."""
    return (n - rank + 1.0) / (0.5 * n * (n + 1.0))


def equal_weights(rank: jax.Array, n: jax.Array) -> jax.Array:
    """Return 1 for every rank."""
    del n
    return jnp.ones_like(rank, dtype=float)


def list_wise(weighting: Weighting) -> ListLoss:
    """Return weighted ListMLE (DRE, Equation 1): -sum_i w(rank_i) log P(i before all not better).

    The log-sum-exp of each remainder of the list is computed about its own maximum, so scores may
    be hundreds apart.
    """

    def loss(scores: jax.Array, losses: jax.Array, valid: jax.Array) -> jax.Array:
        remains = (losses[None, :] >= losses[:, None]) & valid | jnp.eye(len(losses), dtype=bool)
        rest = jax.nn.logsumexp(jnp.where(remains, scores[None, :], -jnp.inf), axis=1)
        weights = weighting(jnp.maximum(ranks(losses, valid), 1), jnp.sum(valid))
        return jnp.sum(jnp.where(valid, weights * (rest - scores), 0.0))

    return loss


def pair_wise(scores: jax.Array, losses: jax.Array, valid: jax.Array) -> jax.Array:
    """Return the logistic loss of all pairs, times 2 / n: an entry counts as much as in a list."""
    better = (losses[:, None] < losses[None, :]) & valid[:, None] & valid[None, :]
    wrong = jax.nn.softplus(scores[None, :] - scores[:, None])
    return 2.0 * jnp.sum(jnp.where(better, wrong, 0.0)) / jnp.maximum(jnp.sum(valid), 1)


def point_wise(scores: jax.Array, losses: jax.Array, valid: jax.Array) -> jax.Array:
    """Return the squared distance of scores to centred ranks, from nearly 1 (best) to -1."""
    n = jnp.maximum(jnp.sum(valid), 1)
    wanted = (n + 1.0 - 2.0 * ranks(losses, valid)) / n
    return jnp.sum(jnp.where(valid, jnp.square(scores - wanted), 0.0))


def regression(scores: jax.Array, losses: jax.Array, valid: jax.Array) -> jax.Array:
    """Return the squared distance of scores to the negated losses, standardised in the list."""
    wanted = -standardise_losses(losses, valid)
    return jnp.sum(jnp.where(valid, jnp.square(scores - wanted), 0.0))


def standardise_losses(losses: jax.Array, valid: jax.Array) -> jax.Array:
    """Return (n,), valid losses with mean 0 and standard deviation 1; equal losses become 0."""
    n = jnp.maximum(jnp.sum(valid), 1)
    centred = jnp.where(valid, losses - jnp.sum(jnp.where(valid, losses, 0.0)) / n, 0.0)
    spread = jnp.sqrt(jnp.sum(jnp.square(centred)) / n)
    # The mean of equal numbers is rounded. Divided by their spread they would all be 1 or -1.
    differ = jnp.any(valid & (losses != losses[jnp.argmax(valid)]))
    return centred / jnp.where(differ & (spread > 0.0), spread, 1.0)


LOSSES: dict[str, ListLoss] = {
    "list-wise": list_wise(inverse_log),
    "list-wise unweighted": list_wise(equal_weights),
    "list-wise inverse linear": list_wise(inverse_linear),
    "list-wise attention": list_wise(position_dependent_attention),
    "pair-wise": pair_wise,
    "point-wise": point_wise,
    "regression": regression,
}
