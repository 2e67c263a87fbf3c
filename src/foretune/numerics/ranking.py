"""Losses of learning to rank, in JAX: what scores s (higher is better) lose on a list of losses y.

Every list may be padded: entries that are not `valid` take no part. Ties are defined, not broken:
the rank of y_i is the number of y_j <= y_i, and equal losses stand in each other's denominators
(Breslow's rule), so a constant list prefers equal scores and no order of its entries.
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
    """(n,), how many valid entries are at most as large: 1 for the best, ties at their last."""
    return jnp.sum((losses[None, :] <= losses[:, None]) & valid, axis=1)


def inverse_log(rank: jax.Array, n: jax.Array) -> jax.Array:
    """1 / log(rank + 1), the paper's choice."""
    del n
    return 1.0 / jnp.log(rank + 1.0)


def inverse_linear(rank: jax.Array, n: jax.Array) -> jax.Array:
    """1 / rank: hardly anything for lower ranks."""
    del n
    return 1.0 / rank


def position_dependent_attention(rank: jax.Array, n: jax.Array) -> jax.Array:
    """(n - rank + 1) / (1 + 2 + ... + n): much for lower ranks."""
    return (n - rank + 1.0) / (0.5 * n * (n + 1.0))


def equal_weights(rank: jax.Array, n: jax.Array) -> jax.Array:
    """1 for every rank."""
    del n
    return jnp.ones_like(rank, dtype=float)


def list_wise(weighting: Weighting) -> ListLoss:
    """Weighted ListMLE (DRE, Equation 1): -sum_i w(rank_i) log P(i is first of those not better).

    The log-sum-exp of every remainder of the list is taken about its own maximum, so scores may
    lie hundreds apart.
    """

    def loss(scores: jax.Array, losses: jax.Array, valid: jax.Array) -> jax.Array:
        remains = (losses[None, :] >= losses[:, None]) & valid | jnp.eye(len(losses), dtype=bool)
        rest = jax.nn.logsumexp(jnp.where(remains, scores[None, :], -jnp.inf), axis=1)
        weights = weighting(jnp.maximum(ranks(losses, valid), 1), jnp.sum(valid))
        return jnp.sum(jnp.where(valid, weights * (rest - scores), 0.0))

    return loss


def pair_wise(scores: jax.Array, losses: jax.Array, valid: jax.Array) -> jax.Array:
    """Logistic loss of every pair, times 2 / n: an entry counts as much as in a list."""
    better = (losses[:, None] < losses[None, :]) & valid[:, None] & valid[None, :]
    wrong = jax.nn.softplus(scores[None, :] - scores[:, None])
    return 2.0 * jnp.sum(jnp.where(better, wrong, 0.0)) / jnp.maximum(jnp.sum(valid), 1)


def point_wise(scores: jax.Array, losses: jax.Array, valid: jax.Array) -> jax.Array:
    """Squared distance of scores to centred ranks, from almost 1 for the best to -1."""
    n = jnp.maximum(jnp.sum(valid), 1)
    wanted = (n + 1.0 - 2.0 * ranks(losses, valid)) / n
    return jnp.sum(jnp.where(valid, jnp.square(scores - wanted), 0.0))


def regression(scores: jax.Array, losses: jax.Array, valid: jax.Array) -> jax.Array:
    """Squared distance of scores to the negated losses, standardised within the list."""
    wanted = -standardise_losses(losses, valid)
    return jnp.sum(jnp.where(valid, jnp.square(scores - wanted), 0.0))


def standardise_losses(losses: jax.Array, valid: jax.Array) -> jax.Array:
    """(n,), the valid losses with mean 0 and standard deviation 1 (all 0 where they are equal)."""
    n = jnp.maximum(jnp.sum(valid), 1)
    centred = jnp.where(valid, losses - jnp.sum(jnp.where(valid, losses, 0.0)) / n, 0.0)
    spread = jnp.sqrt(jnp.sum(jnp.square(centred)) / n)
    # The mean of equal numbers is rounded: by their spread alone they would be all 1, or all -1.
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
