import numpy as np

from foretune_lab.bench.comparison import compare_methods, compare_over_suites
from foretune_lab.bench.results import curves_of
from tests.lab.bench.tables import results


def suite(name, losses):
    """{method: losses of each task's one run}, with two seeds alike."""
    runs = {
        (f"{name}{task}", method, seed): trials
        for method, tasks in losses.items()
        for task, trials in enumerate(tasks)
        for seed in (0, 1)
    }
    return curves_of(results(runs, suite=name), list(losses))


A = suite("x", {"a": [[0.1, 0.1], [0.2, 0.2]], "b": [[0.3, 0.0], [0.4, 0.4]]})
B = suite("y", {"b": [[0.1, 0.1, 0.0]], "a": [[0.5, 0.0, 0.0]], "c": [[0.9, 0.9, 0.9]]})


def test_one_suite_is_compared_on_its_tasks():
    found = compare_methods(A)
    np.testing.assert_array_equal(found.ranks[0], [[1, 2], [1, 1]])
    np.testing.assert_allclose(found.scores[1], [[0.3, 0.0], [0.4, 0.4]])
    assert (found.name, found.tasks, found.trials, found.testable) == ("x", 2, 2, True)


def test_suites_together_count_every_task_alike_for_the_methods_they_share():
    found = compare_over_suites([A, B])
    assert found.methods == ("a", "b")
    np.testing.assert_array_equal(found.ranks[0], [[1, 2], [1, 1], [2, 1]])
    np.testing.assert_allclose(found.scores[0], [[0.1, 0.1], [0.2, 0.2], [0.5, 0.0]])
    np.testing.assert_allclose(found.average_ranks().mean, [[4 / 3, 4 / 3], [5 / 3, 5 / 3]])
    assert (found.tasks, found.trials) == (3, 2)


def test_one_suite_or_one_shared_method_is_no_overall_comparison():
    assert compare_over_suites([A]) is None
    alone = suite("z", {"a": [[0.1, 0.1]]})
    assert compare_over_suites([A, alone]) is None


def test_the_test_shows_the_average_ranks_of_the_table():
    """Of each seed: where one is far off, the mean over seeds ranks otherwise."""
    runs = {
        (f"x{task}", method, seed): [loss]
        for task in range(4)
        for method, losses in {"a": [0.1, 0.1, 0.9], "b": [0.2, 0.2, 0.2]}.items()
        for seed, loss in enumerate(losses)
    }
    found = compare_methods(curves_of(results(runs), ["a", "b"]))
    after = found.after(1)
    assert after.methods == ("a", "b")
    np.testing.assert_allclose(after.ranks, found.average_ranks().mean[:, 0])
    np.testing.assert_allclose(after.ranks, [4 / 3, 5 / 3])
    assert after.p_values[0, 1] == 0.125  # of the means, of which all favour b


def test_methods_that_met_the_same_losses_in_another_order_tie():
    rng = np.random.default_rng(0)
    runs = {}
    for task in range(20):
        losses = rng.random(3)
        for method, order in {"a": [0, 1, 2], "b": [2, 0, 1]}.items():
            for seed, place in enumerate(order):
                runs[f"x{task}", method, seed] = [losses[place]]
    found = compare_methods(curves_of(results(runs), ["a", "b"]))
    np.testing.assert_array_equal(found.scores[0], found.scores[1])
    assert found.after(1).p_values[0, 1] == 1.0
