import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from foretune.numerics.objectives import pareto_front, scalarise
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
