from math import nan

import numpy as np
import pytest

from foretune.experience.alignment.translation import draw_values, number_in
from foretune.space import Space


def test_values_are_drawn_from_those_that_are_recorded_or_from_the_range():
    number = Space.of({"n": (0, 10)}).parameters[0]
    rows = np.arange(1000.0)[:, None]
    recorded = np.array([4.0, np.nan, 4.0, 4.0, 6.0])
    drawn, counts = np.unique(draw_values(number, recorded, rows), return_counts=True)
    assert drawn.tolist() == [4.0, 6.0]
    assert 700 < counts[0] < 800  # three of the four values are 4
    of_range, counts = np.unique(draw_values(number, recorded[1:2], rows), return_counts=True)
    assert of_range.tolist() == list(range(11))
    assert counts.min() > 60


def test_closeness_to_a_bound_is_measured_on_its_scale():
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
