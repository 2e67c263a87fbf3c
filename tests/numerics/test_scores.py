import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr
from scipy.stats import norm

from foretune.numerics.scores import (
    MOST_COMPARED,
    _spread_sample,
    front_scores,
    midrank_scores,
    midrank_shares,
    scores_from_past,
    smooth_scores,
    smooth_shares,
    without_penalties,
)
from foretune.numerics.transforms import standardise


def test_midranks_of_three_losses() -> None:
    expected = norm.ppf([5 / 6, 1 / 6, 3 / 6])
    np.testing.assert_allclose(midrank_scores(np.array([9.0, -2.0, 4.0])), expected)


def test_ties_share_their_mean_rank() -> None:
    np.testing.assert_allclose(
        midrank_scores(np.array([1.0, 1.0, 5.0])), norm.ppf([1 / 3, 1 / 3, 5 / 6])
    )


def test_one_loss_scores_the_median() -> None:
    assert midrank_scores(np.array([3.0])) == 0.0


def test_smoothed_shares_of_three_losses_by_hand() -> None:
    """Standardised, 1, 2 and 3 are 1.2247 apart; the kernel is 1.06 / 3^0.2 = 0.8509 wide."""
    beside, beyond = norm.cdf(1.224745 / 0.850917), norm.cdf(2 * 1.224745 / 0.850917)
    highest = (0.5 + beside + beyond) / 3
    expected = [1 - highest, 0.5, highest]
    np.testing.assert_allclose(smooth_shares(np.array([1.0, 2.0, 3.0])), expected, atol=1e-6)


@pytest.mark.filterwarnings("error")
def test_losses_near_the_largest_float_have_scores() -> None:
    """The sum of the two in the middle, and the difference of the extremes, are larger than it."""
    y = np.array([1.7e308, -1.7e308, 1.6e308, 1.5e308])
    assert np.argsort(smooth_scores(y)).tolist() == [1, 3, 2, 0]
    y = np.array([-1.7e308, -1.7e308, -1.7e308, -1.6e308, -1.5e308])
    assert np.argsort(smooth_scores(y), kind="stable").tolist() == [0, 1, 2, 3, 4]


def test_losses_that_hardly_differ_get_scores_that_hardly_differ() -> None:
    """Ranks would spread the five that lie together over more than a standard deviation."""
    y = np.concatenate([1e-6 * np.arange(5.0), np.arange(1.0, 8.0)])
    assert np.ptp(smooth_scores(y)[:5]) < 1e-4
    assert np.ptp(midrank_scores(y)[:5]) > 1.0


def test_crowded_trials_are_distinguished() -> None:
    y = np.concatenate([1e-6 * np.arange(10.0), [1.0, 2.0, 3.0, 4.0]])
    assert np.ptp(smooth_scores(y)[:10]) > 0.5


def test_one_enormous_loss_leaves_the_others_apart() -> None:
    y = np.array([0.1, 0.2, 0.3, 0.4, 0.5])
    spread = np.ptp(smooth_scores(y))
    for enormous in (1e9, 1e30, 1e308):
        assert np.ptp(smooth_scores(np.append(y, enormous))[:-1]) > 0.5 * spread


def test_one_enormous_loss_leaves_the_others_apart_where_most_are_equal_to_the_best() -> None:
    y = np.array([0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.4, 0.2])
    expected = smooth_scores(np.append(y, 1.3))  # 0.4 and three times its distance of 0.3
    alone = smooth_scores(np.append(y[:7], 1.3))  # of 0.4 and a penalty the median is 0.4
    for enormous in (1e9, 1e308):
        np.testing.assert_allclose(smooth_scores(np.append(y, enormous)), expected)
        np.testing.assert_allclose(smooth_scores(np.append(y[:7], enormous)), alone)


@pytest.mark.filterwarnings("error")
def test_penalties_are_drawn_in_and_measurements_are_not() -> None:
    usual = np.array([0.1, 0.2, 0.3, 0.4, 90.0])
    np.testing.assert_array_equal(without_penalties(usual), usual)
    for penalty in (1e4, 1.7e308):
        y = np.array([0.1, 0.2, 0.3, 0.4, penalty])
        np.testing.assert_allclose(without_penalties(y), [0.1, 0.2, 0.3, 0.4, 0.9])
    for same in ([2.5], [2.5, 2.5], [-1.7e308, 1.7e308, 1.6e308]):
        np.testing.assert_array_equal(without_penalties(np.array(same)), same)


def test_unit_and_origin_do_not_matter() -> None:
    y = np.random.default_rng(0).exponential(size=20)
    np.testing.assert_allclose(smooth_scores(y), smooth_scores(1e9 * y - 7e9), atol=1e-5)


def test_scores_of_equal_losses_are_zero() -> None:
    np.testing.assert_array_equal(smooth_scores(np.full(4, 2.5)), 0.0)
    np.testing.assert_array_equal(smooth_scores(np.array([2.5])), 0.0)


def test_a_sample_represents_very_many_losses() -> None:
    y = np.random.default_rng(0).normal(size=4 * MOST_COMPARED)
    drawn_in = (y - y.mean()) / y.std()
    width = 1.06 * len(y) ** -0.2
    whole = norm.cdf((drawn_in[:, None] - drawn_in) / width).mean(axis=1)
    np.testing.assert_allclose(smooth_shares(y), whole, atol=2e-3)


def test_without_doubt_scores_are_the_quantiles_that_past_tasks_expect() -> None:
    y = np.array([0.3, 0.1, 0.2])
    z = scores_from_past(y, np.full(3, -1.5), np.full(3, 0.4), doubt=0.0)
    np.testing.assert_allclose(z, -1.5 + 0.4 * smooth_scores(y), atol=2e-3)


@pytest.mark.parametrize("expected", [-20.0, 20.0])
def test_expectations_far_from_ordinary_scores_are_kept(expected: float) -> None:
    y = np.array([0.3, 0.1, 0.2])
    z = scores_from_past(y, np.full(3, expected), np.full(3, 0.4), doubt=0.0)
    np.testing.assert_allclose(z, expected + 0.4 * smooth_scores(y), atol=0.02)


def test_the_best_of_many_trials_reach_far_into_the_tail_that_is_expected() -> None:
    """The best of 100 trials has the quantile 1/200: 2.58 standard deviations from the mean."""
    y = np.arange(100.0)
    z = scores_from_past(
        y, np.full(100, -20.0), np.full(100, 0.4), doubt=0.0, shares=midrank_shares
    )
    np.testing.assert_allclose(z[0], -20.0 - 0.4 * 2.5758, atol=0.02)
    z = scores_from_past(y, np.full(100, 20.0), np.full(100, 0.4), doubt=0.0, shares=midrank_shares)
    np.testing.assert_allclose(z[-1], 20.0 + 0.4 * 2.5758, atol=0.02)


def test_without_trust_scores_are_those_of_the_trials_alone() -> None:
    y = np.array([0.3, 0.1, 0.2])
    z = scores_from_past(y, np.full(3, -1.5), np.full(3, 0.4), doubt=1.0)
    np.testing.assert_allclose(z, smooth_scores(y), atol=2e-3)


def test_even_odds_solve_the_equation_of_both_distributions() -> None:
    """F(z) = (Phi((z + 2) / 0.5) + Phi(z)) / 2 is the smoothed share at every score."""
    y = np.array([4.0, 1.0, 3.0, 2.0])
    z = scores_from_past(y, np.full(4, -2.0), np.full(4, 0.5))
    share = (norm.cdf((z + 2.0) / 0.5) + norm.cdf(z)) / 2
    np.testing.assert_allclose(share, smooth_shares(y), atol=2e-3)


def test_good_configurations_keep_good_scores() -> None:
    """Half of the trials that past tasks call excellent score below -1, not around 0."""
    y, mu = np.arange(6.0), np.full(6, -2.0)
    assert np.median(scores_from_past(y, mu, np.full(6, 0.3))) < -1.0
    assert abs(np.median(midrank_scores(y))) < 1e-9


def test_informed_scores_of_a_mixture_by_hand() -> None:
    """Two narrow beliefs far apart: the better loss gets the lower one, the worse the higher."""
    z = scores_from_past(np.array([5.0, 4.0]), np.array([0.0, 2.0]), np.full(2, 0.01), doubt=0.0)
    np.testing.assert_allclose(z, [2.0, 0.0], atol=0.03)


losses = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30)


@given(losses, st.integers(0, 99))
def test_scores_follow_the_order_of_the_losses(values: list[float], seed: int) -> None:
    y, rng = np.array(values), np.random.default_rng(seed)
    mu, sigma = rng.normal(size=len(y)), rng.uniform(0.1, 2.0, size=len(y))
    for z in (midrank_scores(y), smooth_scores(y), scores_from_past(y, mu, sigma)):
        assert np.isfinite(z).all()
        order = np.argsort(y, kind="stable")
        assert (np.diff(z[order]) >= -1e-9).all()
        assert (np.diff(z[order])[np.diff(y[order]) == 0] == 0).all()


def test_shares_may_be_by_rank() -> None:
    y = np.array([0.1, 0.2, 9.0])
    z = scores_from_past(y, np.full(3, -1.5), np.full(3, 0.4), doubt=0.0, shares=midrank_shares)
    np.testing.assert_allclose(z, -1.5 + 0.4 * norm.ppf([1 / 6, 3 / 6, 5 / 6]), atol=2e-3)


def test_if_most_losses_equal_the_best_the_others_set_the_scale() -> None:
    y = np.array([1.0, 1.0, 1.0, 1.0, 2.0, 1e9])
    assert without_penalties(y).tolist() == [1.0, 1.0, 1.0, 1.0, 2.0, 5.0]


def test_a_sample_of_very_many_lies_in_the_middle_of_its_neighbours() -> None:
    values = np.random.default_rng(0).permutation(np.arange(3.0 * MOST_COMPARED))
    np.testing.assert_array_equal(_spread_sample(values), np.arange(1, 3 * MOST_COMPARED, 3))


def test_an_outlier_among_very_many_losses_has_a_finite_score() -> None:
    y = np.append(-1000.0, np.linspace(0.0, 1.0, 1999))
    assert smooth_scores(y)[0] == pytest.approx(norm.ppf(0.5 / 2000))


class TestFrontScores:
    GATHERED = np.column_stack([np.linspace(1.0, 1.4, 5), np.linspace(5.0, 4.6, 5)])

    def expected(self, *others: list[float]) -> np.ndarray:
        """Standardised, the last as they are given here."""
        return np.apply_along_axis(standardise, 0, np.vstack([self.GATHERED, *others]))

    def test_the_other_end_of_the_front_is_no_outlier(self) -> None:
        found = front_scores(np.vstack([self.GATHERED, [100.0, 0.0]]))
        np.testing.assert_allclose(found, self.expected([100.0, 0.0]))

    def test_points_beaten_by_others_are_moved_in(self) -> None:
        """To the median of 1.25 and three times its distance from the best; of 4.85 as well."""
        found = front_scores(np.vstack([self.GATHERED, [50.0, 90.0]]))
        np.testing.assert_allclose(found, self.expected([2.0, 5.6]))

    def test_a_penalty_is_no_end_of_the_front(self) -> None:
        found = front_scores(np.vstack([self.GATHERED, [100.0, 0.0], [1e9, -1.0]]))
        np.testing.assert_allclose(found, self.expected([100.0, 0.0], [100.0, -1.0]))


@pytest.mark.parametrize("kind", ["normal", "two clusters", "one far below", "equal in part"])
def test_scores_of_very_many_losses_are_those_of_the_whole_function(kind: str) -> None:
    """Between the places where it is worked out, the distribution function is all but straight."""
    y = np.random.default_rng(0).standard_normal(20_000)
    if kind == "two clusters":
        y[:4_000] += 60.0
    elif kind == "one far below":
        y[5] = -1e6
    elif kind == "equal in part":
        y[:15_000] = y[0]
    found = smooth_scores(y)
    np.testing.assert_allclose(found, smooth_scores(y, most_exact=len(y)), atol=2e-3)


def test_a_part_of_very_many_trials_corrects_the_expectation_of_past_tasks() -> None:
    """The mixture of 2,048 of 6,000 expectations is that of all, to a hundredth."""
    rng = np.random.default_rng(0)
    y, mu = rng.normal(size=(2, 6_000))
    sigma = rng.uniform(0.5, 1.0, 6_000)
    grid = np.linspace(-9.0, 9.0, 1_000)
    expected = ndtr((grid[:, None] - mu) / sigma).mean(axis=1)
    exact = np.interp(midrank_shares(y), 0.5 * expected + 0.5 * norm.cdf(grid), grid)
    found = scores_from_past(y, mu, sigma, shares=midrank_shares)
    middle = np.abs(exact) < 2.0
    assert np.abs(found - exact)[middle].max() < 0.02
