import numpy as np
import pytest

from foretune.methods.freeze_thaw.knots import (
    curve_at_knots,
    fill_missing,
    nearest_knot,
    place_knots,
)

KNOTS = np.array([0.125, 0.25, 0.5, 1.0])


def test_knots_have_equal_ratios_and_end_at_one():
    np.testing.assert_allclose(place_knots(0.125, 4), KNOTS)
    assert place_knots(1.0).tolist() == [1.0]


def test_a_curve_is_interpolated_between_logarithms_of_steps():
    steps, losses = np.array([1.0, 4.0, 8.0]), np.array([3.0, 1.0, 0.0])
    np.testing.assert_allclose(curve_at_knots(steps, losses, 8.0, KNOTS), [3.0, 2.0, 1.0, 0.0])


def test_a_curve_ends_where_its_trial_waits_or_diverged():
    waits = curve_at_knots(np.array([1.0, 2.0]), np.array([3.0, 2.0]), 8.0, KNOTS)
    np.testing.assert_array_equal(waits, [3.0, 2.0, np.nan, np.nan])
    diverged = curve_at_knots(np.array([1.0, 2.0]), np.array([3.0, np.nan]), 8.0, KNOTS)
    np.testing.assert_array_equal(diverged, [3.0, np.inf, np.inf, np.inf])
    at_once = curve_at_knots(np.array([1.0]), np.array([np.nan]), 8.0, KNOTS)
    assert np.isinf(at_once).all()


def test_a_first_report_before_all_knots_counts_as_the_first_knot():
    found = curve_at_knots(np.array([0.5]), np.array([3.0]), 8.0, KNOTS)
    assert found[0] == 3.0
    assert nearest_knot(0.5, 8.0, KNOTS) == 0
    assert [nearest_knot(step, 8.0, KNOTS) for step in (1.0, 3.9, 4.0, 8.0)] == [0, 1, 2, 3]


def test_missing_scores_are_what_a_normal_distribution_expects():
    covariance = np.array([[1.0, 0.6], [0.6, 2.0]])
    rows = np.array([[1.0, np.nan], [np.nan, np.nan], [0.5, 0.25]])
    filled = fill_missing(rows, np.array([0.0, 3.0]), covariance)
    assert filled[0, 1] == pytest.approx(3.6, abs=1e-2)
    np.testing.assert_array_equal(filled[1], [0.0, 3.0])
    np.testing.assert_array_equal(filled[2], rows[2])
