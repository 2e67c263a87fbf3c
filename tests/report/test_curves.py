from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from foretune.experience import Direction
from foretune.report.curves import random_search_curve, trials_needed, unbeaten, visible_range


@pytest.mark.parametrize(("direction", "best"), [(Direction.MIN, min), (Direction.MAX, max)])
def test_expected_best_is_the_mean_over_all_draws(direction, best):
    values = [0.3, -1.0, 2.5, 0.3]
    brute = [np.mean([best(draw) for draw in product(values, repeat=k)]) for k in (1, 2, 3)]
    assert random_search_curve(values, 3, direction) == pytest.approx(brute)


def test_a_failure_counts_as_the_worst_value():
    values = [0.2, np.nan, 0.8]
    assert random_search_curve(values, 4, Direction.MIN) == pytest.approx(
        random_search_curve([0.2, 0.8, 0.8], 4, Direction.MIN)
    )


def test_nothing_is_expected_of_failures_alone():
    assert len(random_search_curve([np.nan, np.inf], 5, Direction.MAX)) == 0


def test_trials_needed_counts_from_one():
    assert trials_needed([3.0, 2.0, 1.0], 2.0, Direction.MIN) == 2
    assert trials_needed([0.1, 0.5], 0.1, Direction.MAX) == 1
    assert trials_needed([0.1, 0.5], 0.6, Direction.MAX) is None


def test_a_disaster_lies_beyond_the_picture():
    values = np.array([0.80, 0.81, 0.82, 0.83, 0.84, 0.01])
    shown = visible_range(values, Direction.MAX)
    assert 0.7 < shown.low < 0.80
    assert 0.84 < shown.high < 0.85
    assert shown.beyond == 1


def test_required_points_widen_the_picture():
    values = np.array([0.80, 0.81, 0.82, 0.83])
    assert visible_range(values, Direction.MAX, also=[0.5]).low < 0.5


def test_losses_over_magnitudes_get_a_logarithmic_axis():
    assert visible_range(np.geomspace(1e-3, 1.0, 9)[:7], Direction.MIN).log
    assert not visible_range(np.geomspace(1e-3, 1.0, 9)[:7], Direction.MAX).log


@given(arrays(np.float64, st.integers(0, 8), elements=st.floats(-1e6, 1e6) | st.just(np.nan)))
def test_a_picture_is_never_empty(values):
    shown = visible_range(values, Direction.MIN)
    assert shown.low < shown.high


@given(arrays(np.float64, st.tuples(st.integers(0, 12), st.just(2)), elements=st.integers(0, 4)))
def test_unbeaten_rows_are_those_that_no_row_dominates(losses):
    def beaten(row):
        return any((other <= row).all() and (other < row).any() for other in losses)

    front = {tuple(row) for row in losses if not beaten(row)}
    found = unbeaten(losses)
    assert {tuple(row) for row in losses[found]} == front
    assert len(found) == len(front)
    assert (np.diff(losses[found, 0]) > 0).all()


def test_failures_are_not_unbeaten():
    assert unbeaten(np.array([[np.nan, 0.0], [1.0, 1.0]])).tolist() == [1]
