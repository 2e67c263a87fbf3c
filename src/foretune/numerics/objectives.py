"""Several objectives: combined by the average of transformed columns, or compared as a front."""

from collections.abc import Callable

import numpy as np

from foretune._base.arrays import Bools, Floats, Ints

MANY_POINTS = 1_000
"""With more points, most are removed before the others are sorted."""
CLEARLY_GOOD = 5
"""The number of good points that remove others."""


def scalarise(losses: Floats, transform: Callable[[Floats], Floats]) -> Floats:
    """Turn losses (n, L) into (n,): each column is brought to one unit, then averaged.

    With Gaussian scores the level sets of the average follow a Pareto front. With standardised
    losses they are straight lines (copula paper, section 5.2).
    """
    columns = [transform(losses[:, column]) for column in range(losses.shape[1])]
    averaged: Floats = np.mean(columns, axis=0)
    return averaged


def pareto_front(points: Floats) -> Bools:
    """Return which points (n, L) no other point dominates; never points with NaN."""
    complete = np.flatnonzero(np.isfinite(points).all(axis=1))
    if len(complete) > MANY_POINTS:
        complete = complete[_possibly_undominated(points[complete])]
    first, places, _ = distinct_rows(points[complete])
    # In lexicographic order only an earlier point can dominate a point.
    unique = points[complete[first]]
    among = _front_of_two(unique) if points.shape[1] == 2 else _front_of_any(unique)
    optimal = np.zeros(len(points), dtype=bool)
    optimal[complete] = among[places]
    return optimal


def _possibly_undominated(points: Floats) -> Bools:
    """Return which points (n, L) a few good points do not dominate."""
    scaled = points / np.maximum(np.abs(points).max(axis=0), np.finfo(float).tiny)
    left = np.arange(len(points))
    for row in np.argsort(scaled.mean(axis=1), kind="stable")[:CLEARLY_GOOD]:
        some = points[left]
        worse = (some >= points[row]).all(axis=1) & (some > points[row]).any(axis=1)
        left = left[~worse]
    undominated = np.zeros(len(points), dtype=bool)
    undominated[left] = True
    return undominated


def _front_of_two(points: Floats) -> Bools:
    """Return which points (n, 2), distinct and lexicographic, are below all earlier ones."""
    among = np.ones(len(points), dtype=bool)
    among[1:] = points[1:, 1] < np.minimum.accumulate(points[:, 1])[:-1]
    return among


def _front_of_any(points: Floats) -> Bools:
    """Return which points (n, L), distinct and in lexicographic order, are on the front.

    The first point is on the front. The points that it dominates leave, and so on.
    """
    among = np.zeros(len(points), dtype=bool)
    left = np.arange(len(points))
    while len(left):
        among[left[0]] = True
        left = left[(points[left] < points[left[0]]).any(axis=1)]
    return among


def distinct_rows(points: Floats) -> tuple[Ints, Ints, Ints]:
    """Return the distinct points of (n, L), none NaN, as `np.unique` with an axis does.

    The result is the first row of each, in lexicographic order; the number of the distinct point of
    each row (n,); and the count of each. `np.unique` takes ten times as long for 100,000 rows.
    """
    order = np.lexsort(points.T[::-1])
    ordered = points[order]
    begins = np.ones(len(points), dtype=bool)
    begins[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    which = np.empty(len(points), dtype=np.int64)
    which[order] = np.cumsum(begins) - 1
    return order[begins], which, np.bincount(which)
