import numpy as np
import pytest

from foretune.errors import ArtifactError, MethodError
from foretune.experience import Direction, Experience, Metric
from foretune.methods.contracts import Target
from foretune.methods.past_data import PastTask, check_space, past_tasks, require_experience
from foretune.numerics.transforms import copula_scores, standardise
from foretune.space import Space
from foretune.testing import problem
from foretune_lab.baselines.best_of_past import (
    best_of_each,
    load_configs,
    order_tasks,
    save_configs,
)
from tests.methods.baselines.examples import SPACE, small_experience
from tests.refusals import refuses


def test_tasks_without_a_success_are_left_out_and_losses_transformed_task_by_task():
    tasks = past_tasks(small_experience(), standardise)
    assert [list(task.rows) for task in tasks] == [[0, 1, 2, 3, 4], [1, 2, 3, 4], [0, 1, 3, 4]]
    for task in tasks:
        assert task.z.mean() == pytest.approx(0.0, abs=1e-12)
        assert task.z.std() == pytest.approx(1.0)
    scores = past_tasks(small_experience(), copula_scores)[1].z
    assert list(np.argsort(scores)) == [2, 1, 0, 3]


def test_several_objectives_are_averaged_after_the_transform():
    configs = SPACE.sample(3, seed=0)
    losses = {"error": np.array([[0.1, 0.2, 0.3]]), "seconds": np.array([[900.0, 100.0, 500.0]])}
    metrics = [Metric("error", Direction.MIN), Metric("seconds", Direction.MIN)]
    task = past_tasks(Experience.from_matrix(SPACE, configs, ["a"], metrics, losses), standardise)[
        0
    ]
    unit = np.sqrt(1.5)
    np.testing.assert_allclose(task.z, [0.0, -unit / 2, unit / 2], atol=1e-12)


def test_an_enormous_loss_leaves_the_others_in_order():
    configs = SPACE.sample(5, seed=0)
    matrix = np.array([[0.3, 0.2, 1e20, 0.1, 0.4]])
    past = Experience.from_matrix(
        SPACE, configs, ["a"], [Metric("error", Direction.MIN)], {"error": matrix}
    )
    [task] = order_tasks(past)
    assert task.best == 3
    assert list(np.argsort(task.z)) == [3, 1, 0, 4, 2]


def test_several_objectives_are_put_in_order_by_their_standardised_mean():
    configs = SPACE.sample(3, seed=0)
    losses = {"error": np.array([[0.1, 0.2, 0.9]]), "seconds": np.array([[900.0, 100.0, 500.0]])}
    metrics = [Metric("error", Direction.MIN), Metric("seconds", Direction.MIN)]
    past = Experience.from_matrix(SPACE, configs, ["a"], metrics, losses)
    expected = past_tasks(past, standardise)[0]
    np.testing.assert_array_equal(order_tasks(past)[0].z, expected.z)


def test_the_best_of_each_task_come_once_and_the_most_widely_good_first():
    # Shares of better evaluations: row 1 has 0, 2/4, 0 and row 3 has 1/5, 0, 2/4.
    assert [task.best for task in past_tasks(small_experience(), standardise)] == [1, 3, 1]
    assert list(best_of_each(past_tasks(small_experience(), standardise))) == [1, 3]


def test_a_configuration_counts_as_middling_where_it_was_not_evaluated():
    known_everywhere = [PastTask(np.array([5, 6]), np.array([0.0, 1.0]))] * 2
    known_once = PastTask(np.array([2, 3]), np.array([0.0, 1.0]))
    assert list(best_of_each([known_once, *known_everywhere])) == [5, 2]


def test_a_subsample_keeps_evaluations_together():
    task = PastTask(np.arange(10), np.arange(10) / 2.0)
    part = task.subsample(4, np.random.default_rng(0))
    assert len(np.unique(part.rows)) == 4
    np.testing.assert_array_equal(part.z, part.rows / 2.0)
    assert task.subsample(10, np.random.default_rng(0)) is task


def test_experience_that_teaches_nothing_is_refused():
    with refuses("no-success", value=1, kind=MethodError):
        past_tasks(small_experience().only(["hopeless"]), standardise)
    with refuses("needs-experience", kind=MethodError):
        require_experience(None)


def test_another_space_is_refused_and_both_are_named():
    other = Space.of({"width": (0.0, 11.0), "depth": (1, 9), "kind": ["plain", "fancy", "odd"]})
    check_space(SPACE, Target(Space.from_json(SPACE.to_json())))
    with pytest.raises(MethodError, match=f"{SPACE.fingerprint[:8]}.*{other.fingerprint[:8]}"):
        check_space(SPACE, Target(other))


@pytest.mark.parametrize("kind", ["flat", "cash", "pipeline"])
def test_saved_configurations_come_back_exactly(kind, tmp_path):
    configs = problem(kind).pool
    save_configs(tmp_path / "a", "some-kind", configs)
    assert load_configs(tmp_path / "a", "some-kind") == configs
    with pytest.raises(ArtifactError, match="some-kind"):
        load_configs(tmp_path / "a", "other-kind")
