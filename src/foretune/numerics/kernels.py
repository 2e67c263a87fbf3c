"""The Matérn-5/2 kernel with one lengthscale for each dimension (ARD), and its gradient.

It depends only on r² = sum_k (a_k - b_k)² / lengthscale_k², so distances and their chain rule are
written once. The signal variance belongs to the process, not to the kernel.
"""

import numpy as np

from foretune._base.arrays import Floats


def matern52(squared: Floats) -> Floats:
    """Return (1 + t + t²/3) exp(-t) with t = sqrt(5 r²): twice differentiable functions.

    It overwrites `squared`, the r² of each pair, because fits and predictions spend much of their
    time here.
    """
    squared *= 5.0
    t = np.sqrt(squared)
    squared *= 1.0 / 3.0
    squared += t
    squared += 1.0
    np.negative(t, out=t)
    squared *= np.exp(t, out=t)
    return squared


def matern52_and_slope(squared: Floats) -> tuple[Floats, Floats]:
    """Return `matern52` and its derivative with respect to r².

    The derivative is -(5/6) (1 + t) exp(-t), which is finite at distance zero.
    """
    squared *= 5.0
    slope = np.sqrt(squared)
    decay = np.negative(slope)
    np.exp(decay, out=decay)
    slope += 1.0
    squared *= 1.0 / 3.0
    squared += slope
    squared *= decay
    slope *= decay
    slope *= -5.0 / 6.0
    return squared, slope


def squared_distances(a: Floats, b: Floats) -> Floats:
    """Return r² between the rows of a (m, d) and b (n, d), already divided by lengthscales."""
    # |a|² + |b|² - 2ab as one matrix product of width d + 2 saves two passes over (m, n).
    left = np.empty((len(a), a.shape[1] + 2))
    np.multiply(a, -2.0, out=left[:, :-2])
    left[:, -2] = np.einsum("ij,ij->i", a, a)
    left[:, -1] = 1.0
    right = np.empty((len(b), b.shape[1] + 2))
    right[:, :-2] = b
    right[:, -2] = 1.0
    right[:, -1] = np.einsum("ij,ij->i", b, b)
    squared: Floats = left @ right.T
    return np.maximum(squared, 0.0, out=squared)


def log_lengthscale_gradient(scaled: Floats, weights: Floats) -> Floats:
    """Return (d,), sum_ij weights_ij d r²_ij / d log lengthscale_k for each k.

    `scaled` (n, d) are the inputs divided by their lengthscales; `weights` (n, n) need not be
    symmetric. Matrix products replace the (n, n, d) array of differences.
    """
    margins = weights.sum(axis=0) + weights.sum(axis=1)
    products = np.einsum("ik,ik->k", scaled, weights @ scaled)
    gradient: Floats = -2.0 * (margins @ (scaled * scaled) - 2.0 * products)
    return gradient
