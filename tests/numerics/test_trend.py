import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.model_selection import LeaveOneOut, cross_val_predict

from foretune.numerics.gp import GP
from foretune.numerics.hyper import GPHyper
from foretune.numerics.trend import MOST_FITTED, PENALTIES, Trend, TrendedGP


def points(n, columns=2, seed=0):
    return np.random.default_rng(seed).random((n, columns))


def test_a_sum_of_parabolas_is_found_and_goes_on_beyond_the_points():
    def bowl(x):
        return 3.0 + np.square(x[:, 0] - 0.2) - 2.0 * x[:, 1]

    x = 0.2 + 0.6 * points(30)
    corners = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    np.testing.assert_allclose(Trend.fit(x, bowl(x))(corners), bowl(corners), atol=0.05)


def test_weights_are_shrunk_as_what_is_left_out_has_it():
    """The penalty is the one whose leave-one-out errors, by refitting, are least."""
    x = points(15, 3, seed=1)
    y = x[:, 0] + 0.3 * np.random.default_rng(2).normal(size=15)
    columns = np.hstack([x, 2 * (x - 0.5) ** 2])

    def error(penalty):
        foretold = cross_val_predict(Ridge(penalty), columns, y, cv=LeaveOneOut())
        return np.square(foretold - y).mean()

    best = Ridge(min(PENALTIES, key=error)).fit(columns, y)
    np.testing.assert_allclose(Trend.fit(x, y)(x), best.predict(columns))


def test_little_but_the_level_is_left_of_noise():
    y = np.random.default_rng(3).normal(size=40)
    trend = Trend.fit(points(40), y)
    assert np.ptp(trend(points(100, seed=4))) < 0.5 * y.std()
    assert trend(points(100, seed=4)).mean() == pytest.approx(y.mean(), abs=0.2)


@pytest.mark.parametrize("y", [[2.5], [2.5, 2.5, 2.5]])
def test_one_trial_or_equal_ones_are_a_level(y):
    x = points(len(y))
    np.testing.assert_allclose(Trend.fit(x, np.array(y))(points(5, seed=1)), 2.5)


def test_a_process_on_what_is_left_over():
    x, x_new = points(12), points(7, seed=1)
    y = np.sin(9 * x[:, 0]) + 2 * x[:, 1]
    hyper = GPHyper.default(np.arange(2))
    trend = Trend.fit(x, y)
    both = TrendedGP.condition(x, y, hyper, trend)
    left = GP.condition(x, y - trend(x), hyper)
    mean, std = both.predict(x_new)
    np.testing.assert_allclose(mean, trend(x_new) + left.predict(x_new)[0])
    np.testing.assert_allclose(std, left.predict(x_new)[1])
    np.testing.assert_allclose(both.predict(x)[0], y, atol=0.05)
    draws = both.sample(x_new, 3_000, np.random.default_rng(0))
    np.testing.assert_allclose(draws.mean(axis=0), mean, atol=0.1)
    np.testing.assert_allclose(draws.std(axis=0), std, atol=0.1)


def test_one_point_has_a_level_and_no_trend():
    trend = Trend.fit(points(1), np.array([3.0]))
    np.testing.assert_array_equal(trend(points(4, seed=1)), np.full(4, 3.0))


def test_a_trend_through_many_trials_is_as_good_as_one_through_all():
    """Only some of many are read; of a parabola without noise these tell everything."""
    x = np.random.default_rng(0).random((3 * MOST_FITTED, 3))
    y = 2.0 + x[:, 0] - 3.0 * (x[:, 2] - 0.5) ** 2
    np.testing.assert_allclose(Trend.fit(x, y)(x), y, atol=1e-3)
