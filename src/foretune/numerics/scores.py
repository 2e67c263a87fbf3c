"""Gaussian scores of losses: by rank of a task that is known in full, smoothed of a few trials.

They need no unit, and no outlier can stretch them. Unlike `transforms.copula_scores` they cut
nothing off.
"""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from scipy.special import ndtr, ndtri
from scipy.stats import rankdata

from foretune._base.arrays import Floats, Ints
from foretune.numerics.objectives import pareto_front
from foretune.numerics.transforms import standardise

Shares: TypeAlias = Callable[[Floats], Floats]
"""Which share of the losses (n,) lies below each of them."""

GRID = 400
"""Points at which the predictive distribution is tabulated."""
DOUBT = 0.5
"""Even odds that past tasks say nothing about the target."""
SMOOTHING = 1.06
"""Silverman's rule: the width of the kernel in standard deviations, times n^(1/5)."""
OUTLYING = 3.0
"""Losses that lie further above the median, in distances of the best from it, are drawn in."""
ENORMOUS = 1000.0
"""Outliers that stretch the range so many times are penalties and no measurements."""
MOST_COMPARED = 512
"""Every loss is compared with so many of the others at most."""
MOST_MIXED = 2_048
"""The expectations of so many trials stand for those of more."""
MOST_EXACT = 4_096
"""Of more losses, the smooth distribution function is worked out at so many places only."""


def midrank_scores(y: Floats) -> Floats:
    """Phi^-1((rank - 1/2) / n), ties at their mean rank.

    Of n = 5,000 losses the Winsorised distribution function makes the best 28 equal; past tasks
    are large and know which of them is best, so their scores need no cut.
    """
    return ndtri(midrank_shares(y))


def midrank_shares(y: Floats) -> Floats:
    """(rank - 1/2) / n, ties at their mean rank."""
    shares: Floats = (rankdata(y) - 0.5) / len(y)
    return shares


def smooth_shares(y: Floats) -> Floats:
    """(n,), the share of the losses y that lie below each, by a smooth distribution function.

    Trials gather around the optimum, where ranks spread losses that hardly differ over the whole of
    N(0, 1): a smooth function becomes a spike, and a process that sees it no longer knows what lies
    beside the spike. Here the mean of Phi((y_i - y_j) / h) over j takes the place of the rank, h
    being as wide as Silverman has it. Losses that differ little get scores that differ little.
    """
    drawn_in = standardise(_without_outliers(y))
    sample = _spread_sample(drawn_in)
    width = SMOOTHING * len(y) ** -0.2
    if len(y) <= MOST_EXACT:
        return _mean_share(drawn_in, sample, width)
    knots = _knots(drawn_in)
    return np.interp(drawn_in, knots, _mean_share(knots, sample, width))


def _mean_share(z: Floats, sample: Floats, width: float) -> Floats:
    """(n,), the smooth distribution function of the sample at each of z (n,)."""
    shares: Floats = ndtr((z[:, None] - sample) / width).mean(axis=1)
    return shares


def _knots(z: Floats) -> Floats:
    """Values between which the smooth distribution function is all but straight: the best of z
    (n,), and others evenly over its order and over its range.
    """
    ordered = np.sort(z)
    places = np.linspace(MOST_COMPARED, len(z) - 1, MOST_EXACT // 2).astype(np.int64)
    evenly = np.linspace(ordered[0], ordered[-1], MOST_EXACT // 2)
    return np.unique(np.concatenate([ordered[:MOST_COMPARED], ordered[places], evenly]))


def front_scores(losses: Floats) -> Floats:
    """(n, L), standardised losses of several objectives, outliers drawn in, but none of the front.

    Ranks would forget the distances along a front. And where many trials have gathered at one end
    of it, which is the best there is of some objectives, its other end is an outlier in these. But
    what fails at once, with a penalty, is the quickest and no end of a front.
    """
    ends = losses[pareto_front(losses)].max(axis=0)
    each = [
        _without_outliers(y, min(float(end), _worst_plausible(y)))
        for y, end in zip(losses.T, ends, strict=True)
    ]
    return np.column_stack([*map(standardise, each)])


def _worst_plausible(y: Floats) -> float:
    """The largest loss that is no penalty: not enormous beside the next smaller one."""
    different = np.unique(y)
    distances = 0.5 * different - 0.5 * different[0]  # halves, so that they stay finite
    worst = len(different) - 1
    while worst > 1 and distances[worst] / ENORMOUS > distances[worst - 1]:
        worst -= 1
    return float(different[worst])


def _without_outliers(y: Floats, kept: float = -np.inf) -> Floats:
    """Else one enormous loss would make all others equal. Up to `kept` all stay as they are.

    Once most trials have gathered around the best, the others are outliers, and the scores tell
    those apart that have gathered. Where most are equal to the best, the median is that of the
    others.
    """
    best = float(y.min())
    above = y[y > best]
    if not len(above):
        return y
    median = _median(y)
    if median <= best:
        # Of an even number the lower one, which is no penalty while one of two is none.
        median = float(np.sort(above)[(len(above) - 1) // 2])
    return np.minimum(y, max(median + OUTLYING * (median - best), kept))


def without_penalties(y: Floats) -> Floats:
    """The losses y (n,) as they are, but for enormous ones, as people note them for a failure.

    For methods that standardise: beside one of them all others would be equal.
    """
    drawn_in = _without_outliers(y)
    best, worst, usual = float(y.min()), float(y.max()), float(drawn_in.max())
    return drawn_in if worst - best > ENORMOUS * (usual - best) else y


def _median(y: Floats) -> float:
    # Halves are exact, and the sum of the two in the middle stays finite.
    return 2.0 * float(np.median(0.5 * y))


def _spread_sample(z: Floats) -> Floats:
    """At most `MOST_COMPARED` of the values, evenly over their order."""
    if len(z) <= MOST_COMPARED:
        return z
    sample: Floats = np.sort(z)[_evenly(len(z), MOST_COMPARED)]
    return sample


def _evenly(n: int, most: int) -> Ints:
    """Return (most,) places, evenly among n."""
    return ((np.arange(most) + 0.5) / most * n).astype(np.int64)


def smooth_scores(y: Floats) -> Floats:
    """Phi^-1 of the smoothed share of each loss."""
    least = 0.5 / max(len(y), 1)
    return ndtri(np.clip(smooth_shares(y), least, 1.0 - least))


def scores_from_past(
    y: Floats,
    mu: Floats,
    sigma: Floats,
    *,
    doubt: float = DOUBT,
    shares: Shares = smooth_shares,
) -> Floats:
    """The scores that past tasks expect at the places which the target's losses y (n,) have.

    Few trials, all chosen to be good, are no sample of all configurations: their own distribution
    function spreads them over the whole of N(0, 1). If past tasks are right, the scores of the
    configurations tried are distributed as the mixture of N(mu_i, sigma_i²); if they say nothing
    about this task, as N(0, 1). With the chance `doubt` for the latter, each loss gets the
    quantile of both together at its share. Of very many trials some stand for all.
    """
    if len(mu) > MOST_MIXED:
        rows = np.argsort(mu, kind="stable")[_evenly(len(mu), MOST_MIXED)]
        mu, sigma = mu[rows], sigma[rows]
    lowest, highest = float((mu - 6.0 * sigma).min()), float((mu + 6.0 * sigma).max())
    grid = np.linspace(min(lowest, -6.0), max(highest, 6.0), GRID)
    expected = ndtr((grid[:, None] - mu) / sigma).mean(axis=1)
    together = (1.0 - doubt) * expected + doubt * ndtr(grid)
    return np.interp(shares(y), together, grid)
