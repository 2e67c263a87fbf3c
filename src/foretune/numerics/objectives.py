"""Several objectives as one: the average of their transformed columns."""

from collections.abc import Callable

import numpy as np

from foretune.arrays import Floats


def scalarise(losses: Floats, transform: Callable[[Floats], Floats]) -> Floats:
    """(n, L) losses -> (n,): each column brought to one unit, then averaged.

    With Gaussian scores the level sets of the average follow a Pareto front; with standardised
    losses they are straight lines (copula paper, section 5.2).
    """
    columns = [transform(losses[:, column]) for column in range(losses.shape[1])]
    averaged: Floats = np.mean(columns, axis=0)
    return averaged
