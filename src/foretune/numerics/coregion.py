"""A Gaussian process of several correlated functions on one space (coregionalisation, LMC).

Function a at u and function b at v have the covariance B[a, b] exp(-|u - v|² / 2 l²), where
B = w w' + diag(kappa): one factor that all functions load on, and a part of each function's own.
All functions have the mean level + slope (bowl - 1). The bowl is |u|², or its average with other
bowls whose values at the points are given. With a slope of 0 the mean is flat.

Gradients have a closed form, also with respect to the inputs. So an embedding that computes the
inputs can be fitted together with the process.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dpotri, dpotrs

from foretune._base.arrays import Floats, Ints
from foretune.numerics.gp import CHUNK, robust_cholesky
from foretune.numerics.kernels import squared_distances

LOG_OWN = (float(np.log(0.3)), 1.0)
LOG_LENGTHSCALE = (float(np.log(0.7)), 0.7)
LOG_NOISE = (-6.0, 1.5)
LOADING = (0.7, 0.5)
LEVEL = (0.0, 1.0)
"""Normal priors (mode, spread), for values of standard deviation 1 and inputs of size 1."""


@dataclass(frozen=True, slots=True)
class CoregionPoints:
    """The points at which functions are evaluated."""

    u: Floats
    """(n, d)"""
    which: Ints
    """(n,), the number of the function."""
    beside: Floats
    """(n, k), the values of k other bowls; k may be 0."""

    @property
    def bowl(self) -> Floats:
        """(n,), the average of |u|² and the other bowls."""
        own = np.einsum("ij,ij->i", self.u, self.u)
        average: Floats = (own + self.beside.sum(axis=1)) * self.share
        return average

    @property
    def share(self) -> float:
        """The weight of |u|² in the average."""
        return 1.0 / (1 + int(self.beside.shape[1]))

    def part(self, rows: slice) -> "CoregionPoints":
        """Return some of the points."""
        return CoregionPoints(self.u[rows], self.which[rows], self.beside[rows])


@dataclass(frozen=True, slots=True)
class Hyper:
    """Hyperparameters of M functions."""

    loadings: Floats
    """(M,), w."""
    log_own: Floats
    """(M,), the logarithms of kappa."""
    log_lengthscale: float
    log_noise: float
    level: float
    slope: float

    @classmethod
    def from_vector(cls, vector: Floats) -> Self:
        """Read `to_vector()`."""
        m = (len(vector) - 4) // 2
        return cls(vector[:m].copy(), vector[m : 2 * m].copy(), *map(float, vector[2 * m :]))

    def to_vector(self) -> Floats:
        """(2 M + 4,): w, log kappa, log lengthscale, log noise, level, slope."""
        ends = [self.log_lengthscale, self.log_noise, self.level, self.slope]
        return np.concatenate([self.loadings, self.log_own, ends])

    @property
    def between(self) -> Floats:
        """(M, M), B."""
        matrix: Floats = np.outer(self.loadings, self.loadings) + np.diag(np.exp(self.log_own))
        return matrix

    def mean(self, points: CoregionPoints) -> Floats:
        """(n,), the prior mean."""
        return self.level + self.slope * (points.bowl - 1.0)


@dataclass(frozen=True, slots=True)
class HyperPrior:
    """The prior of the hyperparameters: independent normal distributions."""

    mode: Floats
    spread: Floats
    """Mode and spread are ordered as `Hyper.to_vector()`; a spread of 0 fixes a hyperparameter."""

    @classmethod
    def of(cls, functions: int, slope: tuple[float, float]) -> Self:
        """Return the prior. slope: (mode, spread), or (0, 0) for a flat mean."""
        single = [LOG_LENGTHSCALE, LOG_NOISE, LEVEL, slope]
        pairs = np.array([LOADING] * functions + [LOG_OWN] * functions + single)
        return cls(pairs[:, 0].copy(), pairs[:, 1].copy())

    def bounds(self) -> list[tuple[float, float]]:
        """Return bounds three spreads to either side, which keep covariances well conditioned."""
        lows, highs = self.mode - 3.0 * self.spread, self.mode + 3.0 * self.spread
        lows[-1] = max(lows[-1], 0.0)  # a bowl is never turned upside down
        return list(zip(lows.tolist(), highs.tolist(), strict=True))

    def surprise(self, vector: Floats) -> tuple[float, Floats]:
        """Return -log of the density without its constant, and its gradient."""
        spread = np.where(self.spread > 0.0, self.spread, 1.0)
        deviation = (vector - self.mode) / spread
        return 0.5 * float(deviation @ deviation), deviation / spread


@dataclass(frozen=True, slots=True)
class Surprise:
    """-log p(z | u) without its constant, with its gradients."""

    value: float
    to_hyper: Floats
    """In the order of `Hyper.to_vector()`."""
    to_inputs: Floats
    """(n, d)"""


def surprise(vector: Floats, points: CoregionPoints, z: Floats) -> Surprise:
    """Return the surprise at values z (n,) at the points."""
    hyper, u, which = Hyper.from_vector(vector), points.u, points.which
    between, precision = hyper.between, np.exp(-2.0 * hyper.log_lengthscale)
    noise = np.exp(hyper.log_noise)
    squared = precision * squared_distances(u, u)
    np.fill_diagonal(squared, 0.0)
    correlation = np.exp(-0.5 * squared)
    kernel = between[np.ix_(which, which)] * correlation
    cholesky, _ = robust_cholesky(kernel + noise * np.eye(len(z)))
    residual = z - hyper.mean(points)
    alpha, _ = dpotrs(cholesky, residual, lower=1)
    value = 0.5 * float(residual @ alpha) + float(np.log(np.diagonal(cholesky)).sum())

    # With G = K^-1 - alpha alpha', the gradient is half the sum of G * dK. LAPACK gives one
    # triangle of K^-1.
    triangle = dpotri(cholesky, lower=1)[0]
    half = triangle + triangle.T
    half[np.diag_indices_from(half)] *= 0.5
    half -= np.outer(alpha, alpha)
    half *= 0.5
    members = np.equal(which[:, None], np.arange(len(between))) * 1.0
    to_between = members.T @ ((half * correlation) @ members)
    weights = half * kernel
    to_hyper = np.concatenate(
        [
            2.0 * to_between @ hyper.loadings,
            np.diagonal(to_between) * np.exp(hyper.log_own),
            [
                float(np.vdot(weights, squared)),
                noise * float(np.trace(half)),
                -float(alpha.sum()),
                -float(alpha @ (points.bowl - 1.0)),
            ],
        ]
    )
    by_kernel = -2.0 * precision * (weights.sum(axis=1)[:, None] * u - weights @ u)
    by_mean = -2.0 * hyper.slope * points.share * alpha[:, None] * u
    return Surprise(value, to_hyper, by_kernel + by_mean)


@dataclass(frozen=True, slots=True)
class CoregionalGP:
    """The process after observations, as `CoregionalGP.condition` makes it."""

    points: CoregionPoints
    """The points of the observations."""
    hyper: Hyper
    cholesky: Floats
    """(n, n), the lower factor of the covariance with noise."""
    alpha: Floats
    """(n,), the inverse of the covariance times the residuals."""

    @classmethod
    def condition(cls, points: CoregionPoints, z: Floats, hyper: Hyper) -> Self:
        """Return the process after values z (n,) were observed at the points."""
        noise = np.exp(hyper.log_noise) * np.eye(len(z))
        cholesky, _ = robust_cholesky(_covariance(points, points, hyper) + noise)
        alpha, _ = dpotrs(cholesky, z - hyper.mean(points), lower=1)
        return cls(points, hyper, cholesky, alpha)

    def predict(self, new: CoregionPoints) -> tuple[Floats, Floats]:
        """Return mean and standard deviation (m,) at new points."""
        mean, variance = self.hyper.mean(new), np.diagonal(self.hyper.between)[new.which]
        for first in range(0, len(mean), CHUNK):
            rows = slice(first, first + CHUNK)
            cross = _covariance(new.part(rows), self.points, self.hyper)
            mean[rows] += cross @ self.alpha
            whitened = dtrsm(1.0, self.cholesky, cross.T, lower=1)
            variance[rows] -= np.einsum("ij,ij->j", whitened, whitened)
        return mean, np.sqrt(np.maximum(variance, 0.0))

    def sample(self, new: CoregionPoints, n: int, rng: np.random.Generator) -> Floats:
        """Return (n, m), joint draws at m new points. This costs O(m³)."""
        cross = _covariance(new, self.points, self.hyper)
        whitened = dtrsm(1.0, self.cholesky, cross.T, lower=1)
        covariance = _covariance(new, new, self.hyper) - whitened.T @ whitened
        # Near the observations the covariance is nearly singular.
        covariance += 1e-10 * self.hyper.between.max() * np.eye(len(covariance))
        factor, _ = robust_cholesky(covariance)
        mean = self.hyper.mean(new) + cross @ self.alpha
        return mean + rng.standard_normal((n, len(mean))) @ factor.T


def _covariance(some: CoregionPoints, others: CoregionPoints, hyper: Hyper) -> Floats:
    """Return the covariance (m, n) between m points and n others."""
    squared = squared_distances(some.u, others.u)
    squared *= -0.5 * np.exp(-2.0 * hyper.log_lengthscale)
    covariance = np.exp(squared, out=squared)
    covariance *= hyper.between[np.ix_(some.which, others.which)]
    return covariance
