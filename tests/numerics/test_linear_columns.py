"""Processes that are linear in some columns of their inputs."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.stats import multivariate_normal

from foretune.numerics.anchored import AnchoredFit
from foretune.numerics.gp import GP, fit_hyper, negative_log_posterior
from foretune.numerics.hyper import GPHyper, hyper_bounds, prior_mode, prior_spread
from foretune.numerics.kernels import MATERN52
from foretune.numerics.transforms import Standardise

AS_IS = Standardise(0.0, 1.0)
HYPER = GPHyper(np.log([0.4, 1.1]), np.log(0.8), np.log(0.01), 0.2, log_slopes=np.log(0.5))


def matern(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    scales = np.exp(HYPER.log_lengthscales)
    r = np.sqrt(5) * np.sqrt((((a[:, None] - b[None]) / scales) ** 2).sum(axis=2))
    return np.exp(HYPER.log_signal) * (1 + r + r**2 / 3) * np.exp(-r)


def covariance(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Written out: Matérn on the first two columns, 0.5 times the product of the last three."""
    return matern(a[:, :2], b[:, :2]) + 0.5 * a[:, 2:] @ b[:, 2:].T


@pytest.fixture
def data() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(size=(15, 2)), rng.normal(size=(15, 3))], axis=1)
    new = np.concatenate([rng.uniform(size=(7, 2)), rng.normal(size=(7, 3))], axis=1)
    return x, rng.normal(size=15), new


def test_the_posterior_is_that_of_the_summed_covariance(data) -> None:
    x, y, new = data
    noisy = covariance(x, x) + 0.01 * np.eye(15)
    gain = covariance(new, x) @ np.linalg.inv(noisy)
    mean, std = GP.condition(x, y, HYPER, units=AS_IS).predict(new)
    np.testing.assert_allclose(mean, 0.2 + gain @ (y - 0.2), rtol=1e-9)
    variance = np.diag(covariance(new, new) - gain @ covariance(x, new))
    np.testing.assert_allclose(std, np.sqrt(variance), rtol=1e-7)


def test_the_likelihood_is_that_of_the_summed_covariance(data) -> None:
    x, y, _ = data
    gp = GP.condition(x, y, HYPER, units=AS_IS)
    exact = multivariate_normal(np.full(15, 0.2), covariance(x, x) + 0.01 * np.eye(15)).logpdf(y)
    assert gp.log_marginal_likelihood == pytest.approx(exact, rel=1e-9)


def test_the_gradient_agrees_with_finite_differences(data) -> None:
    x, y, _ = data
    vector = HYPER.to_vector() + 0.1

    def value(v: np.ndarray) -> float:
        return negative_log_posterior(v, x, y, MATERN52, linear=3)[0]

    _, gradient = negative_log_posterior(vector, x, y, MATERN52, linear=3)
    np.testing.assert_allclose(gradient, approx_fprime(vector, value, 1e-6), rtol=1e-3, atol=1e-3)


def test_adding_observations_equals_conditioning_on_all(data) -> None:
    x, y, new = data
    grown = GP.condition(x[:10], y[:10], HYPER, units=AS_IS).extended(x[10:], y[10:])
    whole = GP.condition(x, y, HYPER, units=AS_IS)
    np.testing.assert_allclose(grown.predict(new), whole.predict(new), rtol=1e-8)


def test_a_linear_function_is_continued_beyond_its_observations() -> None:
    rng = np.random.default_rng(1)
    slope = np.array([2.0, -1.0])
    x = np.concatenate([rng.uniform(size=(20, 2)), rng.uniform(-1, 1, size=(20, 2))], axis=1)
    y = x[:, 2:] @ slope
    gp = GP.condition(x, y, fit_hyper(x, y, units=AS_IS, linear=2), units=AS_IS)
    far = np.array([[0.5, 0.5, 5.0, 5.0]])
    assert gp.predict(far)[0][0] == pytest.approx(5.0, abs=0.5)


def test_hyperparameters_survive_the_vector() -> None:
    again = GPHyper.from_vector(HYPER.to_vector(), linear=True)
    np.testing.assert_array_equal(again.to_vector(), HYPER.to_vector())
    assert again.log_slopes == HYPER.log_slopes
    low, high = np.array(hyper_bounds(2, linear=True)).T
    mode, spread = prior_mode(2, linear=True), prior_spread(2, linear=True)
    assert ((low < mode - spread) & (mode + spread < high)).all()


def test_anchors_resume_bit_for_bit(data) -> None:
    x, y, _ = data
    running = AnchoredFit(linear=3)
    for n in range(1, 16):
        vector = running.hyper(x[:n], y[:n]).to_vector()
    np.testing.assert_array_equal(vector, AnchoredFit(linear=3).hyper(x, y).to_vector())
