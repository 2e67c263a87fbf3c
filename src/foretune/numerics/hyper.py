"""Hyperparameters of a Gaussian process, and their priors.

The priors are normal over the vector of hyperparameters, so they are log-normal over lengthscales
and variances. Lengthscales are centred at 0.2 sqrt(d), the mode of Hvarfner et al. (2024). This
grows with the diagonal of the cube, so that a function of many inputs is not assumed to be more
complicated than one of few inputs. The spread is narrower than theirs, as measured in
docs/decisions/003.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from foretune._base.arrays import Floats, Ints


@dataclass(frozen=True, slots=True)
class GPHyper:
    """Hyperparameters in standardised units. Lengthscales and variances are logarithms."""

    log_lengthscales: Floats
    """(d,), in widths of the unit cube."""
    log_signal: float
    """The log variance of the function."""
    log_noise: float
    """The log variance of the noise."""
    mean: float = 0.0

    @classmethod
    def default(cls, groups: Ints) -> Self:
        """Return the mode of the prior, for columns in these groups (d,)."""
        mode = prior_mode(groups)
        return cls.from_vector(np.append(mode[groups], mode[-3:]))

    @classmethod
    def from_vector(cls, vector: Floats) -> Self:
        """Read the vector that `to_vector` returned."""
        return cls(vector[:-3].copy(), float(vector[-3]), float(vector[-2]), float(vector[-1]))

    def to_vector(self) -> Floats:
        """Return (d + 3,): log lengthscales, log signal, log noise, mean."""
        return np.append(self.log_lengthscales, [self.log_signal, self.log_noise, self.mean])


def prior_mode(groups: Ints) -> Floats:
    """Return the mode of the prior over `GPHyper.to_vector()`, with a lengthscale for each group.

    `groups` (d,) gives columns that share a lengthscale the same number, from 0. The mean squared
    distance of two random numbers is 1/6, and that of two of k choices in k columns 2 (1 - 1/k).
    Lengthscales follow this distance, so that choices do not seem unrelated.
    """
    columns = np.bincount(groups)
    squared = np.where(columns == 1, 1.0 / 6.0, 2.0 * (1.0 - 1.0 / columns))
    lengthscales = 0.2 * np.sqrt(len(columns)) * np.sqrt(6.0 * squared)
    return np.append(np.log(lengthscales), [0.0, -6.0, 0.0])


def prior_spread(n_groups: int) -> Floats:
    """Return (n_groups + 3,), standard deviations of the prior over `GPHyper.to_vector()`."""
    return np.append(np.ones(n_groups), [1.0, 1.5, 1.0])


def hyper_bounds(n_groups: int) -> list[tuple[float, float]]:
    """Return bounds of `GPHyper.to_vector()` that keep every covariance well conditioned."""
    lengthscale, signal, noise = (0.01, 1e3), (1e-3, 1e2), (1e-6, 2.0)
    logs = [(float(np.log(low)), float(np.log(high))) for low, high in (lengthscale, signal, noise)]
    return [logs[0]] * n_groups + [logs[1], logs[2], (-10.0, 10.0)]
