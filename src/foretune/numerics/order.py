"""How well a belief predicted the order of losses that it had not seen."""

import numpy as np
from scipy.special import ndtr

from foretune._base.arrays import Floats

DISTRUST = 0.02
"""The probability that the order of a pair is random, so that one mistake rules no belief out."""
LEAST_STD = 1e-9


def order_score(mean: Floats, std: Floats, losses: Floats, first: int) -> Floats:
    """Return the log-probability that beliefs gave to the order of the losses from row `first` on.

    mean, std: (..., n), of one belief or of many; losses: (n,). The beliefs knew the rows before
    `first`. Each later row is compared with all rows before it; its pairs count as one observation
    together, because they are not independent. A pair's probability needs no unit, so beliefs in
    different units compare. Returns the shape of mean without its last axis.
    """
    score = np.zeros(mean.shape[:-1])
    for row in range(max(first, 1), len(losses)):
        sign = np.sign(losses[:row] - losses[row])
        apart = np.flatnonzero(sign)
        if len(apart):
            spread = np.hypot(std[..., apart], std[..., row : row + 1])
            gap = (mean[..., apart] - mean[..., row : row + 1]) / np.hypot(spread, LEAST_STD)
            right = DISTRUST / 2 + (1.0 - DISTRUST) * ndtr(sign[apart] * gap)
            score = score + np.log(right).mean(axis=-1)
    return score
