import numpy as np
from scipy.optimize import approx_fprime
from sklearn.gaussian_process.kernels import Matern

from foretune.numerics.kernels import (
    log_lengthscale_gradient,
    matern52,
    matern52_and_slope,
    squared_distances,
)


def test_matern_at_hand_computed_distances():
    # r² = 1/5 gives t = 1, r² = 9/5 gives t = 3
    squared = np.array([0.0, 0.2, 1.8])
    expected = [1.0, (7.0 / 3.0) * np.exp(-1.0), 7.0 * np.exp(-3.0)]
    np.testing.assert_allclose(matern52(squared), expected, rtol=1e-14)


def test_matern_agrees_with_scikit_learn():
    rng = np.random.default_rng(0)
    a, b, scale = rng.random((7, 4)), rng.random((5, 4)), np.array([0.1, 0.5, 2.0, 30.0])
    ours = matern52(squared_distances(a / scale, b / scale))
    np.testing.assert_allclose(ours, Matern(scale, nu=2.5)(a, b), rtol=1e-10)


def test_slope_is_the_derivative_and_finite_at_zero():
    squared = np.array([0.0, 1e-8, 0.1, 1.0, 7.0])
    correlation, slope = matern52_and_slope(squared.copy())
    np.testing.assert_allclose(correlation, matern52(squared.copy()), rtol=1e-14)
    step = 1e-6
    ahead = matern52(squared + step)
    np.testing.assert_allclose(slope, (ahead - correlation) / step, atol=2e-3)
    np.testing.assert_allclose(slope[2:], (ahead - correlation)[2:] / step, atol=1e-5)


def test_squared_distances_are_exact_and_never_negative():
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(6, 3)), rng.normal(size=(4, 3))
    expected = ((a[:, None, :] - b[None, :, :]) ** 2).sum(axis=2)
    np.testing.assert_allclose(squared_distances(a, b), expected, rtol=1e-12)
    near = 100.0 + 1e-9 * rng.normal(size=(50, 3))
    assert (squared_distances(near, near) >= 0.0).all()


def test_lengthscale_gradient_agrees_with_finite_differences():
    rng = np.random.default_rng(2)
    x, weights = rng.random((8, 3)), rng.normal(size=(8, 8))
    log_scales = np.array([-1.0, 0.0, 0.7])

    def weighted(log_scales):
        scaled = x * np.exp(-log_scales)
        return float((weights * squared_distances(scaled, scaled)).sum())

    analytic = log_lengthscale_gradient(x * np.exp(-log_scales), weights)
    numeric = approx_fprime(log_scales, weighted, 1e-7)
    np.testing.assert_allclose(analytic, numeric, rtol=1e-5)
