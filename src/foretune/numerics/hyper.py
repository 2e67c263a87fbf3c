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

from foretune._base.arrays import Floats, Ints


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

    @classmethod
    def default(cls, groups: Ints) -> Self:
        """The most probable values before any observation, for columns in these groups (d,)."""
        mode = prior_mode(groups)
        return cls.from_vector(np.append(mode[groups], mode[-3:]))

    @classmethod
    def from_vector(cls, vector: Floats) -> Self:
        """The inverse of `to_vector`."""
        return cls(vector[:-3].copy(), float(vector[-3]), float(vector[-2]), float(vector[-1]))

    def to_vector(self) -> Floats:
        """(d + 3,): log lengthscales, log signal, log noise, mean."""
        return np.append(self.log_lengthscales, [self.log_signal, self.log_noise, self.mean])


def prior_mode(groups: Ints) -> Floats:
    """Where the prior over `GPHyper.to_vector()` is highest, with one lengthscale a group.

    `groups` (d,) numbers the columns that share a lengthscale from 0 on. Two random numbers have a
    mean square of 1/6 between them, one of k choices as k columns has 2 (1 - 1/k): lengthscales
    follow, or choices would seem to have nothing to do with each other.
    """
    columns = np.bincount(groups)
    squared = np.where(columns == 1, 1.0 / 6.0, 2.0 * (1.0 - 1.0 / columns))
    lengthscales = 0.2 * np.sqrt(len(columns)) * np.sqrt(6.0 * squared)
    return np.append(np.log(lengthscales), [0.0, -6.0, 0.0])


def prior_spread(n_groups: int) -> Floats:
    """Standard deviations of the prior over `GPHyper.to_vector()`: (n_groups + 3,)."""
    return np.append(np.ones(n_groups), [1.0, 1.5, 1.0])


def hyper_bounds(n_groups: int) -> list[tuple[float, float]]:
    """Bounds of `GPHyper.to_vector()` that keep any covariance well conditioned."""
    lengthscale, signal, noise = (0.01, 1e3), (1e-3, 1e2), (1e-6, 2.0)
    logs = [(float(np.log(low)), float(np.log(high))) for low, high in (lengthscale, signal, noise)]
    return [logs[0]] * n_groups + [logs[1], logs[2], (-10.0, 10.0)]
