"""The covariances of what remains of curves after a mean was subtracted."""

import numpy as np
from scipy.linalg import cho_solve
from scipy.optimize import minimize

from foretune._base.arrays import Floats
from foretune.methods.freeze_thaw.curve_prior import Shares
from foretune.numerics.gp import robust_cholesky
from foretune.numerics.kernels import matern52, squared_distances

EXPLAINED = 0.99
"""The share of the variance over steps that the basis holds."""
MOST_FUNCTIONS = 4
LEAST_NOISE = 1e-3
MOST_TASKS, MOST_CONFIGS = 8, 100
"""What the shares are estimated from."""
ITERATIONS = 25
START = (0.2, 0.5, 0.3, 1.0)
LIMITS = ((-6.0, 1.0), (-6.0, 1.0), (-6.0, 1.0), (-1.5, 2.0))


def split_covariance(covariance: Floats) -> tuple[Floats, Floats]:
    """Return a basis (K, R) and the variances (K,) that it leaves out."""
    values, vectors = np.linalg.eigh(covariance)
    values, vectors = np.maximum(values[::-1], 1e-12), vectors[:, ::-1]
    explained = np.cumsum(values) / values.sum()
    count = min(int(np.searchsorted(explained, EXPLAINED)) + 1, MOST_FUNCTIONS, len(values))
    basis = vectors[:, :count] * np.sqrt(values[:count])
    left = np.diag(covariance) - np.square(basis).sum(axis=1)
    return basis, np.maximum(left, 0.0) + LEAST_NOISE


def pooled_covariance(residuals: list[Floats]) -> Floats:
    """Return (K, K), the mean over tasks of the residuals' second moments, n x K each."""
    return np.asarray(np.mean([each.T @ each / len(each) for each in residuals], axis=0))


def estimate_shares(
    residuals: list[Floats], x: list[Floats], basis: Floats, rng: np.random.Generator
) -> Shares:
    """Return the most probable division of residuals (n, K) over configurations (n, W).

    x: configurations divided by lengthscales.
    """
    whitening = basis / np.square(basis).sum(axis=0)
    chosen = rng.permutation(len(residuals))[:MOST_TASKS]
    tasks = []
    for place in chosen.tolist():
        rows = rng.permutation(len(x[place]))[:MOST_CONFIGS]
        inputs = x[place][rows]
        tasks.append((squared_distances(inputs, inputs), residuals[place][rows] @ whitening))

    def surprise(vector: Floats) -> float:
        shared, smooth, own, stretch = np.exp(vector).tolist()
        total = 0.5 * float(vector[3]) ** 2
        for squared, values in tasks:
            covariance = smooth * matern52(squared / stretch**2) + shared
            covariance[np.diag_indices(len(squared))] += own
            cholesky, _ = robust_cholesky(covariance)
            total += 0.5 * float((values * cho_solve((cholesky, True), values)).sum())
            total += values.shape[1] * float(np.log(np.diagonal(cholesky)).sum())
        return total

    found = minimize(
        surprise,
        np.log(START),
        method="L-BFGS-B",
        bounds=LIMITS,
        options={"maxiter": ITERATIONS},
    )
    return Shares(*np.exp(found.x).tolist())
