import numpy as np
import pytest
from scipy.optimize import check_grad
from scipy.stats import multivariate_normal

from foretune.numerics.factor_gp import (
    LEAST_NOISE,
    LENGTHSCALES_SPREAD,
    VARIANCES_MODE,
    VARIANCES_SPREAD,
    FactorGP,
    FactorHyper,
    fit_factors,
    negative_log_posterior,
)
from foretune.numerics.gp import GP
from foretune.numerics.hyper import GPHyper

GROUPS = np.array([0, 1, 1])
RNG = np.random.default_rng(0)
X, Y = RNG.random((8, 3)), RNG.standard_normal(8)
FACTORS = RNG.standard_normal((8, 2))


def hyper(weights: float = 0.3, new: float = -0.5, noise: float = -3.0) -> FactorHyper:
    return FactorHyper(weights, new, noise, np.log([0.5, 0.8, 0.8]))


def test_the_gradient_is_that_of_finite_differences() -> None:
    def value(vector):
        return negative_log_posterior(vector, FACTORS @ FACTORS.T, X, Y, GROUPS)[0]

    def gradient(vector):
        return negative_log_posterior(vector, FACTORS @ FACTORS.T, X, Y, GROUPS)[1]

    for vector in RNG.normal(-0.5, 0.7, (5, 5)):
        assert check_grad(value, gradient, vector) < 1e-5


def test_the_likelihood_is_that_of_the_covariance_that_is_meant() -> None:
    vector = np.array([0.3, -0.5, -3.0, np.log(0.5), np.log(0.8)])
    r = np.sqrt(np.square((X[:, None] - X) / [0.5, 0.8, 0.8]).sum(axis=2))
    t = np.sqrt(5.0) * r
    covariance = (
        np.exp(0.3) * FACTORS @ FACTORS.T
        + np.exp(-0.5) * (1 + t + t**2 / 3) * np.exp(-t)
        + (np.exp(-3.0) + LEAST_NOISE) * np.eye(8)
    )
    density = multivariate_normal(np.zeros(8), covariance).logpdf(Y)
    mode = np.append(VARIANCES_MODE, GPHyper.default(GROUPS).log_lengthscales[:2])
    spread = np.append(VARIANCES_SPREAD, np.full(2, LENGTHSCALES_SPREAD))
    belief = -0.5 * np.square((vector - mode) / spread).sum()
    found, _ = negative_log_posterior(vector, FACTORS @ FACTORS.T, X, Y, GROUPS)
    assert found == pytest.approx(-density - belief - 4 * np.log(2 * np.pi))


def test_without_known_functions_it_is_a_plain_process() -> None:
    plain = GP.condition(
        X, Y, GPHyper(hyper().log_lengthscales, -0.5, np.log(np.exp(-3.0) + LEAST_NOISE))
    )
    # The plain process standardises inside.
    model = FactorGP.condition(np.empty((8, 0)), X, plain.units(Y), hyper())
    at = RNG.random((5, 3))
    mean, std = model.predict(np.empty((5, 0)), at)
    expected = plain.predict(at)
    assert plain.units.inverse(mean) == pytest.approx(expected[0])
    assert std * plain.units.scale == pytest.approx(expected[1])


def test_a_mixture_is_known_far_from_where_it_was_observed() -> None:
    near, far = 0.1 * RNG.random((6, 3)), 1.0 - 0.1 * RNG.random((6, 3))
    known = lambda x: np.column_stack([np.sin(9 * x[:, 0]), np.cos(7 * x[:, 1])])  # noqa: E731
    truth = lambda x: known(x) @ [0.7, -1.2]  # noqa: E731
    model = FactorGP.condition(known(near), near, truth(near), hyper(new=-9.0, noise=-9.0))
    mean, std = model.predict(known(far), far)
    assert mean == pytest.approx(truth(far), abs=0.1)
    assert (std < 0.2).all()


def test_the_fit_tells_a_mixture_from_something_new() -> None:
    x = RNG.random((40, 3))
    factors = np.column_stack([x[:, 0], np.square(x[:, 1])])
    mixed = fit_factors(factors, x, factors @ [2.0, -1.0], GROUPS)
    new = fit_factors(factors, x, np.sin(12 * x[:, 2]), GROUPS)
    assert mixed.log_new < -4.0 < new.log_new


def test_draws_have_the_moments_that_are_predicted() -> None:
    model = FactorGP.condition(FACTORS, X, Y, hyper())
    factors, at = RNG.standard_normal((4, 2)), RNG.random((4, 3))
    drawn = model.sample(factors, at, 20_000, np.random.default_rng(1))
    mean, std = model.predict(factors, at)
    assert drawn.mean(axis=0) == pytest.approx(mean, abs=0.05)
    assert drawn.std(axis=0) == pytest.approx(std, rel=0.05)
    # Draws are joint: what the known functions share moves together.
    twice = model.sample(
        np.repeat(factors[:1], 2, axis=0),
        np.repeat(at[:1], 2, axis=0),
        50,
        np.random.default_rng(2),
    )
    assert twice[:, 0] == pytest.approx(twice[:, 1], abs=1e-3)
