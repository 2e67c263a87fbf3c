from math import nan

import numpy as np
import pytest

from foretune.experience.alignment.translation import fill, number_in
from foretune.space import Space


def test_gaps_are_filled_with_what_says_little():
    rows = np.arange(100.0)[:, None]
    number, choice = Space.of({"n": (0, 10), "c": ["x", "y"]}).parameters[::-1]
    assert (number.name, choice.name) == ("n", "c")
    column = np.array([1.0, 4.0, 6.0, np.nan])
    fill(number, column, np.isnan(column), rows[:4])
    assert column.tolist() == [1.0, 4.0, 6.0, 4.0]
    column = np.array([1.0, 4.0, np.nan])
    fill(number, column, np.isnan(column), rows[:3])
    assert column.tolist() == [1.0, 4.0, 2.0]  # of an even number the median is rounded
    column = np.array([0.0] + [np.nan] * 99)
    fill(choice, column, np.isnan(column), rows)
    assert 30 < column.sum() < 70


def test_what_counts_as_a_bound_is_measured_on_its_scale():
    plain, log = Space.of({"a": (1e-4, 1.0), "b": (1e-4, 1.0, "log")}).parameters
    assert number_in(plain, 1e-4 - 5e-10) == 1e-4
    assert np.isnan(number_in(log, 1e-4 - 5e-10))


@pytest.mark.parametrize(
    ("value", "number"),
    [(3, 3), (3.0, 3), (11, nan), (10**400, nan), ("3", nan), (True, nan), (None, nan)],
)
def test_a_value_has_a_number_or_none(value, number):
    [parameter] = Space.of({"n": (0, 10)}).parameters
    np.testing.assert_equal(number_in(parameter, value), number)
