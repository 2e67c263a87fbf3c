"""Gaussian scores of losses by rank: of a task that is known in full, and of a few trials.

They need no unit, and no outlier can stretch them. Unlike `transforms.copula_scores` they cut
nothing off.
"""

import numpy as np
from scipy.special import ndtr, ndtri
from scipy.stats import rankdata

from foretune.arrays import Floats

GRID = 400
"""Points at which the predictive distribution is tabulated."""
DOUBT = 0.5
"""Even odds that past tasks say nothing about the target."""


def midrank_scores(y: Floats) -> Floats:
    """Phi^-1((rank - 1/2) / n), ties at their mean rank.

    Of n = 5,000 losses the Winsorised distribution function makes the best 29 equal; past tasks
    are large and know which of them is best, so their scores need no cut.
    """
    return ndtri((rankdata(y) - 0.5) / len(y))


def informed_scores(y: Floats, mu: Floats, sigma: Floats, *, doubt: float = DOUBT) -> Floats:
    """The scores that past tasks expect at the ranks which the target's losses y (n,) have.

    Few trials, all chosen to be good, are no sample of all configurations: their own distribution
    function spreads them over the whole of N(0, 1). If past tasks are right, the scores of the
    configurations tried are distributed as the mixture of N(mu_i, sigma_i²); if they say nothing
    about this task, as N(0, 1). With the chance `doubt` for the latter, the loss of rank r gets
    the quantile of both together at (r - 1/2) / n.
    """
    lowest, highest = float((mu - 6.0 * sigma).min()), float((mu + 6.0 * sigma).max())
    grid = np.linspace(min(lowest, -6.0), max(highest, 6.0), GRID)
    expected = ndtr((grid[:, None] - mu) / sigma).mean(axis=1)
    together = (1.0 - doubt) * expected + doubt * ndtr(grid)
    return np.interp((rankdata(y) - 0.5) / len(y), together, grid)
