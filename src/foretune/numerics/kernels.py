"""The Matérn kernel of smoothness 5/2 with one lengthscale a dimension (ARD), and its gradient.

It is a function of r² = sum_k (a_k - b_k)² / lengthscale_k² alone, so that distances, and the chain
rule through them, are written once. The signal variance belongs to the process, not to the kernel.
"""

import numpy as np

from foretune._base.arrays import Floats


def matern52(squared: Floats) -> Floats:
    """(1 + t + t²/3) exp(-t) with t = sqrt(5 r²): twice differentiable functions.

    Overwrites `squared`, the r² of each pair. Fits and predictions spend much of their time here,
    hence the work in place.
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
    """As `matern52`, and the derivative with respect to r².

    That is -(5/6) (1 + t) exp(-t), finite also at distance zero.
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
    """All r² between the rows of a (m, d) and b (n, d), both already divided by lengthscales."""
    # |a|² + |b|² - 2ab as one matrix product of width d + 2, which spares two passes over (m, n).
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
    """sum_ij weights_ij d r²_ij / d log lengthscale_k for every k: (d,).

    `scaled` (n, d) are the inputs divided by their lengthscales; `weights` (n, n) need not be
    symmetric. Matrix products replace the (n, n, d) array of differences.
    """
    margins = weights.sum(axis=0) + weights.sum(axis=1)
    products = np.einsum("ik,ik->k", scaled, weights @ scaled)
    gradient: Floats = -2.0 * (margins @ (scaled * scaled) - 2.0 * products)
    return gradient
