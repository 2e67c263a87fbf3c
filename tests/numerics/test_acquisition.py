from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from foretune.numerics.acquisition import (
    expected_improvement,
    log_expected_improvement,
    log_h,
    thompson,
)
from foretune.numerics.anchored import AnchoredFit

finite = st.floats(-1e100, 1e100)
stds = st.one_of(st.just(0.0), st.floats(0.0, 1e100))


def log_h_by_continued_fraction(t: int, depth: int = 400) -> float:
    """log h(-t) without cancellation: Mills' ratio is 1/(t + 1/(t + 2/(t + 3/(t + ...)))).

    Rational arithmetic leaves 1 - t m(t) with all its digits.
    """
    tail = Fraction(t)
    for k in range(depth, 0, -1):
        tail = (t + k / tail).limit_denominator(10**40)
    return float(np.log(float(1 - t / tail))) - 0.5 * t * t - 0.5 * np.log(2.0 * np.pi)


@pytest.mark.parametrize("t", [2, 3, 5, 8, 12, 20, 25, 29, 30, 31, 40, 100, 1000])
def test_log_h_in_the_tail_agrees_with_rational_arithmetic(t):
    expected = log_h_by_continued_fraction(t)
    assert log_h(np.array([-float(t)]))[0] == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize("v", [-6.0, -1.5, -1.0, -0.999, 0.0, 0.3, 4.0])
def test_expected_improvement_agrees_with_quadrature(v):
    # h(v) is the integral of the normal distribution function up to v.
    expected, _ = quad(norm.cdf, -40.0, v, epsabs=0.0, epsrel=1e-11, limit=200)
    assert np.exp(log_h(np.array([v]))[0]) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("v", [-1e4, -1e6, -1e10])
def test_log_h_far_in_the_tail_follows_its_leading_term(v):
    leading = -0.5 * v * v - 0.5 * np.log(2.0 * np.pi) - 2.0 * np.log(-v)
    assert log_h(np.array([v]))[0] == pytest.approx(leading, rel=1e-14)


@pytest.mark.parametrize("edge", [-1.0, -30.0])
def test_log_h_is_continuous_where_its_formulas_meet(edge):
    below, above = log_h(np.array([edge, np.nextafter(edge, 0.0)]))
    assert below == pytest.approx(above, rel=1e-10)


def test_log_h_increases_everywhere():
    v = np.concatenate([-np.logspace(8, -3, 3000), np.logspace(-3, 8, 1000)])
    assert (np.diff(log_h(v)) > 0.0).all()


def test_expected_improvement_of_certain_losses_is_the_improvement_itself():
    mean, std = np.array([1.0, 2.0, 3.0]), np.zeros(3)
    np.testing.assert_allclose(expected_improvement(mean, std, 2.5), [1.5, 0.5, 0.0], atol=1e-12)


def test_expected_improvement_by_hand():
    # at mean = best: std / sqrt(2 pi)
    value = expected_improvement(np.array([1.0]), np.array([2.0]), 1.0)[0]
    assert value == pytest.approx(2.0 / np.sqrt(2.0 * np.pi))


def test_the_logarithm_orders_candidates_that_underflow():
    mean, std = np.array([1e3, 2e3, 3e3]), np.ones(3)
    np.testing.assert_array_equal(expected_improvement(mean, std, 0.0), np.zeros(3))
    scores = log_expected_improvement(mean, std, 0.0)
    assert scores[0] > scores[1] > scores[2]


@given(finite, stds, finite)
def test_every_acquisition_is_finite(mean, std, best):
    mean, std = np.array([mean]), np.array([std])
    for acquisition in (log_expected_improvement, expected_improvement):
        assert np.isfinite(acquisition(mean, std, best)).all()


@given(st.floats(-50, 50), st.floats(1e-3, 10), st.floats(-50, 50))
def test_expected_improvement_grows_with_std_and_falls_with_mean(mean, std, best):
    means, std_twice = np.array([mean, mean - 0.1]), np.array([std, std])
    worse, better = log_expected_improvement(means, std_twice, best)
    assert better > worse
    same, growing = np.array([mean, mean]), np.array([std, 2.0 * std])
    narrow, wide = log_expected_improvement(same, growing, best)
    # Where the improvement is certain its size does not depend on std, save for rounding.
    assert wide > narrow - 1e-14 * abs(narrow)
    if best - mean < 3.0 * std:
        assert wide > narrow


def test_thompson_prefers_the_lowest_draw():
    np.testing.assert_array_equal(thompson(np.array([[3.0, -1.0, 2.0]])), [-3.0, 1.0, -2.0])
    np.testing.assert_array_equal(thompson(np.array([[3.0, 1.0], [1.0, 3.0]])), [-2.0, -2.0])


def branin(x: np.ndarray) -> np.ndarray:
    """Three minima of value 0.397887 within the unit square."""
    a, b = 15.0 * x[:, 0] - 5.0, 15.0 * x[:, 1]
    valley = b - 5.1 / (4.0 * np.pi**2) * a**2 + 5.0 / np.pi * a - 6.0
    return valley**2 + 10.0 * (1.0 - 1.0 / (8.0 * np.pi)) * np.cos(a) + 10.0


def minimise_branin(seed: int, trials: int) -> float:
    candidates = np.random.default_rng(seed).random((2000, 2))
    losses, fits = branin(candidates), AnchoredFit()
    tried = [0, 1, 2, 3]
    while len(tried) < trials:
        gp = fits.gp(candidates[tried], losses[tried])
        scores = log_expected_improvement(*gp.predict(candidates), float(losses[tried].min()))
        scores[tried] = -np.inf
        tried.append(int(np.argmax(scores)))
    return float(losses[tried].min())


def test_expected_improvement_minimises_branin_in_thirty_trials():
    ours = [minimise_branin(seed, trials=30) for seed in range(4)]
    random = [branin(np.random.default_rng(seed).random((2000, 2)))[:30].min() for seed in range(4)]
    assert max(ours) < 0.5
    assert np.median(random) > 1.0


def test_an_enormous_improvement_does_not_overflow():
    with np.errstate(over="raise"):
        np.testing.assert_allclose(log_h(np.array([1e200])), np.log(1e200))
