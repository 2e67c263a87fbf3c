from dataclasses import replace

import numpy as np
import pytest

from foretune_lab.bench import measures
from foretune_lab.bench.pools import PoolFacts
from foretune_lab.bench.results import curves_of
from tests.lab.bench.tables import facts, results

NAN = np.nan


def curves():
    return curves_of(
        results(
            {
                ("t1", "a", 0): [1.0, 0.5],
                ("t1", "a", 1): [0.0, 1.0],
                ("t2", "a", 0): [NAN, 4.0],
                ("t2", "a", 1): [2.0, 2.0],
            },
            {"t1": facts(0.0, 1.0, 2), "t2": facts(2.0, 6.0, 2)},
        )
    )


def test_distances_are_scaled_by_each_tasks_pool():
    np.testing.assert_array_equal(
        measures.distances(curves())[0], [[[1.0, 0.5], [0.0, 0.0]], [[1.0, 0.5], [0.0, 0.0]]]
    )
    np.testing.assert_array_equal(measures.random_distances(curves()), [[0.5, 0.0], [0.5, 0.0]])


def test_random_search_is_measured_over_as_many_trials():
    longer = replace(facts(0.0, 1.0, 2), random=np.array([0.5, 0.25, 0.0]))
    pools = replace(curves(), pools=(longer, longer))
    np.testing.assert_array_equal(measures.random_distances(pools), [[0.5, 0.25]] * 2)


def test_improvements_by_hand():
    # The mean distances are 0.5 and 0.25 on both tasks, those of random search 0.5 and 0.5.
    halves = replace(facts(0.0, 1.0, 2), random=np.array([0.5, 0.5]))
    fours = replace(facts(2.0, 6.0, 2), random=np.array([4.0, 4.0]))
    steady = replace(curves(), pools=(halves, fours))
    np.testing.assert_allclose(measures.improvements(steady), [[0.25, 0.25]])


def test_improvement_of_a_found_minimum_is_free_of_rounding():
    low = 0.1 + 0.2
    runs = {("t1", "a", seed): [low, low] for seed in range(7)}
    tiny = PoolFacts(9, low, 1.0, np.array([0.5, low + 1e-15]), np.array([[low]]), np.array([1.0]))
    np.testing.assert_array_equal(
        measures.improvements(curves_of(results(runs, {"t1": tiny}))), [[1.0]]
    )


def test_losses_that_are_never_negative_are_errors():
    # The failed first trial counts as the worst of its pool.
    np.testing.assert_array_equal(measures.errors(curves())[0, 1], [[6.0, 4.0], [2.0, 2.0]])


def test_the_error_of_an_accuracy_is_what_is_missing_to_one():
    runs = {("t1", "a", 0): [-0.75, -0.9]}
    accuracy = curves_of(results(runs, {"t1": facts(-0.9, -0.5, 2)}, direction="max"))
    np.testing.assert_allclose(measures.errors(accuracy)[0, 0, 0], [0.25, 0.1])


@pytest.mark.parametrize(
    ("direction", "low", "high"), [("min", -0.9, -0.1), ("max", -90.0, -0.1), ("max", -0.9, 0.5)]
)
def test_other_metrics_are_no_errors(direction, low, high):
    runs = {("t1", "a", 0): [-0.5, -0.5]}
    other = curves_of(results(runs, {"t1": facts(low, high, 2)}, direction=direction))
    assert measures.errors(other) is None


def test_missing_hypervolume_is_a_share_of_the_pools():
    pool = PoolFacts(
        3, 0.0, 2.0, np.zeros(2), np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([2.0, 2.0])
    )
    one = curves_of(results({("t1", "a", 0): [1.0, 0.0]}))
    both = replace(
        one,
        settings=replace(one.settings, objectives=("x", "y")),
        pools=(pool,),
        values=np.array([[[[[1.0, 1.0], [0.0, 1.0]]]]]),
    )
    np.testing.assert_allclose(measures.missing_hypervolume(both)[0, 0, 0], [2 / 3, 1 / 3])
    np.testing.assert_array_equal(measures.scores(both), measures.missing_hypervolume(both))


def test_nothing_is_missing_of_a_pool_without_hypervolume():
    point = np.array([[1.0, 1.0]])
    one = curves_of(results({("t1", "a", 0): [1.0, 1.0]}))
    both = replace(
        one,
        settings=replace(one.settings, objectives=("x", "y")),
        pools=(PoolFacts(1, 1.0, 1.0, np.ones(2), point, point[0]),),
        values=np.ones((1, 1, 1, 2, 2)),
    )
    np.testing.assert_array_equal(measures.missing_hypervolume(both), np.zeros((1, 1, 1, 2)))


def test_scores_of_one_objective_are_distances():
    np.testing.assert_array_equal(measures.scores(curves()), measures.distances(curves()))
