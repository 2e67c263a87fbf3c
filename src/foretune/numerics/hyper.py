"""Hyperparameters of a Gaussian process, and what is believed of them before any observation.

The priors are normal over the vector of hyperparameters, that is log-normal over lengthscales and
variances. Lengthscales are centred at 0.2 sqrt(d), where Hvarfner et al. (2024) have the mode of
theirs: growing with the diagonal of the cube, so that a function of many inputs is not presumed
to be more complicated than one of few. The spread is narrower than theirs, by measurement
(docs/decisions/003).
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from foretune.arrays import Floats, Ints


@dataclass(frozen=True, slots=True)
class GPHyper:
    """Hyperparameters in standardised units; lengthscales and variances as logarithms."""

    log_lengthscales: Floats
    """(d,), in widths of the unit cube."""
    log_signal: float
    """Log variance of the function."""
    log_noise: float
    """Log variance of the noise."""
    mean: float = 0.0
    log_slopes: float | None = None
    """Log variance of the slopes along further columns, where the function is linear in some."""

    @classmethod
    def default(cls, d: int, *, linear: bool = False, groups: Ints | None = None) -> Self:
        """The most probable values before any observation, for d (groups of) columns."""
        mode = prior_mode(d, linear=linear, groups=groups)
        lengthscales = mode[:d] if groups is None else mode[groups]
        return cls.from_vector(np.append(lengthscales, mode[d:]), linear=linear)

    @classmethod
    def from_vector(cls, vector: Floats, *, linear: bool = False) -> Self:
        """The inverse of `to_vector`; `linear` says whether it holds the slopes' variance."""
        d = len(vector) - 3 - linear
        scalars = [float(value) for value in vector[d:]]
        return cls(vector[:d].copy(), *scalars)

    def to_vector(self) -> Floats:
        """(d + 3,) or (d + 4,): log lengthscales, log signal, log noise, mean, log slopes."""
        slopes = [] if self.log_slopes is None else [self.log_slopes]
        return np.append(
            self.log_lengthscales, [self.log_signal, self.log_noise, self.mean, *slopes]
        )


def prior_mode(d: int, *, linear: bool = False, groups: Ints | None = None) -> Floats:
    """Where the prior over `GPHyper.to_vector()` is highest, with one lengthscale a group."""
    slopes = [-1.0] * linear
    lengthscales = np.log(0.2 * np.sqrt(d) * _typical_distances(d, groups))
    return np.append(lengthscales, [0.0, -6.0, 0.0, *slopes])


def _typical_distances(d: int, groups: Ints | None) -> Floats:
    """(d,): how far two random values are apart in each group, in units of a single column's.

    Uniform numbers have a mean square of 1/6 between them, one of k choices as k columns has
    2 (1 - 1/k). Lengthscales follow, or choices would seem to have nothing to do with each other.
    """
    if groups is None:
        return np.ones(d)
    columns = np.bincount(groups)
    squared = np.where(columns == 1, 1.0 / 6.0, 2.0 * (1.0 - 1.0 / columns))
    return np.sqrt(6.0 * squared)


def prior_spread(d: int, *, linear: bool = False) -> Floats:
    """Standard deviations of the prior over `GPHyper.to_vector()`."""
    return np.append(np.ones(d), [1.0, 1.5, 1.0, *[1.5] * linear])


def hyper_bounds(d: int, *, linear: bool = False) -> list[tuple[float, float]]:
    """Bounds of `GPHyper.to_vector()` that keep any covariance well conditioned."""
    ranges = ((0.01, 1e3), (1e-3, 1e2), (1e-6, 2.0), (1e-4, 1e2))
    lengthscale, signal, noise, slopes = [(float(np.log(a)), float(np.log(b))) for a, b in ranges]
    return [lengthscale] * d + [signal, noise, (-10.0, 10.0)] + [slopes] * linear
