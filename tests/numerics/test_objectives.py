import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foretune.numerics.objectives import distinct_rows, pareto_front, scalarise
from foretune.numerics.transforms import copula_scores

NAN = np.nan


def test_the_average_of_scores_by_hand():
    losses = np.array([[1.0, 30.0], [2.0, 10.0], [3.0, 20.0]])
    low, middle, high = copula_scores(np.array([1.0, 2.0, 3.0]))
    expected = [(low + high) / 2, (middle + low) / 2, (high + middle) / 2]
    np.testing.assert_allclose(scalarise(losses, copula_scores), expected)


def test_pareto_front_by_hand():
    points = np.array([[1, 4], [2, 2], [2, 2], [3, 3], [4, 1], [1, 5], [NAN, 0]], dtype=float)
    np.testing.assert_array_equal(
        pareto_front(points), [True, True, True, False, True, False, False]
    )


@given(st.lists(st.tuples(*[st.integers(0, 3)] * 3), min_size=1, max_size=12))
def test_pareto_front_equals_its_definition(rows):
    points = np.array(rows, dtype=float)
    optimal = [not any((q <= p).all() and (q < p).any() for q in points) for p in points]
    np.testing.assert_array_equal(pareto_front(points), optimal)


@pytest.mark.parametrize("objectives", [1, 2, 3])
def test_pareto_front_of_many_points_equals_its_definition(objectives):
    """Of more points than are put in order at once, some of them equal and some failed."""
    rng = np.random.default_rng(objectives)
    points = rng.integers(-20, 20, (1500, objectives)) * np.array([1.0, 1e-3, 1e6])[:objectives]
    points[rng.random(1500) < 0.1, 0] = np.nan
    complete = np.isfinite(points).all(axis=1)
    below = (points[:, None] <= points[None, :]).all(axis=2)
    better = below & (points[:, None] < points[None, :]).any(axis=2)
    np.testing.assert_array_equal(pareto_front(points), complete & ~better.any(axis=0))


@pytest.mark.parametrize("objectives", [1, 2, 3])
def test_distinct_rows_are_those_of_numpy(objectives):
    points = np.random.default_rng(0).integers(-2, 3, (60, objectives)) * 0.5
    _, first, which, shared = np.unique(
        points, axis=0, return_index=True, return_inverse=True, return_counts=True
    )
    found = distinct_rows(points)
    for own, numpys in zip(found, (first, which.ravel(), shared), strict=True):
        np.testing.assert_array_equal(own, numpys)
