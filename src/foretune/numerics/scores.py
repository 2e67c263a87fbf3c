"""Gaussian scores of losses: by rank if a task is known in full, smoothed if it has few trials.

Scores need no unit, and no outlier can stretch them. Unlike `transforms.copula_scores` they cut
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
"""Returns the share of the losses (n,) that lies below each of them."""

GRID = 400
"""Points at which the predictive distribution is tabulated."""
DOUBT = 0.5
"""Even odds that past tasks say nothing about the target."""
SMOOTHING = 1.06
"""Silverman's rule: the width of the kernel in standard deviations, times n^(1/5)."""
OUTLYING = 3.0
"""Losses further above the median than this are drawn in; the unit is median minus best."""
ENORMOUS = 1000.0
"""An outlier that stretches the range by this factor is a penalty, not a measurement."""
MOST_COMPARED = 512
"""Each loss is compared with at most this number of others."""
MOST_MIXED = 2_048
"""The most trials whose expectations are mixed."""
MOST_EXACT = 4_096
"""The most losses for which the smooth distribution function is computed at each loss."""


def midrank_scores(y: Floats) -> Floats:
    """Return Phi^-1((rank - 1/2) / n), with ties at their mean rank.

    The Winsorised distribution function makes the best 28 of 5,000 losses equal. Past tasks are
    large and know which loss is best, so their scores need no cut.
    """
    return ndtri(midrank_shares(y))


def midrank_shares(y: Floats) -> Floats:
    """Return (rank - 1/2) / n, with ties at their mean rank."""
    shares: Floats = (rankdata(y) - 0.5) / len(y)
    return shares


def smooth_shares(y: Floats, *, most_exact: int = MOST_EXACT) -> Floats:
    """Return (n,), the share of the losses below each one, by a smooth distribution function.

    Trials gather around the optimum, where losses hardly differ. Ranks would spread these losses
    over the whole of N(0, 1): a smooth function would become a spike, and a process would learn
    nothing about the places beside it. Here the mean of Phi((y_i - y_j) / h) over j replaces the
    rank; h is the width of Silverman's rule. Losses that differ little get similar scores.
    """
    drawn_in = standardise(draw_in_outliers(y))
    sample = _spread_sample(drawn_in)
    width = SMOOTHING * len(y) ** -0.2
    if len(y) <= most_exact:
        return _mean_share(drawn_in, sample, width)
    knots = _knots(drawn_in)
    return np.interp(drawn_in, knots, _mean_share(knots, sample, width))


def _mean_share(z: Floats, sample: Floats, width: float) -> Floats:
    """Return (n,), the smooth distribution function of the sample at z (n,)."""
    shares: Floats = ndtr((z[:, None] - sample) / width).mean(axis=1)
    return shares


def _knots(z: Floats) -> Floats:
    """Return places between which the smooth distribution function is nearly straight.

    These are the best values of z (n,), and others evenly over its order and over its range.
    """
    ordered = np.sort(z)
    places = np.linspace(MOST_COMPARED, len(z) - 1, MOST_EXACT // 2).astype(np.int64)
    evenly = np.linspace(ordered[0], ordered[-1], MOST_EXACT // 2)
    return np.unique(np.concatenate([ordered[:MOST_COMPARED], ordered[places], evenly]))


def front_scores(losses: Floats) -> Floats:
    """Return (n, L), standardised losses of several objectives. Outliers are drawn in.

    Ranks would lose the distances along a front. Trials on the front are never drawn in: if many
    trials have gathered at one end of it, the other end is an outlier in some objectives. A trial
    that fails at once and gets a penalty may be the quickest one, but it is no end of a front.
    """
    ends = losses[pareto_front(losses)].max(axis=0)
    each = [
        draw_in_outliers(y, min(float(end), _worst_plausible(y)))
        for y, end in zip(losses.T, ends, strict=True)
    ]
    return np.column_stack([*map(standardise, each)])


def _worst_plausible(y: Floats) -> float:
    """Return the largest loss that is not enormous compared with the next smaller one."""
    different = np.unique(y)
    distances = 0.5 * different - 0.5 * different[0]  # halves, so that they stay finite
    worst = len(different) - 1
    while worst > 1 and distances[worst] / ENORMOUS > distances[worst - 1]:
        worst -= 1
    return float(different[worst])


def draw_in_outliers(y: Floats, kept: float = -np.inf) -> Floats:
    """Draw in outliers, because one enormous loss would make all others equal.

    Losses up to `kept` stay as they are. Once most trials have gathered around the best one, the
    other trials are outliers, and the scores tell the gathered ones apart. If most losses equal
    the best one, the median of the others is used.
    """
    best = float(y.min())
    above = y[y > best]
    if not len(above):
        return y
    median = _median(y)
    if median <= best:
        # The lower median: it is no penalty as long as one of two losses is none.
        median = float(np.sort(above)[(len(above) - 1) // 2])
    return np.minimum(y, max(median + OUTLYING * (median - best), kept))


def without_penalties(y: Floats) -> Floats:
    """Draw in enormous losses (n,), which people note for a failure. Others stay as they are.

    Methods that standardise need this: beside an enormous loss all others would be equal.
    """
    drawn_in = draw_in_outliers(y)
    best, worst, usual = float(y.min()), float(y.max()), float(drawn_in.max())
    return drawn_in if worst - best > ENORMOUS * (usual - best) else y


def _median(y: Floats) -> float:
    # Halves are exact, and the sum of the two middle values stays finite.
    return 2.0 * float(np.median(0.5 * y))


def _spread_sample(z: Floats) -> Floats:
    """Return at most `MOST_COMPARED` of the values, evenly over their order."""
    if len(z) <= MOST_COMPARED:
        return z
    sample: Floats = np.sort(z)[_evenly(len(z), MOST_COMPARED)]
    return sample


def _evenly(n: int, most: int) -> Ints:
    """Return (most,) places, evenly among n."""
    return ((np.arange(most) + 0.5) / most * n).astype(np.int64)


def smooth_scores(y: Floats, *, most_exact: int = MOST_EXACT) -> Floats:
    """Return Phi^-1 of the smoothed share of each loss."""
    least = 0.5 / max(len(y), 1)
    return ndtri(np.clip(smooth_shares(y, most_exact=most_exact), least, 1.0 - least))


def scores_from_past(
    y: Floats,
    mu: Floats,
    sigma: Floats,
    *,
    doubt: float = DOUBT,
    shares: Shares = smooth_shares,
) -> Floats:
    """Return the scores (n,) that past tasks expect for the target's losses y (n,).

    A few trials that were chosen to be good are no sample of all configurations, and their own
    distribution function would spread them over the whole of N(0, 1). If past tasks are right, the
    scores of the trials are distributed as the mixture of N(mu_i, sigma_i²). If past tasks say
    nothing about this task, as N(0, 1), which has the probability `doubt`. Each loss gets the
    quantile of both distributions together at its share. With very many trials, only some of them
    are mixed.
    """
    if len(mu) > MOST_MIXED:
        rows = np.argsort(mu, kind="stable")[_evenly(len(mu), MOST_MIXED)]
        mu, sigma = mu[rows], sigma[rows]
    lowest, highest = float((mu - 6.0 * sigma).min()), float((mu + 6.0 * sigma).max())
    grid = np.linspace(min(lowest, -6.0), max(highest, 6.0), GRID)
    expected = ndtr((grid[:, None] - mu) / sigma).mean(axis=1)
    together = (1.0 - doubt) * expected + doubt * ndtr(grid)
    return np.interp(shares(y), together, grid)
