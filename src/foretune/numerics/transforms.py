"""Output transforms: monotone maps that bring the losses of different tasks to one unit."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import ndtri

from foretune._base.arrays import Floats


@dataclass(frozen=True, slots=True)
class Copula:
    """Gaussian scores of the Winsorised empirical distribution function.

    z(t) = Phi^-1(clip(F(t), cut, 1 - cut)), where F(t) is the share of learnt losses <= t. New
    losses are mapped by the same step function.
    """

    ordered: Floats
    """(N,), the finite losses it was learnt from, ascending."""

    @classmethod
    def fit(cls, y: Floats) -> Self:
        """Learn the distribution function of the losses y (n,); NaN are ignored."""
        return cls(np.sort(y[~np.isnan(y)]))

    @property
    def cut(self) -> float:
        """The least distance of the distribution function to 0 and 1."""
        return winsor_cut(len(self.ordered))

    def __call__(self, y: Floats) -> Floats:
        """Return the Gaussian scores of y (any shape); NaN stay NaN."""
        n_learnt = max(len(self.ordered), 1)
        share = np.searchsorted(self.ordered, y, side="right") / n_learnt
        scores: Floats = ndtri(np.clip(share, self.cut, 1.0 - self.cut))
        return np.where(np.isnan(y), np.nan, scores)


@dataclass(frozen=True, slots=True)
class Standardise:
    """Shift to mean 0 and scale to standard deviation 1."""

    shift: float
    scale: float

    @classmethod
    def fit(cls, y: Floats) -> Self:
        """Learn mean and standard deviation of y (n,) without NaN; constant y keep scale 1."""
        y = y[~np.isnan(y)]
        largest = float(np.abs(y).max(initial=0.0))
        if largest == 0.0:
            return cls(0.0, 1.0)
        # Divided by the largest value, neither sums nor squares can overflow or vanish.
        relative = y / largest
        spread = float(relative.std())
        is_constant = spread < 1e-14 or spread * largest == 0.0
        return cls(float(relative.mean()) * largest, 1.0 if is_constant else spread * largest)

    def __call__(self, y: Floats) -> Floats:
        """Standardise values of the learnt unit."""
        # Halves are exact, and the difference of two huge values of opposite signs stays finite.
        part = 0.5 if self.scale > 1.0 else 1.0
        return (part * y - part * self.shift) / (part * self.scale)

    def inverse(self, z: Floats) -> Floats:
        """Return standardised values to the learnt unit."""
        return z * self.scale + self.shift


AS_THEY_ARE = Standardise(0.0, 1.0)
"""For values that have a unit already, such as residuals of past tasks' scores or of a prior."""


def winsor_cut(n: int) -> float:
    """Return delta_N = 1 / (4 N^(1/4) sqrt(pi log N)), or 1/2 if there is no spread yet."""
    if n < 2:
        return 0.5
    return float(1.0 / (4.0 * n**0.25 * np.sqrt(np.pi * np.log(n))))


def copula_scores(y: Floats) -> Floats:
    """Return the Gaussian scores of the losses y (n,) within themselves; NaN stay NaN."""
    return Copula.fit(y)(y)


def standardise(y: Floats) -> Floats:
    """Return the losses y (n,) with mean 0 and standard deviation 1 (all 0 if y is constant)."""
    return Standardise.fit(y)(y)
