"""What is believed about the curves of one objective before the first trial of a target."""

from collections.abc import Mapping
from dataclasses import astuple, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from foretune._base.arrays import Floats
from foretune.methods.freeze_thaw.units import UnitPrior
from foretune.numerics.kernels import matern52, squared_distances


@dataclass(frozen=True, slots=True)
class Shares:
    """How the residual of a curve is divided over configurations."""

    task: float
    """The part that all configurations of a task share."""
    smooth: float
    """The part that similar configurations share."""
    own: float
    """The part that each configuration has alone."""
    stretch: float
    """The lengthscales of the smooth part, as a multiple of those of the mean."""

    @property
    def total(self) -> float:
        """The variance of one configuration."""
        return self.task + self.smooth + self.own


@dataclass(frozen=True, slots=True)
class CurvePrior:
    """The scores of a task: u(x, s) = level(s) + mean(x, s) + factors(x, s) w + residual(x, s).

    w has a standard normal distribution. The residual is a Gaussian process whose covariance is the
    product of one over steps (`basis`) and one over configurations (`shares`). Mean and factors are
    functions of the configuration, learnt by regression: no past row is looked up.
    """

    knots: Floats
    """(K,), relative steps; the last one is 1."""
    lengthscales: Floats
    """(W,), in widths of the unit cube."""
    centres: Floats
    """(M, W), divided by the lengthscales. M is 0 if nothing is known about configurations."""
    level: Floats
    """(K,)"""
    weights: Floats
    """(M, K), of the mean."""
    factor_levels: Floats
    """(Q, K)"""
    factor_weights: Floats
    """(Q, M, K)"""
    basis: Floats
    """(K, R): basis @ basis.T is the covariance of residuals over steps."""
    noise: Floats
    """(K,), the variance that the basis leaves out."""
    shares: Shares
    units: UnitPrior | None
    """None: taken from the target's own losses."""

    def features(self, x: Floats) -> Floats:
        """Return (n, M), the similarity of configurations (n, W) to the centres."""
        if not len(self.centres):
            return np.empty((len(x), 0))
        return matern52(squared_distances(x / self.lengthscales, self.centres))

    def expect(self, features: Floats, knots: Any = slice(None)) -> tuple[Floats, Floats]:
        """Return means (n, K) and factors (n, K, Q) at some knots."""
        mean = self.level[knots] + features @ self.weights[:, knots]
        by_factor = features @ self.factor_weights[..., knots]
        by_factor += self.factor_levels[:, None, knots]
        return mean, np.moveaxis(by_factor, 0, -1)

    def pack(self) -> dict[str, NDArray[Any]]:
        """Return all numbers as arrays."""
        arrays: dict[str, NDArray[Any]] = {
            name: getattr(self, name)
            for name in (
                "knots",
                "lengthscales",
                "centres",
                "level",
                "weights",
                "factor_levels",
                "factor_weights",
                "basis",
                "noise",
            )
        }
        arrays["shares"] = np.array(astuple(self.shares))
        arrays["units"] = np.array([] if self.units is None else astuple(self.units))
        return arrays

    @classmethod
    def unpack(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Read what `pack` returned."""
        known = dict(arrays)
        shares = Shares(*known.pop("shares").tolist())
        units = known.pop("units").tolist()
        return cls(**known, shares=shares, units=UnitPrior(*units) if units else None)
