from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foretune_lab.bench import metrics

NAN = np.nan


def test_best_so_far_skips_failures():
    best = metrics.best_so_far(np.array([[NAN, 3.0, NAN, 2.0, 5.0], [1.0, 4.0, 0.5, 0.5, NAN]]))
    np.testing.assert_array_equal(best, [[NAN, 3.0, 3.0, 2.0, 2.0], [1.0, 1.0, 0.5, 0.5, 0.5]])


def brute_force_minimum(pool, trials):
    orders = np.array(list(permutations(pool)))
    return np.minimum.accumulate(orders, axis=1).mean(axis=0)[:trials]


def test_expected_random_minimum_by_hand():
    # Two draws of {1, 2, 4}: the pairs' minima are 1, 1, 2.
    expected = metrics.random_search_minimum(np.array([4.0, 1.0, 2.0]), 3)
    np.testing.assert_allclose(expected, [7 / 3, 4 / 3, 1.0])


@given(st.lists(st.sampled_from([-1.5, 0.0, 0.25, 0.25, 3.0, 10.0]), min_size=1, max_size=6))
def test_expected_random_minimum_equals_enumeration_with_ties(pool):
    expected = metrics.random_search_minimum(np.array(pool), len(pool))
    np.testing.assert_allclose(expected, brute_force_minimum(pool, len(pool)), atol=1e-12)


def test_expected_random_minimum_agrees_with_simulation():
    rng = np.random.default_rng(0)
    pool = rng.lognormal(size=200)
    draws = rng.permuted(np.tile(pool, (4000, 1)), axis=1)[:, :50]
    simulated = np.minimum.accumulate(draws, axis=1)
    error = simulated.std(axis=0) / np.sqrt(len(draws))
    expected = metrics.random_search_minimum(pool, 50)
    assert (np.abs(simulated.mean(axis=0) - expected) < 4.5 * error).all()


def test_expected_random_minimum_of_a_large_pool():
    # For the losses 1..n the expected minimum of t draws is (n + 1) / (t + 1).
    n = 62_208
    expected = metrics.random_search_minimum(np.arange(1.0, n + 1), 1000)
    np.testing.assert_allclose(expected, (n + 1) / np.arange(2, 1002), rtol=1e-10)


def test_expected_random_minimum_beyond_the_pool_stays_at_the_minimum():
    expected = metrics.random_search_minimum(np.array([2.0, 1.0]), 4)
    np.testing.assert_allclose(expected, [1.5, 1.0, 1.0, 1.0])


def test_a_failed_draw_counts_as_the_worst_of_the_pool():
    expected = metrics.random_search_minimum(np.array([0.0, NAN, 1.0, NAN]), 2)
    np.testing.assert_allclose(expected, [0.75, 0.5])


def test_distance_to_minimum_by_hand():
    pool = np.array([2.0, 4.0, NAN, 6.0])
    distance = metrics.distance_to_minimum(np.array([[6.0, 3.0], [NAN, 2.0]]), pool)
    np.testing.assert_allclose(distance, [[1.0, 0.25], [1.0, 0.0]])


def test_distance_on_a_constant_pool_is_zero():
    np.testing.assert_array_equal(
        metrics.distance_to_minimum(np.array([3.0, NAN]), np.full(4, 3.0)), [0.0, 0.0]
    )


def test_average_distance_to_minimum_is_the_mean_over_tasks():
    distances = np.array([[1.0, 0.5], [0.5, 0.1]])
    np.testing.assert_allclose(metrics.average_distance_to_minimum(distances), [0.75, 0.3])


def test_improvement_over_random_by_hand():
    random = np.array([0.8, 0.4, 0.2])
    method = np.array([0.4, 0.4, 0.0])
    assert metrics.improvement_over_random(method, random) == pytest.approx((0.5 + 0.0 + 1.0) / 3)
    assert metrics.improvement_over_random(2 * random, random) == pytest.approx(-1.0)


def test_improvement_once_random_search_is_done():
    assert metrics.improvement_over_random(np.array([0.5, 0.0]), np.array([1.0, 0.0])) == 0.25
    assert metrics.improvement_over_random(np.array([0.5, 0.1]), np.array([1.0, 0.0])) == 0.25
    by_task = metrics.improvement_over_random(
        np.array([[[0.5, 0.1], [0.0, 0.0]]]), np.array([[1.0, 0.0], [0.0, 0.0]])
    )
    np.testing.assert_array_equal(by_task, [[0.25, 0.0]])


def test_average_ranks_by_hand():
    best = np.array(
        [
            [[[1.0, 1.0]], [[2.0, 1.0]]],  # method a: task 1, task 2, one seed, two trials
            [[[2.0, 1.0]], [[1.0, 0.5]]],
            [[[3.0, 0.0]], [[NAN, NAN]]],
        ]
    )
    ranks = metrics.rank_curves(metrics.ranks_by_task(best))
    np.testing.assert_allclose(ranks.mean, [[1.5, 2.25], [1.5, 1.75], [3.0, 2.0]])
    # a's ranks at the first trial are 1 and 2: t(0.975, 1) = 12.7 times 0.5, cut at 1 and 3.
    assert (ranks.low[0, 0], ranks.high[0, 0]) == (1.0, 3.0)
    assert (ranks.low[2, 0], ranks.high[2, 0]) == (3.0, 3.0)


def test_rank_bands_are_students_t_over_tasks():
    rng = np.random.default_rng(3)
    best = rng.normal(size=(4, 12, 5, 2))
    ranks = metrics.rank_curves(metrics.ranks_by_task(best))
    by_task = np.argsort(np.argsort(best, axis=0), axis=0).mean(axis=2)[2, :, 1] + 1
    t_of_11_degrees = 2.200985
    half = t_of_11_degrees * by_task.std(ddof=1) / np.sqrt(12)
    assert ranks.high[2, 1] - ranks.mean[2, 1] == pytest.approx(half, rel=1e-6)


def test_rank_bands_of_one_task_are_over_seeds():
    best = np.array([[[[1.0], [2.0], [1.0]]], [[[2.0], [1.0], [2.0]]]])
    ranks = metrics.rank_curves(metrics.ranks_by_task(best))
    np.testing.assert_allclose(ranks.mean[:, 0], [4 / 3, 5 / 3])
    assert ranks.low[0, 0] < ranks.mean[0, 0] < ranks.high[0, 0]


def test_seeds_of_a_lone_task_can_be_averaged():
    best = np.array([[[[1.0], [2.0], [1.0]]], [[[2.0], [1.0], [2.0]]]])
    ranks = metrics.ranks_by_task(best, seeds_as_tasks=False)
    np.testing.assert_allclose(ranks, [[[4 / 3]], [[5 / 3]]])


def test_a_bootstrap_band_is_near_students_and_stays_among_the_samples():
    samples = np.random.default_rng(0).gamma(4.0, size=(1, 60, 1))
    band = metrics.bootstrap_band(samples)
    mean, half = samples.mean(), 2.001 * samples.std(ddof=1) / np.sqrt(60)
    assert band.mean[0, 0] == pytest.approx(mean)
    assert band.low[0, 0] == pytest.approx(mean - half, abs=0.15 * half)
    assert band.high[0, 0] == pytest.approx(mean + half, abs=0.15 * half)
    skewed = metrics.bootstrap_band(np.array([[[0.01], [0.01], [0.01], [1.0]]]))
    assert skewed.low[0, 0] >= 0.01


def test_hypervolume_by_hand():
    reference = np.array([5.0, 5.0])
    points = np.array([[1.0, 4.0], [2.0, 2.0], [4.0, 1.0], [3.0, 3.0], [6.0, 0.0]])
    # Slices by the second objective: 1 x 1, 2 x 3, 1 x 4.
    assert metrics.hypervolume(points, reference) == 11.0
    assert metrics.hypervolume(np.empty((0, 2)), reference) == 0.0
    assert metrics.hypervolume(np.array([[3.0], [1.0], [6.0]]), np.array([5.0])) == 4.0
    cube = np.array([[1.0, 1.0, 2.0], [2.0, 2.0, 1.0]])
    assert metrics.hypervolume(cube, np.array([3.0, 3.0, 3.0])) == 4.0 + 2.0 - 1.0


@given(st.lists(st.tuples(*[st.integers(0, 4)] * 3), min_size=1, max_size=8))
def test_hypervolume_counts_the_dominated_cells_of_a_grid(rows):
    points = np.array(rows, dtype=float)
    cells = np.stack(np.meshgrid(*[np.arange(4)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    dominated = (points[None] <= cells[:, None]).all(axis=2).any(axis=1).sum()
    assert metrics.hypervolume(points, np.full(3, 4.0)) == dominated


def test_hypervolume_error_by_hand():
    front = np.array([[0.0, 1.0], [1.0, 0.0]])
    history = np.array([[1.0, 1.0], [NAN, NAN], [0.0, 1.0], [2.0, 2.0], [1.0, 0.0]])
    errors = metrics.hypervolume_error(history, front, np.array([2.0, 2.0]))
    np.testing.assert_allclose(errors, [2.0, 2.0, 1.0, 1.0, 0.0])


def test_nothing_is_missing_where_more_was_found_than_the_pool_has():
    front, better = np.array([[1.0, 1.0]]), np.array([[0.5, 0.5]])
    assert metrics.hypervolume_error(better, front, np.array([2.0, 2.0])).tolist() == [0.0]
