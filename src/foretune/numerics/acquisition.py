"""Acquisition functions, each once: how promising a candidate is. Higher is better.

All read means and standard deviations (m,) of a minimised loss. They are finite for every finite
input, also for a standard deviation of zero.
"""

import numpy as np
from scipy.special import erfcx, ndtr

from foretune._base.arrays import Floats

SMALLEST_STD = 1e-150
"""Replaces a standard deviation of zero, because then only the sign of the improvement counts."""

SMALLEST_IMPROVEMENT = 1e-300
"""Replaces an improvement of zero, which has no logarithm."""

_LOG_SQRT_2PI = 0.5 * float(np.log(2.0 * np.pi))
_LOWEST_V, _HIGHEST_V = -1e150, 1e300
"""Beyond these limits v or its square would overflow."""


def log_expected_improvement(mean: Floats, std: Floats, best: float) -> Floats:
    """Return log E[max(best - f, 0)] for normal f. It is exact far into the tail.

    The logarithm keeps the order of hopeless candidates, whose expected improvements would all be
    rounded to zero.
    """
    v, std = _scale_improvement(mean, std, best)
    return np.log(std) + log_h(v)


def log_h(v: Floats) -> Floats:
    """Return log(phi(v) + v Phi(v)), to nearly full precision for every v.

    For v < 0 Mills' ratio m(t) = Phi(-t) / phi(t), t = -v, gives h = phi(v) (1 - t m(t)). As t
    grows 1 - t m(t) cancels, and its asymptotic series t^-2 - 3 t^-4 + 15 t^-6 - ... replaces it.
    """
    v = np.asarray(v, dtype=np.float64)
    result = np.empty_like(v)
    near, far = v > -1.0, v <= -30.0
    middle = ~(near | far)

    at = v[near]
    # Beyond 40 the density is zero in double precision; its square must not overflow.
    density = np.exp(-0.5 * np.minimum(at, 40.0) ** 2 - _LOG_SQRT_2PI)
    result[near] = np.log(density + at * ndtr(at))

    t = -v[middle]
    mills = np.sqrt(np.pi / 2.0) * erfcx(t / np.sqrt(2.0))
    result[middle] = np.log1p(-t * mills) - 0.5 * t * t - _LOG_SQRT_2PI

    t = -v[far]
    inverse = 1.0 / (t * t)
    series = inverse * (-3.0 + inverse * (15.0 + inverse * (-105.0 + inverse * 945.0)))
    result[far] = np.log1p(series) - 2.0 * np.log(t) - 0.5 * t * t - _LOG_SQRT_2PI
    return result


def expected_improvement(mean: Floats, std: Floats, best: float) -> Floats:
    """Return E[max(best - f, 0)] for normal f, which is max(best - mean, 0) where std is zero."""
    return np.exp(log_expected_improvement(mean, std, best))


def log_of_improvement(improvement: Floats) -> Floats:
    """Return the logarithm of improvements. It stays finite for an improvement of 0."""
    logs: Floats = np.log(np.maximum(improvement, SMALLEST_IMPROVEMENT))
    return logs


def thompson(samples: Floats) -> Floats:
    """Return (m,), the negated average of draws (n, m) of the losses of m candidates.

    One draw is Thompson sampling. An average over more draws explores less.
    """
    score: Floats = -samples.mean(axis=0)
    return score


def _scale_improvement(mean: Floats, std: Floats, best: float) -> tuple[Floats, Floats]:
    """Return (best - mean) / std, and std, within the limits of the formulas."""
    std = np.maximum(std, SMALLEST_STD)
    with np.errstate(over="ignore"):
        return np.clip((best - mean) / std, _LOWEST_V, _HIGHEST_V), std
