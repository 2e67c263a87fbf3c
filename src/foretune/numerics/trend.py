"""A Gaussian process on the residuals of a trend.

A process that knows only distances expects the average wherever there are no trials. If losses are
bad along a whole side of the space, it hopes for the average in every corner of that side, and
tries corner after corner. A trend through a few trials describes the whole side at once.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from foretune._base.arrays import Floats
from foretune.numerics.gp import GP
from foretune.numerics.hyper import GPHyper

PENALTIES = np.append(np.logspace(-3.0, 3.0, 25), 1e9)
"""Penalties of large weights. The one that predicts left-out trials best is chosen. The last one
leaves only a constant."""
MOST_FITTED = 2_000
"""A trend has few numbers to learn, so it reads at most this number of trials, spread evenly
over the search."""


@dataclass(frozen=True, slots=True)
class Trend:
    """A sum of parabolas, one for each column."""

    level: float
    weights: Floats
    """(2d,), the slopes of the columns and of their squares about the middle."""

    @classmethod
    def fit(cls, x: Floats, y: Floats) -> Self:
        """Fit to y (n,) at x (n, d) in the unit cube, as strongly as left-out trials support it."""
        if len(y) < 2:
            return cls(float(y.mean()), np.zeros(2 * x.shape[1]))
        # Imported here, because it takes most of a second, and a single objective needs no trend.
        from sklearn.linear_model import RidgeCV

        if len(y) > MOST_FITTED:
            rows = np.linspace(0, len(y) - 1, MOST_FITTED).astype(np.int64)
            x, y = x[rows], y[rows]
        ridge = RidgeCV(PENALTIES).fit(_parabolas(x), y)
        return cls(float(ridge.intercept_), ridge.coef_)

    def __call__(self, x: Floats) -> Floats:
        """Return the trend (m,) at x (m, d)."""
        return self.level + _parabolas(x) @ self.weights


@dataclass(frozen=True, slots=True)
class TrendedGP:
    """A trend, which counts as known, and the process of its residuals."""

    trend: Trend
    process: GP

    @classmethod
    def condition(cls, x: Floats, y: Floats, hyper: GPHyper, trend: Trend) -> Self:
        """Condition on y (n,) at x (n, d); the hyperparameters belong to the residuals' process."""
        return cls(trend, GP.condition(x, y - trend(x), hyper))

    def predict(self, x_new: Floats) -> tuple[Floats, Floats]:
        """Return mean and standard deviation (m,) at x_new (m, d), as a `GP` does."""
        mean, std = self.process.predict(x_new)
        return mean + self.trend(x_new), std

    def sample(self, x_new: Floats, n: int, rng: np.random.Generator) -> Floats:
        """Draw n joint samples at x_new (m, d): (n, m)."""
        return self.process.sample(x_new, n, rng) + self.trend(x_new)


def _parabolas(x: Floats) -> Floats:
    return np.hstack([x, 2.0 * np.square(x - 0.5)])
