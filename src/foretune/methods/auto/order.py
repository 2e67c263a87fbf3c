"""How well a belief put losses in order before it saw them."""

import numpy as np
from scipy.special import ndtr

from foretune.arrays import Floats

DISTRUST = 0.02
"""The chance that a pair is in either order, whatever the belief says: nobody is ruled out by one
mistake."""
LEAST_STD = 1e-9


def order_score(mean: Floats, std: Floats, losses: Floats, first: int) -> float:
    """The log-probability a belief gave to the places of the losses from row `first` on.

    mean, std, losses: (n,). The belief knew the rows before `first`. Each later row is compared
    with all rows before it; its pairs count as one observation together, because they are not
    independent. A pair's probability needs no unit, so beliefs in different units compare.
    """
    score = 0.0
    for row in range(max(first, 1), len(losses)):
        sign = np.sign(losses[:row] - losses[row])
        gap = (mean[:row] - mean[row]) / np.hypot(np.hypot(std[:row], std[row]), LEAST_STD)
        right = ndtr(sign * gap)[sign != 0]
        if len(right):
            score += float(np.log(DISTRUST / 2 + (1.0 - DISTRUST) * right).mean())
    return score
