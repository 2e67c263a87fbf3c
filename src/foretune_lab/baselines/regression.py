"""Bayesian linear regression with its marginal likelihood and all gradients in closed form."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri
from scipy.optimize import minimize

from foretune.numerics import Bools, Floats

LOG_PRECISIONS = (float(np.log(1e-3)), float(np.log(1e5)))
"""The bounds of fitted precisions, which keep every covariance well conditioned."""


@dataclass(frozen=True, slots=True)
class Regression:
    """A Bayesian linear regression of z (n,) on features phi (n, D).

    Weights have the precision alpha. The noise has the precision beta.
    """

    mean: Floats
    """(D,), the posterior mean of the weights."""
    covariance: Floats
    """(D, D), the posterior covariance of the weights."""
    surprise: float
    """The negative logarithm of the marginal likelihood of z."""
    to_features: Floats
    """(n, D), the derivative of the surprise with respect to phi."""
    to_precisions: Floats
    """(2,), the derivatives of the surprise with respect to log alpha and log beta."""

    @classmethod
    def of(cls, phi: Floats, z: Floats, log_alpha: float, log_beta: float) -> "Regression":
        """Condition on z, which had mean zero before."""
        (n, d), alpha, beta = phi.shape, np.exp(log_alpha), np.exp(log_beta)
        precision = beta * (phi.T @ phi)
        precision[np.diag_indices(d)] += alpha
        factor, _ = dpotrf(precision, lower=1, overwrite_a=1)
        half, _ = dpotri(factor, lower=1)
        covariance = np.tril(half) + np.tril(half, -1).T
        mean = beta * (covariance @ (phi.T @ z))
        residual = z - phi @ mean
        misfit, size = beta * float(residual @ residual), alpha * float(mean @ mean)
        log_determinant = 2.0 * float(np.log(np.diagonal(factor)).sum())
        constant = n * (np.log(2.0 * np.pi) - log_beta) - d * log_alpha
        undecided = alpha * float(np.trace(covariance))
        return cls(
            mean,
            covariance,
            0.5 * (constant + log_determinant + misfit + size),
            beta * (phi @ covariance - np.outer(residual, mean)),
            0.5 * np.array([undecided + size - d, d - undecided + misfit - n]),
        )


def fit_precisions(phi: Floats, z: Floats, start: Floats) -> Floats:
    """Return log alpha and log beta (2,) of the least surprise within the bounds, from `start`."""

    def surprise(precisions: Floats) -> tuple[float, Floats]:
        regression = Regression.of(phi, z, *precisions)
        return regression.surprise, regression.to_precisions

    return _minimise(surprise, start)


def fit_precisions_to_unlearnt(
    parts: Sequence[tuple[Floats, Floats, Bools]], start: Floats
) -> Floats:
    """Return log alpha and log beta (2,) that predict best what features have not learnt.

    A part has features (n, D), losses (n,), and which of these (n,) the features were learnt from.
    The regression on these predicts the others. A fit to losses that the features were learnt from
    would find hardly any noise, because a network can repeat all of them.
    """

    def surprise(precisions: Floats) -> tuple[float, Floats]:
        value, slope = 0.0, np.zeros(2)
        for phi, z, learnt in parts:
            both = Regression.of(phi, z, *precisions)
            before = Regression.of(phi[learnt], z[learnt], *precisions)
            value += both.surprise - before.surprise
            slope += both.to_precisions - before.to_precisions
        return value, slope

    return _minimise(surprise, start)


def _minimise(surprise: Callable[[Floats], tuple[float, Floats]], start: Floats) -> Floats:
    bounds = [LOG_PRECISIONS] * 2
    return minimize(surprise, start, jac=True, method="L-BFGS-B", bounds=bounds).x
