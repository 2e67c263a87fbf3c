import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import norm, rankdata

from foretune.numerics.transforms import (
    Copula,
    Standardise,
    copula_scores,
    standardise,
    winsor_cut,
)

finite = st.floats(-1e6, 1e6).map(lambda value: round(value, 3))
losses = arrays(np.float64, st.integers(1, 40), elements=finite)


def test_winsor_cut_by_hand():
    # 4 * 16^(1/4) = 8 and pi log 16 = 8.7103...
    assert winsor_cut(16) == pytest.approx(1.0 / (8.0 * np.sqrt(8.710344361)))
    assert winsor_cut(1) == winsor_cut(0) == 0.5
    cuts = [winsor_cut(n) for n in range(1, 200)]
    assert all(0.0 < cut <= 0.5 for cut in cuts)
    assert cuts == sorted(cuts, reverse=True)


def test_scores_of_four_losses_by_hand():
    # F = 1/4, 2/4, 3/4, 1, of which only the last is cut, at 1 - 1 / (4 sqrt(2) sqrt(pi log 4))
    cut = 1.0 / (4.0 * np.sqrt(2.0) * np.sqrt(np.pi * np.log(4.0)))
    expected = [-0.6744897501960817, 0.0, 0.6744897501960817, norm.ppf(1.0 - cut)]
    np.testing.assert_allclose(copula_scores(np.array([2.0, 5.0, 7.0, 100.0])), expected)


@given(losses)
def test_scores_agree_with_scipy(y):
    n = len(y)
    cut = winsor_cut(n)
    expected = norm.ppf(np.clip(rankdata(y, method="max") / n, cut, 1.0 - cut))
    np.testing.assert_allclose(copula_scores(y), expected, atol=1e-12)


@given(losses)
def test_scores_are_finite_monotone_and_keep_ties(y):
    scores = copula_scores(y)
    assert np.isfinite(scores).all()
    order = np.argsort(y, kind="stable")
    assert (np.diff(scores[order]) >= 0.0).all()
    assert (np.diff(scores[order])[np.diff(y[order]) == 0.0] == 0.0).all()


@given(losses)
def test_scores_do_not_change_under_increasing_maps(y):
    np.testing.assert_array_equal(copula_scores(y), copula_scores(np.arctan(y / 1e6)))


def test_one_loss_scores_zero_and_two_keep_their_order():
    assert copula_scores(np.array([42.0])) == pytest.approx([0.0])
    first, second = copula_scores(np.array([3.0, -1.0]))
    assert first > second
    assert np.isfinite([first, second]).all()


def test_failures_are_ignored_and_stay_failures():
    y = np.array([3.0, np.nan, 1.0, 2.0])
    scores = copula_scores(y)
    np.testing.assert_array_equal(scores[[0, 2, 3]], copula_scores(y[[0, 2, 3]]))
    assert np.isnan(scores[1])
    assert np.isnan(copula_scores(np.full(3, np.nan))).all()


def test_new_losses_take_the_score_of_the_learnt_step_below():
    copula = Copula.fit(np.array([1.0, 2.0, 3.0, 4.0]))
    learnt = copula(np.array([1.0, 2.0, 3.0, 4.0]))
    np.testing.assert_allclose(copula(np.array([1.5, 2.0, 3.999, 9.0])), learnt)
    assert copula(np.array([0.0]))[0] == pytest.approx(norm.ppf(winsor_cut(4)))
    assert copula(np.ones((2, 3))).shape == (2, 3)


def test_standardise_by_hand():
    np.testing.assert_allclose(standardise(np.array([1.0, 3.0])), [-1.0, 1.0])
    np.testing.assert_array_equal(standardise(np.full(4, 1e12 / 3.0)), np.zeros(4))
    np.testing.assert_allclose(standardise(np.array([1.0, np.nan, 3.0])), [-1.0, np.nan, 1.0])


def test_nothing_but_zeros_keeps_its_unit():
    assert Standardise.fit(np.zeros(3)) == Standardise(0.0, 1.0)
    assert Standardise.fit(np.full(3, 7.0)) == Standardise(7.0, 1.0)
    assert Standardise.fit(np.full(3, np.nan)) == Standardise(0.0, 1.0)


def test_a_spread_too_small_for_a_float_is_none():
    # Half of the smallest number above zero is zero.
    np.testing.assert_array_equal(Standardise.fit(np.array([0.0, 5e-324])).scale, 1.0)


@pytest.mark.parametrize("scale", [1e-300, 1e-12, 1e12, 1e307])
def test_standardise_bears_any_scale(scale):
    y = np.array([-4.0, 1.0, 3.0, 2.0])
    np.testing.assert_allclose(standardise(scale * y), (y - y.mean()) / y.std())


def test_standardise_bears_huge_losses_of_both_signs():
    """Their difference is larger than any float."""
    y = np.array([1.7e308, -1.7e308, 1.7e308, 0.0])
    np.testing.assert_allclose(standardise(y), standardise(y / 1e300))


@given(losses)
def test_standardise_can_be_inverted(y):
    transform = Standardise.fit(y)
    np.testing.assert_allclose(transform.inverse(transform(y)), y, atol=1e-9 * np.abs(y).max())


@pytest.mark.parametrize("transform", [Copula, Standardise])
def test_both_keep_the_order_and_what_is_unknown(transform: type[Copula | Standardise]):
    y = np.array([5.0, np.nan, 1.0, 2.0, 2.0])
    z = transform.fit(y)(y)
    assert np.isnan(z[1])
    assert z[2] < z[3] == z[4] < z[0]


def test_losses_that_differ_by_rounding_alone_are_constant():
    assert Standardise.fit(np.array([0.3, 0.1 + 0.2])).scale == 1.0
