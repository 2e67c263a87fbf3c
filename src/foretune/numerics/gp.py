"""Exact Gaussian process regression in float64: likelihood, fit, posterior, joint draws.

Inputs lie in the unit cube. Losses may have any unit: the process standardises them and predicts in
the caller's unit. A caller whose losses already have a meaningful unit, such as residuals of a
learnt mean, passes `units` to keep it. Hyperparameters are in standardised units.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs
from scipy.optimize import minimize

from foretune._base.arrays import Bools, Floats, Ints
from foretune.numerics.hyper import GPHyper, hyper_bounds, prior_mode, prior_spread
from foretune.numerics.kernels import (
    log_lengthscale_gradient,
    matern52,
    matern52_and_slope,
    squared_distances,
)
from foretune.numerics.transforms import Standardise

TOLERANCE = 1e-7
MOST_WIDENED = 3.0
"""The largest factor by which variances grow because few losses chose the hyperparameters."""
CHUNK = 1024
"""Rows that are predicted at once, so that the cross-covariance stays in the cache."""


def robust_cholesky(covariance: Floats) -> tuple[Floats, float]:
    """Return the lower Cholesky factor, and the jitter that the diagonal needed (mostly 0)."""
    size = float(np.trace(covariance)) / len(covariance)
    jitter = 0.0
    while jitter <= size:
        shifted = np.array(covariance.T, order="F")
        _add_to_diagonal(shifted, jitter)
        factor, info = dpotrf(shifted, lower=1, clean=1, overwrite_a=1)
        if info == 0:
            return factor, jitter
        jitter = max(jitter * 10.0, 1e-10 * size)
    raise np.linalg.LinAlgError("the covariance is not positive definite")


def whiten(cholesky: Floats, cross: Floats) -> Floats:
    """Multiply rows of `cross` (m, n) by the inverse of a Cholesky factor (n, n)."""
    solved: Floats = dtrsm(1.0, cholesky, cross.T, lower=1).T
    return solved


def fit_hyper(
    x: Floats,
    y: Floats,
    *,
    starts: Sequence[GPHyper] = (),
    units: Standardise | None = None,
    groups: Ints | None = None,
    prior_weight: float = 1.0,
    max_iterations: int = 100,
    tolerance: float = TOLERANCE,
) -> GPHyper:
    """Find the most probable hyperparameters for losses y (n,) at x (n, d).

    L-BFGS-B maximises likelihood times prior from each of `starts`, or from the mode of the prior,
    and the best result is kept. Columns of one of the `groups` (d,) share a lengthscale, as the
    columns of one categorical hyperparameter should. None means that each column has its own. The
    prior counts `prior_weight` times; near 0 this is type-II maximum likelihood. The search stops
    when a step gains less than `tolerance` of the value.
    """
    groups = np.arange(x.shape[1]) if groups is None else groups
    n_groups = int(groups.max()) + 1
    units = Standardise.fit(y) if units is None else units
    results = [
        minimize(
            negative_log_posterior,
            _group(start.to_vector(), groups),
            args=(x - x.mean(axis=0), units(y), groups, prior_weight),
            jac=True,
            method="L-BFGS-B",
            bounds=hyper_bounds(n_groups),
            options={"maxiter": max_iterations, "ftol": tolerance, "gtol": 1e-4},
        )
        for start in starts or (GPHyper.default(groups),)
    ]
    best = min(results, key=lambda result: float(result.fun))
    return GPHyper.from_vector(_ungroup(best.x, groups))


def fit_hyper_to_unlearnt(
    parts: Sequence[tuple[Floats, Bools]],
    y: Floats,
    *,
    start: GPHyper,
    groups: Ints,
    max_iterations: int = 100,
) -> GPHyper:
    """Find the hyperparameters with which one part of the losses y (n,) predicts the rest best.

    A part has inputs (n, d) that a network computes, and the rows (n,) that the network has learnt.
    The criterion is the probability of the other losses, given those that were learnt, times the
    prior. It is not that of all losses: a network can place the trials it has learnt so that
    there seems to be no noise.
    """
    z, share = Standardise.fit(y)(y), 1.0 / len(parts)

    def surprise(vector: Floats) -> tuple[float, Floats]:
        value, slope = 0.0, np.zeros_like(vector)
        for x, learnt in parts:
            centred = x - x.mean(axis=0)
            both = negative_log_posterior(vector, centred, z, groups, share)
            before = negative_log_posterior(vector, centred[learnt], z[learnt], groups, 0.0)
            value += both[0] - before[0]
            slope += both[1] - before[1]
        return value, slope

    found = minimize(
        surprise,
        _group(start.to_vector(), groups),
        jac=True,
        method="L-BFGS-B",
        bounds=hyper_bounds(int(groups.max()) + 1),
        options={"maxiter": max_iterations, "ftol": TOLERANCE, "gtol": 1e-4},
    )
    # The losses also chose the hyperparameters, so variances are as those of Student's t.
    freedom = max(len(y) - len(found.x) - 2, len(y) / MOST_WIDENED)
    widened = found.x + np.log(len(y) / freedom) * np.append(np.zeros(len(found.x) - 3), [1, 1, 0])
    return GPHyper.from_vector(_ungroup(widened, groups))


def negative_log_posterior(
    vector: Floats,
    x: Floats,
    z: Floats,
    groups: Ints | None = None,
    prior_weight: float = 1.0,
) -> tuple[float, Floats]:
    """Return -log(likelihood x prior) without the constant of the prior, and its gradient.

    `vector` is `GPHyper.to_vector()` with one lengthscale a group, `z` (n,) are the standardised
    losses at x (n, d).
    """
    groups = np.arange(x.shape[1]) if groups is None else groups
    n_groups, n = int(groups.max()) + 1, len(x)
    value, by_column = _negative_log_likelihood(_ungroup(vector, groups), x, z)
    by_group = np.bincount(groups, weights=by_column[: len(groups)], minlength=n_groups)
    gradient: Floats = np.append(by_group, by_column[len(groups) :])
    spread = prior_spread(n_groups)
    deviation = (vector - prior_mode(groups)) / spread
    value += 0.5 * prior_weight * float(deviation @ deviation) + 0.5 * n * np.log(2.0 * np.pi)
    return value, gradient + prior_weight * deviation / spread


def _negative_log_likelihood(vector: Floats, x: Floats, z: Floats) -> tuple[float, Floats]:
    hyper = GPHyper.from_vector(vector)
    signal, noise = np.exp(hyper.log_signal), np.exp(hyper.log_noise)
    scaled = x * np.exp(-hyper.log_lengthscales)
    squared = squared_distances(scaled, scaled)
    np.fill_diagonal(squared, 0.0)
    correlation, slope = matern52_and_slope(squared)
    correlation *= signal
    _add_to_diagonal(correlation, noise)
    cholesky, _ = robust_cholesky(correlation)
    residual = z - hyper.mean
    alpha, _ = dpotrs(cholesky, residual, lower=1)
    value = 0.5 * float(residual @ alpha) + float(np.log(np.diagonal(cholesky)).sum())

    # With G = K^-1 - alpha alpha', the gradient is half the sum of G * dK. LAPACK gives one
    # triangle of K^-1 and zeros: its double stands for both (the diagonal has no distance to
    # weigh). The transposed view has the memory order of the other arrays, which is faster.
    inverse = dpotri(cholesky, lower=1, overwrite_c=1)[0].T
    trace = float(np.trace(inverse) - alpha @ alpha)
    weights = 2.0 * inverse
    weights -= np.outer(alpha, alpha)
    weights *= slope
    gradient = np.empty_like(vector)
    gradient[:-3] = 0.5 * signal * log_lengthscale_gradient(scaled, weights)
    # The signal's own part of K is K minus the noise, and the trace of G K is n - residual'alpha.
    gradient[-3] = 0.5 * (len(x) - float(residual @ alpha) - noise * trace)
    gradient[-2] = 0.5 * noise * trace
    gradient[-1] = -alpha.sum()
    return value, gradient


@dataclass(frozen=True, slots=True)
class GP:
    """A Gaussian process after observations, as `GP.condition` makes it."""

    x: Floats
    """(n, d), in the unit cube."""
    y: Floats
    """(n,), in the caller's unit."""
    hyper: GPHyper
    units: Standardise
    cholesky: Floats
    """(n, n), the lower factor of the covariance with noise, in standardised units."""
    alpha: Floats
    """(n,), the inverse of the covariance times the standardised residuals."""

    @classmethod
    def condition(
        cls,
        x: Floats,
        y: Floats,
        hyper: GPHyper,
        *,
        units: Standardise | None = None,
    ) -> Self:
        """Return the process after losses y (n,) at x (n, d), with fixed hyperparameters."""
        covariance = _covariance(x, hyper)
        _add_to_diagonal(covariance, np.exp(hyper.log_noise))
        cholesky, _ = robust_cholesky(covariance)
        units = Standardise.fit(y) if units is None else units
        alpha, _ = dpotrs(cholesky, units(y) - hyper.mean, lower=1)
        return cls(x, y, hyper, units, cholesky, alpha)

    def predict(self, x_new: Floats) -> tuple[Floats, Floats]:
        """Return mean and standard deviation (m,) of the function without noise at x_new (m, d)."""
        mean, variance = np.empty(len(x_new)), np.empty(len(x_new))
        for first in range(0, len(x_new), CHUNK):
            rows = slice(first, first + CHUNK)
            cross = self._cross(x_new[rows])
            mean[rows] = cross @ self.alpha
            whitened = whiten(self.cholesky, cross)
            variance[rows] = np.einsum("ij,ij->i", whitened, whitened)
        np.subtract(np.exp(self.hyper.log_signal), variance, out=variance)
        std = np.sqrt(np.maximum(variance, 0.0))
        return self.units.inverse(mean + self.hyper.mean), std * self.units.scale

    def mean(self, x_new: Floats) -> Floats:
        """Return the mean (m,) alone, which takes much less time than the standard deviation."""
        mean = np.empty(len(x_new))
        for first in range(0, len(x_new), CHUNK):
            rows = slice(first, first + CHUNK)
            mean[rows] = self._cross(x_new[rows]) @ self.alpha
        return self.units.inverse(mean + self.hyper.mean)

    def sample(self, x_new: Floats, n: int, rng: np.random.Generator) -> Floats:
        """Return (n, m), joint draws of the function at x_new (m, d). This costs O(m³)."""
        cross = self._cross(x_new)
        mean = cross @ self.alpha + self.hyper.mean
        whitened = whiten(self.cholesky, cross)
        covariance = _covariance(x_new, self.hyper) - whitened @ whitened.T
        # Near the observations the covariance is nearly singular.
        _add_to_diagonal(covariance, 1e-10 * np.exp(self.hyper.log_signal))
        factor, _ = robust_cholesky(covariance)
        return self.units.inverse(mean + rng.standard_normal((n, len(x_new))) @ factor.T)

    @property
    def log_marginal_likelihood(self) -> float:
        """The log density of the observed y, in the caller's unit."""
        residual = self.units(self.y) - self.hyper.mean
        log_determinant = 2.0 * float(np.log(np.diagonal(self.cholesky)).sum())
        per_point = np.log(2.0 * np.pi) + 2.0 * np.log(self.units.scale)
        return -0.5 * float(residual @ self.alpha + log_determinant + len(self.y) * per_point)

    def _cross(self, x_new: Floats) -> Floats:
        """Return the covariance (m, n) of the function at x_new (m, d) and at the observations."""
        inverse = np.exp(-self.hyper.log_lengthscales)
        centre = self.x.mean(axis=0)
        squared = squared_distances((x_new - centre) * inverse, (self.x - centre) * inverse)
        cross = matern52(squared)
        cross *= np.exp(self.hyper.log_signal)
        return cross


def _covariance(x: Floats, hyper: GPHyper) -> Floats:
    """Return the covariance (n, n) of the function at x (n, d), in standardised units."""
    scaled = (x - x.mean(axis=0)) * np.exp(-hyper.log_lengthscales)
    squared = squared_distances(scaled, scaled)
    np.fill_diagonal(squared, 0.0)
    covariance = matern52(squared)
    covariance *= np.exp(hyper.log_signal)
    return covariance


def _group(vector: Floats, groups: Ints) -> Floats:
    """Return hyperparameters with one lengthscale for each group, from one for each column."""
    _, first = np.unique(groups, return_index=True)
    return np.append(vector[first], vector[len(groups) :])


def _ungroup(vector: Floats, groups: Ints) -> Floats:
    """Return hyperparameters with one lengthscale for each column, from one for each group."""
    return np.append(vector[groups], vector[int(groups.max()) + 1 :])


def _add_to_diagonal(matrix: Floats, amount: float) -> None:
    """Add to the diagonal in place."""
    matrix.ravel(order="K")[:: len(matrix) + 1] += amount
