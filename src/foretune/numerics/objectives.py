"""Several objectives: as one, by the average of their transformed columns, or side by side."""

from collections.abc import Callable

import numpy as np

from foretune._base.arrays import Bools, Floats


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
    unique, places = np.unique(points[complete], axis=0, return_inverse=True)
    # In lexicographic order a point can only be dominated by one that comes before it.
    front: list[int] = []
    for i, point in enumerate(unique):
        if not (unique[front] <= point).all(axis=1).any():
            front.append(i)
    optimal = np.zeros(len(points), dtype=bool)
    optimal[complete] = np.isin(places.ravel(), front)
    return optimal
