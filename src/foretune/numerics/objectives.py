"""Several objectives: as one, by the average of their transformed columns, or side by side."""

from collections.abc import Callable

import numpy as np

from foretune._base.arrays import Bools, Floats, Ints

MANY_POINTS = 1_000
"""Of more points most are sorted out before the others are put in order."""
CLEARLY_GOOD = 5
"""So many good points sort out others."""


def scalarise(losses: Floats, transform: Callable[[Floats], Floats]) -> Floats:
    """(n, L) losses -> (n,): each column brought to one unit, then averaged.

    With Gaussian scores the level sets of the average follow a Pareto front; with standardised
    losses they are straight lines (copula paper, section 5.2).
    """
    columns = [transform(losses[:, column]) for column in range(losses.shape[1])]
    averaged: Floats = np.mean(columns, axis=0)
    return averaged


def pareto_front(points: Floats) -> Bools:
    """Which of the (n, objectives) points no other point dominates; rows with NaN never are."""
    complete = np.flatnonzero(np.isfinite(points).all(axis=1))
    if len(complete) > MANY_POINTS:
        complete = complete[_possibly_undominated(points[complete])]
    first, places, _ = distinct_rows(points[complete])
    # In lexicographic order a point can only be dominated by one that comes before it.
    unique = points[complete[first]]
    among = _front_of_two(unique) if points.shape[1] == 2 else _front_of_any(unique)
    optimal = np.zeros(len(points), dtype=bool)
    optimal[complete] = among[places]
    return optimal


def _possibly_undominated(points: Floats) -> Bools:
    """Which of the points (n, L) are not dominated by a few good ones."""
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
    """Of different points (n, 2) in lexicographic order: those below all before them."""
    among = np.ones(len(points), dtype=bool)
    among[1:] = points[1:, 1] < np.minimum.accumulate(points[:, 1])[:-1]
    return among


def _front_of_any(points: Floats) -> Bools:
    """Of different points (n, L) in lexicographic order: the first is on the front; what it
    dominates leaves, and so on.
    """
    among = np.zeros(len(points), dtype=bool)
    left = np.arange(len(points))
    while len(left):
        among[left[0]] = True
        left = left[(points[left] < points[left[0]]).any(axis=1)]
    return among


def distinct_rows(points: Floats) -> tuple[Ints, Ints, Ints]:
    """Of points (n, L), none NaN: the first row of each distinct one, in lexicographic order;
    which of these each row has (n,); and how many rows have it.

    The same as `np.unique` with an axis, which takes ten times as long for 100,000 rows.
    """
    order = np.lexsort(points.T[::-1])
    ordered = points[order]
    begins = np.ones(len(points), dtype=bool)
    begins[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    which = np.empty(len(points), dtype=np.int64)
    which[order] = np.cumsum(begins) - 1
    return order[begins], which, np.bincount(which)
