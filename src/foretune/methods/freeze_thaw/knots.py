"""Curves at common relative steps, so that tasks may differ in their length and unit of steps."""

import numpy as np

from foretune._base.arrays import Floats, Ints

MOST_KNOTS = 12
GENERIC_FIRST = 1.0 / 64.0
"""The first relative step where past tasks have no curves."""
NEAR = 1.0 + 1e-6
"""Two steps whose ratio is smaller are the same."""


def place_knots(first: float, most: int = MOST_KNOTS) -> Floats:
    """Return relative steps from `first` to 1, with equal ratios."""
    count = max(min(most, MOST_KNOTS), 1)
    if count == 1 or first >= 1.0 / NEAR:
        return np.ones(1)
    return np.exp(np.linspace(np.log(first), 0.0, count))


def curve_at_knots(steps: Floats, losses: Floats, last: float, knots: Floats) -> Floats:
    """Return (K,), the losses of one curve at the knots, between two steps by interpolation.

    NaN where the curve has not come; infinity from where it diverged.
    steps, losses: (n,), ascending; a loss that is not finite says that the trial diverged.
    last: the step of a complete trial.
    """
    begun = steps > 0
    steps, losses = steps[begun] / last, losses[begun]
    wrong = ~np.isfinite(losses)
    good = int(np.argmax(wrong)) if wrong.any() else len(losses)
    found = np.full(len(knots), np.nan)
    if good:
        found = np.interp(np.log(knots), np.log(steps[:good]), losses[:good])
        found[knots > steps[good - 1] * NEAR] = np.nan
        if knots[0] > steps[good - 1] * NEAR:
            found[0] = losses[good - 1]  # It has come less far than the first knot.
    if wrong.any():
        found[knots > (steps[good - 1] if good else 0.0) * NEAR] = np.inf
    return found


def nearest_knot(step: float, last: float, knots: Floats) -> int:
    """Return the last knot at or before a step; the first one if there is none."""
    return max(int(np.searchsorted(knots, step / last * NEAR, side="right")) - 1, 0)


def fill_missing(scores: Floats, mean: Floats, covariance: Floats) -> Floats:
    """Return scores (n, K) whose NaN are what a normal distribution expects, given the others."""
    filled, missing = scores.copy(), np.isnan(scores)
    patterns, which = np.unique(missing, axis=0, return_inverse=True)
    for number, pattern in enumerate(patterns):
        rows: Ints = np.flatnonzero(which.ravel() == number)
        if not pattern.any():
            continue
        known = ~pattern
        if not known.any():
            filled[rows] = mean
            continue
        among = covariance[np.ix_(known, known)].copy()
        among[np.diag_indices(len(among))] += 1e-6 + 1e-3 * float(np.trace(covariance)) / len(mean)
        across = covariance[np.ix_(pattern, known)]
        gain = np.linalg.solve(among, across.T)
        filled[np.ix_(rows, pattern)] = (
            mean[pattern] + (filled[np.ix_(rows, known)] - mean[known]) @ gain
        )
    return filled
