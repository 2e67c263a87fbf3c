import numpy as np

from foretune_lab.baselines.agreement import epanechnikov, rank_distances


def test_rank_distances_by_hand():
    z = np.array([1.0, 2.0, 3.0])
    predicted = np.array(
        [
            [10.0, 20.0, 30.0],  # the same order
            [20.0, 10.0, 30.0],  # one of three pairs swapped
            [30.0, 20.0, 10.0],  # all swapped
            [5.0, 5.0, 9.0],  # a tie disagrees in one of the two directions of one pair
        ]
    )
    np.testing.assert_allclose(rank_distances(z, predicted), [0.0, 1 / 3, 1.0, 1 / 6])


def test_without_a_pair_every_past_task_agrees():
    assert list(rank_distances(np.array([1.0]), np.array([[3.0], [4.0]]))) == [0.0, 0.0]


def test_weights_fall_to_nothing_at_the_bandwidth():
    weights = epanechnikov(np.array([0.0, 0.005, 0.01, 0.5]), 0.01)
    np.testing.assert_allclose(weights, [0.75, 0.75 * 0.75, 0.0, 0.0])
    np.testing.assert_allclose(epanechnikov(np.array([0.05]), 0.1), [0.75 * 0.75])
