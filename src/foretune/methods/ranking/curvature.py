"""Slope and curvature of the ranking losses in the scores of one list, for Newton's method.

`numerics.ranking` describes the losses and the treatment of ties. The functions here are the same
in NumPy, for the few observations of a running search. All of them are convex.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from foretune._base.arrays import Floats
from foretune.numerics.transforms import standardise

Scores: TypeAlias = NDArray[np.floating[Any]]
"""Single precision in a running search. Everything derived from them has the same precision."""


@dataclass(frozen=True, slots=True)
class Quadratic:
    """A loss at the scores that M scorers give to one list, to second order."""

    value: Scores
    """(M,)"""
    slope: Scores
    """(M, n)"""
    curvature: Scores
    """(M, n, n), positive semidefinite."""


Criterion: TypeAlias = Callable[[Scores], Quadratic]
"""Scores (M, n) -> their loss, with its derivatives."""

WEIGHTINGS: dict[str, Callable[[Floats], Floats]] = {
    "list-wise": lambda rank: 1.0 / np.log(rank + 1.0),
    "list-wise unweighted": np.ones_like,
    "list-wise inverse linear": lambda rank: 1.0 / rank,
    "list-wise attention": lambda rank: (
        (len(rank) - rank + 1.0) / (0.5 * len(rank) * (len(rank) + 1.0))
    ),
}


def criterion(loss: str, y: Floats) -> Criterion:
    """Return the ranking loss of this name on the list of losses y (n,)."""
    if loss in WEIGHTINGS:
        return _list_wise(y, WEIGHTINGS[loss](_ranks(y)))
    if loss == "pair-wise":
        return _pair_wise(y)
    if loss == "point-wise":
        return _squared_criterion((len(y) + 1.0 - 2.0 * _ranks(y)) / len(y))
    return _squared_criterion(-standardise(y))


def _ranks(y: Floats) -> Floats:
    return np.asarray((y[None, :] <= y[:, None]).sum(axis=1), dtype=np.float64)


def _list_wise(y: Floats, weights: Floats) -> Criterion:
    remains = y[None, :] >= y[:, None]

    def at(scores: Scores) -> Quadratic:
        weight = weights.astype(scores.dtype)
        left = np.where(remains, scores[:, None, :], scores.dtype.type(-np.inf))
        highest = left.max(axis=2, keepdims=True)
        share = np.exp(left - highest)
        total = share.sum(axis=2, keepdims=True)
        share /= total
        rest = (highest + np.log(total))[:, :, 0]
        weighted = share * weight[:, None]
        mean = weighted.sum(axis=1)
        curvature = -np.swapaxes(weighted, 1, 2) @ share
        n = np.arange(len(y))
        curvature[:, n, n] += mean
        return Quadratic((rest - scores) @ weight, mean - weight, curvature)

    return at


def _pair_wise(y: Floats) -> Criterion:
    better = (y[:, None] < y[None, :]) * (2.0 / len(y))

    def at(scores: Scores) -> Quadratic:
        gap = scores[:, None, :] - scores[:, :, None]
        value = (better * np.logaddexp(0.0, gap)).sum(axis=(1, 2))
        chance = expit(gap)
        push = better * chance
        pull = push * (1.0 - chance)
        both = pull + np.swapaxes(pull, 1, 2)
        curvature = -both
        n = np.arange(len(y))
        curvature[:, n, n] += both.sum(axis=2)
        return Quadratic(value, push.sum(axis=1) - push.sum(axis=2), curvature)

    return at


def _squared_criterion(wanted: Floats) -> Criterion:
    twice = 2.0 * np.eye(len(wanted))

    def at(scores: Scores) -> Quadratic:
        off = scores - wanted
        shape = (len(scores), *twice.shape)
        return Quadratic(np.square(off).sum(axis=1), 2.0 * off, np.broadcast_to(twice, shape))

    return at
