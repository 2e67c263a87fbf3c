"""A Gaussian process whose functions are mixtures of known functions, plus a new part.

f(x) = sum_k w_k c_k(x) + r(x), with normal weights w_k of one variance and a Matérn process r. The
functions c_k are known at every x: past tasks differ by them. A few observations determine the
mixture, also far from their places. The rest is learnt as in a plain process.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.linalg.lapack import dpotri, dpotrs
from scipy.optimize import minimize

from foretune._base.arrays import Floats, Ints
from foretune.numerics.gp import robust_cholesky, whiten
from foretune.numerics.hyper import prior_mode
from foretune.numerics.kernels import (
    log_lengthscale_gradient,
    matern52,
    matern52_and_slope,
    squared_distances,
)

VARIANCES_MODE, VARIANCES_SPREAD = np.array([0.0, -1.0, -2.0]), np.array([1.0, 1.5, 1.5])
"""Of the logarithms of three variances: of the weights, of what is new, of the noise. The first
is 1 where past tasks say truly how far tasks differ."""
LENGTHSCALES_SPREAD = 0.7
"""Of their logarithms. They belong to the lesser part, so little is learnt about them."""
BOUNDS = ((-7.0, 4.0), (-7.0, 4.0), (-12.0, 1.0)), (-4.0, 7.0)
"""Of the variances and of a lengthscale, as logarithms."""
LEAST_NOISE = 1e-6
MAX_ITERATIONS = 50


@dataclass(frozen=True, slots=True)
class FactorHyper:
    """Logarithms of variances and lengthscales."""

    log_weights: float
    log_new: float
    log_noise: float
    log_lengthscales: Floats
    """(d,), the lengthscales of the new part."""

    @classmethod
    def default(cls, groups: Ints) -> Self:
        """Return the mode of the prior, for columns in these groups (d,)."""
        return cls.from_vector(_mode(groups), groups)

    @classmethod
    def from_vector(cls, vector: Floats, groups: Ints) -> Self:
        """Read the variances, and one lengthscale for each group of columns."""
        weights, new, noise = vector[:3].tolist()
        return cls(weights, new, noise, vector[3:][groups])


def fit_factors(factors: Floats, x: Floats, y: Floats, groups: Ints) -> FactorHyper:
    """The most probable hyperparameters for y (n,), at x (n, d) where the known functions are
    `factors` (n, K). Columns of one of the `groups` (d,) share a lengthscale.
    """
    mode = _mode(groups)
    variances, lengthscale = BOUNDS
    found = minimize(
        negative_log_posterior,
        mode,
        args=(factors @ factors.T, x, y, groups),
        jac=True,
        method="L-BFGS-B",
        bounds=[*variances, *[lengthscale] * (len(mode) - 3)],
        options={"maxiter": MAX_ITERATIONS, "ftol": 1e-7, "gtol": 1e-4},
    )
    return FactorHyper.from_vector(found.x, groups)


def negative_log_posterior(
    vector: Floats, products: Floats, x: Floats, y: Floats, groups: Ints
) -> tuple[float, Floats]:
    """-log(likelihood x prior) up to constants, and its gradient.

    `products` (n, n) are those of the known functions' values.
    """
    weights, new, noise = np.exp(vector[:3]).tolist()
    scaled = x * np.exp(-vector[3:][groups])
    squared = squared_distances(scaled, scaled)
    np.fill_diagonal(squared, 0.0)
    correlation, slope = matern52_and_slope(squared)
    covariance = weights * products + new * correlation
    covariance[np.diag_indices(len(y))] += noise + LEAST_NOISE
    cholesky, _ = robust_cholesky(covariance)
    alpha, _ = dpotrs(cholesky, y, lower=1)
    half = np.tril(dpotri(cholesky, lower=1)[0])
    # With G = K^-1 - alpha alpha', the gradient is half the sum of G * dK.
    inner = half + np.tril(half, -1).T - np.outer(alpha, alpha)
    lengthscales = new * log_lengthscale_gradient(scaled, inner * slope)
    variances = [
        weights * float((inner * products).sum()),
        new * float((inner * correlation).sum()),
        noise * float(np.trace(inner)),
    ]
    by_group = np.bincount(groups, weights=lengthscales, minlength=len(vector) - 3)
    gradient: Floats = 0.5 * np.concatenate([variances, by_group])
    spread = np.append(VARIANCES_SPREAD, np.full(len(by_group), LENGTHSCALES_SPREAD))
    deviation = (vector - _mode(groups)) / spread
    value = 0.5 * float(y @ alpha) + float(np.log(np.diagonal(cholesky)).sum())
    return value + 0.5 * float(deviation @ deviation), gradient + deviation / spread


@dataclass(frozen=True, slots=True)
class FactorGP:
    """The process after observations, as `FactorGP.condition` makes it."""

    factors: Floats
    """(n, K), the values of the known functions at the observations."""
    x: Floats
    """(n, d)"""
    hyper: FactorHyper
    cholesky: Floats
    """(n, n), the lower factor of the covariance with noise."""
    alpha: Floats
    """(n,), the inverse of the covariance times the observations."""

    @classmethod
    def condition(cls, factors: Floats, x: Floats, y: Floats, hyper: FactorHyper) -> Self:
        """Return the process after y (n,) at x (n, d), with known functions `factors` (n, K)."""
        covariance = _covariance(factors, x, factors, x, hyper)
        covariance[np.diag_indices(len(y))] += np.exp(hyper.log_noise) + LEAST_NOISE
        cholesky, _ = robust_cholesky(covariance)
        alpha, _ = dpotrs(cholesky, y, lower=1)
        return cls(factors, x, hyper, cholesky, alpha)

    def predict(self, factors: Floats, x: Floats) -> tuple[Floats, Floats]:
        """Return mean and standard deviation (m,) of the function without noise at x (m, d)."""
        cross = _covariance(factors, x, self.factors, self.x, self.hyper)
        whitened = whiten(self.cholesky, cross)
        prior = np.exp(self.hyper.log_weights) * np.square(factors).sum(axis=1)
        variance = prior + np.exp(self.hyper.log_new) - np.square(whitened).sum(axis=1)
        return cross @ self.alpha, np.sqrt(np.maximum(variance, 0.0))

    def sample(self, factors: Floats, x: Floats, n: int, rng: np.random.Generator) -> Floats:
        """Return (n, m), joint draws of the function at x (m, d)."""
        cross = _covariance(factors, x, self.factors, self.x, self.hyper)
        whitened = whiten(self.cholesky, cross)
        covariance = _covariance(factors, x, factors, x, self.hyper) - whitened @ whitened.T
        # Near the observations the covariance is nearly singular.
        covariance[np.diag_indices(len(x))] += 1e-10 * (1.0 + np.diagonal(covariance).max())
        factor, _ = robust_cholesky(covariance)
        drawn: Floats = cross @ self.alpha + rng.standard_normal((n, len(x))) @ factor.T
        return drawn


def _covariance(
    factors: Floats, x: Floats, others: Floats, at: Floats, hyper: FactorHyper
) -> Floats:
    """Return the covariance (m, n) of the function at x (m, d) and at other places (n, d)."""
    inverse = np.exp(-hyper.log_lengthscales)
    covariance = matern52(squared_distances(x * inverse, at * inverse))
    covariance *= np.exp(hyper.log_new)
    covariance += np.exp(hyper.log_weights) * (factors @ others.T)
    return covariance


def _mode(groups: Ints) -> Floats:
    """Return the mode of the prior: the variances, and one lengthscale for each group."""
    return np.append(VARIANCES_MODE, prior_mode(groups)[:-3])
