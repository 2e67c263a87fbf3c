import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.stats import multivariate_normal

from foretune.numerics.coregion import CoregionalGP, CoregionPoints, Hyper, HyperPrior, surprise

RNG = np.random.default_rng(0)
U, WHICH = RNG.normal(size=(9, 3)), np.array([0, 1, 2, 0, 1, 0, 2, 2, 0])
Z = RNG.normal(size=9)
BESIDE = RNG.random(size=(9, 2))
POINTS = CoregionPoints(U, WHICH, BESIDE)
HYPER = Hyper(
    np.array([0.9, -0.4, 0.3]), np.log([0.2, 0.5, 0.1]), np.log(0.8), np.log(0.05), 0.3, 0.6
)


def dense_covariance(u: np.ndarray, which: np.ndarray, v: np.ndarray, of: np.ndarray) -> np.ndarray:
    """Entry by entry, as the definition has it."""
    w, kappa = HYPER.loadings, np.exp(HYPER.log_own)
    covariance = np.empty((len(u), len(v)))
    for i in range(len(u)):
        for j in range(len(v)):
            between = w[which[i]] * w[of[j]] + (kappa[which[i]] if which[i] == of[j] else 0.0)
            covariance[i, j] = between * np.exp(-((u[i] - v[j]) ** 2).sum() / (2 * 0.8**2))
    return covariance


def dense_mean(u: np.ndarray, beside: np.ndarray) -> np.ndarray:
    """The bowl is the mean of |u|² and two others."""
    bowls = np.column_stack([(u**2).sum(axis=1), beside])
    return 0.3 + 0.6 * (bowls.mean(axis=1) - 1.0)


def alone(u: np.ndarray, which: np.ndarray) -> CoregionPoints:
    return CoregionPoints(u, which, np.empty((len(u), 0)))


def test_the_vector_and_the_hyperparameters_are_the_same() -> None:
    vector = HYPER.to_vector()
    np.testing.assert_array_equal(Hyper.from_vector(vector).to_vector(), vector)
    assert len(vector) == 2 * 3 + 4


def test_the_surprise_is_the_negative_log_density() -> None:
    covariance = dense_covariance(U, WHICH, U, WHICH) + 0.05 * np.eye(9)
    density = multivariate_normal(dense_mean(U, BESIDE), covariance).logpdf(Z)
    found = surprise(HYPER.to_vector(), POINTS, Z).value + 4.5 * np.log(2.0 * np.pi)
    assert found == pytest.approx(-density)


def test_gradients_agree_with_finite_differences() -> None:
    vector = HYPER.to_vector()
    found = surprise(vector, POINTS, Z)
    by_hyper = approx_fprime(vector, lambda v: surprise(v, POINTS, Z).value, 1e-6)
    np.testing.assert_allclose(found.to_hyper, by_hyper, rtol=1e-4, atol=1e-4)
    by_input = approx_fprime(
        U.ravel(),
        lambda u: surprise(vector, CoregionPoints(u.reshape(9, 3), WHICH, BESIDE), Z).value,
        1e-6,
    )
    np.testing.assert_allclose(found.to_inputs.ravel(), by_input, rtol=1e-4, atol=1e-4)


def test_the_posterior_agrees_with_the_dense_formula() -> None:
    new, of = RNG.normal(size=(5, 3)), np.array([2, 1, 0, 0, 1])
    beside = RNG.random(size=(5, 2))
    covariance = dense_covariance(U, WHICH, U, WHICH) + 0.05 * np.eye(9)
    cross = dense_covariance(new, of, U, WHICH)
    residual = Z - dense_mean(U, BESIDE)
    mean = dense_mean(new, beside) + cross @ np.linalg.solve(covariance, residual)
    spread = dense_covariance(new, of, new, of) - cross @ np.linalg.solve(covariance, cross.T)
    process = CoregionalGP.condition(POINTS, Z, HYPER)
    asked = CoregionPoints(new, of, beside)
    found_mean, found_std = process.predict(asked)
    np.testing.assert_allclose(found_mean, mean)
    np.testing.assert_allclose(found_std, np.sqrt(np.diag(spread)))
    draws = process.sample(asked, 40_000, np.random.default_rng(1))
    np.testing.assert_allclose(draws.mean(axis=0), mean, atol=0.03)
    np.testing.assert_allclose(np.cov(draws.T), spread, atol=0.03)


def test_one_function_teaches_another_as_far_as_both_load_on_the_factor() -> None:
    """Function 1 was never seen: its belief moves by its share of the common factor."""
    at = np.zeros((1, 3))
    shared = Hyper(np.ones(2), np.log([0.1, 0.1]), 0.0, np.log(1e-6), 0.0, 0.0)
    apart = Hyper(np.array([1.0, 0.0]), np.log([0.1, 0.1]), 0.0, np.log(1e-6), 0.0, 0.0)
    seen = (alone(at, np.array([0])), np.array([1.1]))
    other = alone(at, np.array([1]))
    assert CoregionalGP.condition(*seen, shared).predict(other)[0] == pytest.approx(1.0, 1e-4)
    assert CoregionalGP.condition(*seen, apart).predict(other)[0] == pytest.approx(0.0)


def test_without_other_bowls_the_mean_is_that_of_the_paper() -> None:
    """Level + slope (|u|² - 1), at |u|² = 5."""
    at = alone(np.array([[2.0, 0.0, 1.0]]), np.array([0]))
    assert HYPER.mean(at) == pytest.approx(0.3 + 0.6 * 4.0)


def test_the_prior_of_the_hyperparameters_holds_a_flat_mean_fast() -> None:
    prior = HyperPrior.of(2, slope=(0.0, 0.0))
    assert prior.bounds()[-1] == (0.0, 0.0)
    value, gradient = prior.surprise(prior.mode)
    assert value == 0.0
    assert not gradient.any()
    moved = prior.mode + 0.5 * prior.spread
    value, gradient = prior.surprise(moved)
    assert value == pytest.approx(0.125 * (len(moved) - 1))
    np.testing.assert_allclose(gradient[:-1], 0.5 / prior.spread[:-1])


def test_every_hyperparameter_has_the_prior_of_its_kind() -> None:
    """Loadings about 0.7, log kappa about log 0.3, then lengthscale, noise, level and slope."""
    prior = HyperPrior.of(2, slope=(0.9, 0.4))
    mode = Hyper.from_vector(prior.mode)
    np.testing.assert_allclose(mode.loadings, [0.7, 0.7])
    np.testing.assert_allclose(np.exp(mode.log_own), [0.3, 0.3])
    assert np.exp(mode.log_lengthscale) == pytest.approx(0.7)
    assert (mode.log_noise, mode.level, mode.slope) == (-6.0, 0.0, 0.9)
    np.testing.assert_allclose(prior.spread, [0.5, 0.5, 1.0, 1.0, 0.7, 1.5, 1.0, 0.4])


def test_a_bowl_is_never_turned_upside_down() -> None:
    low, high = HyperPrior.of(1, slope=(0.7, 0.5)).bounds()[-1]
    assert (low, high) == (0.0, pytest.approx(2.2))
