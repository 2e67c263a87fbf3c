"""How far past tasks rank the target's trials as the target does, and their weights for it."""

import numpy as np

from foretune.numerics import Floats

PEAK = 0.75
"""The weight of full agreement, and therefore the weight of the target itself."""


def rank_distances(z: Floats, predicted: Floats) -> Floats:
    """Return (M,), the share of pairs among n trials that each row of `predicted` (M, n) misranks.

    `z` (n,) are the losses. A pair is misranked if exactly one of the two says that its first trial
    is worse than its second.
    """
    n = len(z)
    if n < 2:
        return np.zeros(len(predicted))
    worse = z[:, None] > z[None, :]
    misranked = [np.count_nonzero((row[:, None] > row[None, :]) != worse) for row in predicted]
    return np.array(misranked) / (n * (n - 1))


def epanechnikov(distances: Floats, bandwidth: float) -> Floats:
    """Return weights that fall from `PEAK` at distance 0 to 0 at the bandwidth and beyond."""
    return PEAK * np.maximum(1.0 - np.square(distances / bandwidth), 0.0)
