import numpy as np
import pytest
from scipy.stats import norm

from foretune.numerics.order import DISTRUST, order_score

ONE = np.ones(2)


def believed(right: float) -> float:
    return float(np.log(DISTRUST / 2 + (1 - DISTRUST) * right))


def test_one_pair_by_hand() -> None:
    # The second is better; the belief puts it 2 below the first, each with standard deviation 1.
    score = order_score(np.array([1.0, -1.0]), ONE, np.array([0.4, 0.1]), first=1)
    assert score == pytest.approx(believed(norm.cdf(2 / np.sqrt(2))))


def test_the_pairs_of_a_row_count_once_together() -> None:
    mean, losses = np.array([0.0, 1.0, 2.0]), np.array([0.0, 2.0, 1.0])
    score = order_score(mean, np.ones(3), losses, first=2)
    right = norm.cdf(2 / np.sqrt(2))  # above the first row, as it is
    wrong = norm.cdf(-1 / np.sqrt(2))  # above the second row, as it is not
    assert score == pytest.approx((believed(right) + believed(wrong)) / 2)


def test_ties_say_nothing() -> None:
    assert order_score(np.array([5.0, -5.0]), ONE, np.array([0.2, 0.2]), first=1) == 0.0


def test_units_do_not_matter() -> None:
    rng = np.random.default_rng(0)
    mean, std, losses = rng.normal(size=9), rng.uniform(0.5, 1, 9), rng.normal(size=9)
    once = order_score(mean, std, losses, first=4)
    assert order_score(100 + 7 * mean, 7 * std, np.exp(losses), first=4) == pytest.approx(once)


def test_certainty_is_rewarded_when_right_and_punished_when_wrong() -> None:
    mean, losses = np.array([1.0, 0.0]), np.array([1.0, 0.0])
    sure, unsure = 1e-12 * ONE, 10 * ONE
    assert order_score(mean, sure, losses, 1) > order_score(mean, unsure, losses, 1)
    assert order_score(mean, sure, -losses, 1) < order_score(mean, unsure, -losses, 1)
    assert order_score(mean, 0 * ONE, -losses, 1) == pytest.approx(np.log(DISTRUST / 2))


def test_who_is_sure_that_two_are_equal_gives_either_order_the_same_chance() -> None:
    score = order_score(np.zeros(2), np.zeros(2), np.array([0.2, 0.1]), first=1)
    assert score == pytest.approx(np.log(0.5))
