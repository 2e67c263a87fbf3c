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

from foretune.arrays import Floats


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
    def default(cls, d: int) -> Self:
        """The most probable values before any observation, in d dimensions."""
        return cls.from_vector(prior_mode(d))

    @classmethod
    def from_vector(cls, vector: Floats) -> Self:
        """The inverse of `to_vector`."""
        return cls(vector[:-3].copy(), float(vector[-3]), float(vector[-2]), float(vector[-1]))

    def to_vector(self) -> Floats:
        """(d + 3,): log lengthscales, log signal, log noise, mean."""
        return np.append(self.log_lengthscales, [self.log_signal, self.log_noise, self.mean])


def prior_mode(d: int) -> Floats:
    """Where the prior over `GPHyper.to_vector()` is highest: (d + 3,)."""
    return np.append(np.full(d, np.log(0.2 * np.sqrt(d))), [0.0, -6.0, 0.0])


def prior_spread(d: int) -> Floats:
    """Standard deviations of the prior over `GPHyper.to_vector()`: (d + 3,)."""
    return np.append(np.ones(d), [1.0, 1.5, 1.0])


def hyper_bounds(d: int) -> list[tuple[float, float]]:
    """Bounds of `GPHyper.to_vector()` that keep any covariance well conditioned: d + 3 pairs."""
    lengthscale, signal, noise = (0.01, 1e3), (1e-3, 1e2), (1e-6, 2.0)
    logs = [(float(np.log(low)), float(np.log(high))) for low, high in (lengthscale, signal, noise)]
    return [logs[0]] * d + [logs[1], logs[2], (-10.0, 10.0)]
