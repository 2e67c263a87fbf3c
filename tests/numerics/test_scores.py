import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from foretune.numerics.scores import informed_scores, midrank_scores


def test_midranks_of_three_losses() -> None:
    expected = norm.ppf([5 / 6, 1 / 6, 3 / 6])
    np.testing.assert_allclose(midrank_scores(np.array([9.0, -2.0, 4.0])), expected)


def test_ties_share_their_mean_rank() -> None:
    np.testing.assert_allclose(
        midrank_scores(np.array([1.0, 1.0, 5.0])), norm.ppf([1 / 3, 1 / 3, 5 / 6])
    )


def test_one_loss_scores_the_median() -> None:
    assert midrank_scores(np.array([3.0])) == 0.0


def test_without_doubt_scores_are_the_quantiles_that_past_tasks_expect() -> None:
    y = np.array([0.3, 0.1, 0.2])
    z = informed_scores(y, np.full(3, -1.5), np.full(3, 0.4), doubt=0.0)
    np.testing.assert_allclose(z, -1.5 + 0.4 * norm.ppf([5 / 6, 1 / 6, 3 / 6]), atol=2e-3)


def test_without_trust_scores_are_midranks() -> None:
    y = np.array([0.3, 0.1, 0.2])
    z = informed_scores(y, np.full(3, -1.5), np.full(3, 0.4), doubt=1.0)
    np.testing.assert_allclose(z, midrank_scores(y), atol=2e-3)


def test_even_odds_solve_the_equation_of_both_distributions() -> None:
    """F(z) = (Phi((z + 2) / 0.5) + Phi(z)) / 2 is the rank's share at every score."""
    y = np.array([4.0, 1.0, 3.0, 2.0])
    z = informed_scores(y, np.full(4, -2.0), np.full(4, 0.5))
    share = (norm.cdf((z + 2.0) / 0.5) + norm.cdf(z)) / 2
    np.testing.assert_allclose(share, [7 / 8, 1 / 8, 5 / 8, 3 / 8], atol=2e-3)


def test_good_configurations_keep_good_scores() -> None:
    """Half of the trials that past tasks call excellent score below -1, not around 0."""
    y, mu = np.arange(6.0), np.full(6, -2.0)
    assert np.median(informed_scores(y, mu, np.full(6, 0.3))) < -1.0
    assert abs(np.median(midrank_scores(y))) < 1e-9


def test_informed_scores_of_a_mixture_by_hand() -> None:
    """Two narrow beliefs far apart: the better loss gets the lower one, the worse the higher."""
    z = informed_scores(np.array([5.0, 4.0]), np.array([0.0, 2.0]), np.full(2, 0.01), doubt=0.0)
    np.testing.assert_allclose(z, [2.0, 0.0], atol=0.03)


losses = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30)


@given(losses, st.integers(0, 99))
def test_scores_follow_the_order_of_the_losses(values: list[float], seed: int) -> None:
    y, rng = np.array(values), np.random.default_rng(seed)
    mu, sigma = rng.normal(size=len(y)), rng.uniform(0.1, 2.0, size=len(y))
    for z in (midrank_scores(y), informed_scores(y, mu, sigma)):
        assert np.isfinite(z).all()
        order = np.argsort(y, kind="stable")
        assert (np.diff(z[order]) >= -1e-9).all()
        assert (np.diff(z[order])[np.diff(y[order]) == 0] == 0).all()
