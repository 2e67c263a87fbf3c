import numpy as np
import pytest

from foretune.errors import MethodError, UsageError
from foretune.experience import Experience, Metric
from foretune.methods.zero_shot.jobs import RecordedJobs, look_up_jobs
from foretune.methods.zero_shot.table import loss_table
from tests.methods.zero_shot.examples import (
    SPACE,
    bowls,
    built,
    candidates,
    experience_of,
    jobs_of,
    unshared_experience,
)
from tests.refusals import refuses

NAN = np.nan


def test_a_job_costs_once():
    configs = candidates(5)
    jobs = jobs_of(bowls(configs, tasks=3), configs, budget=3)
    jobs.run(np.array([0, 1]), np.array([4, 4]))
    jobs.run(np.array([0, 2]), np.array([4, 4]))
    assert (jobs.used, jobs.remaining) == (3, 0)
    with refuses("jobs-within-budget", value=1, kind=UsageError):
        jobs.run(np.array([0]), np.array([0]))


def test_a_failed_job_counts_as_the_worst_of_its_task():
    losses = np.array([[0.2, NAN, 0.7], [NAN, NAN, NAN]])
    jobs = jobs_of(losses, candidates(3))
    jobs.run(np.array([0, 0, 0, 1]), np.array([0, 1, 2, 0]))
    known = jobs.results(np.arange(2), np.arange(3))
    np.testing.assert_allclose(known, [[0.2, 0.7, 0.7], [0.7, NAN, NAN]], rtol=1e-6)


def test_the_losses_of_a_table_are_red_to_the_ten_best():
    losses = np.array([[0.1, 0.2, 0.3], [0.01, 0.02, 0.03]])
    table = loss_table(experience_of(losses, candidates(3)))
    assert table.normalisation == "red"
    np.testing.assert_allclose(table.losses, [[-0.5, 0.0, 1 / 3]] * 2, atol=1e-6)


def test_scores_become_errors_and_other_metrics_ranks():
    accuracy = np.array([[0.9, 0.8, 0.7]])
    table = loss_table(experience_of(accuracy, candidates(3), name="accuracy"))
    np.testing.assert_allclose(table.losses, [[-0.5, 0.0, 1 / 3]], atol=1e-6)
    negative = loss_table(experience_of(np.array([[-3.0, 5.0, NAN]]), candidates(3)))
    assert negative.normalisation == "rank"
    np.testing.assert_allclose(negative.losses, [[0.0, 0.5]])
    # Not a score between 0 and 1 that was turned around: its least is best as it is.
    assert loss_table(experience_of(np.array([[-0.9, -0.2]]), candidates(2))).normalisation == (
        "rank"
    )


def test_the_last_measurement_of_the_highest_fidelity_counts():
    experience = Experience.build(
        SPACE,
        [Metric("loss")],
        ["a"],
        task_index=[0] * 5,
        configs=candidates(2),
        config_index=[0, 0, 0, 1, 1],
        values=np.array([[3.0], [4.0], [1.0], [7.0], [8.0]]),
        fidelity=[2, 2, 1, 2, 2],
    )
    np.testing.assert_array_equal(loss_table(experience, "none").losses, [[4.0, 8.0]])


def test_only_what_its_own_tasks_have_tried_is_in_the_table_of_a_part():
    whole = unshared_experience(tasks=3, each=5)
    held_out = whole.task("task 1").configs
    table = loss_table(whole.without(["task 1"]))
    assert len(table.configs) == 10
    assert not table.configs.isin(held_out).any()
    np.testing.assert_array_equal(
        table.losses, loss_table(whole).losses[[0, 2]][:, [*range(5), *range(10, 15)]]
    )


def test_missing_entries_fail_where_configurations_are_shared():
    losses = bowls(candidates(4), tasks=4)
    losses[0, 0] = NAN
    losses[1:, 3] = NAN  # tried on one task of four: no candidate
    jobs = look_up_jobs(loss_table(experience_of(losses, candidates(4))))
    assert len(jobs.candidates) == 3
    assert jobs.possible.all()
    jobs.run(np.array([0]), np.array([0]))
    assert jobs.used == 1


@pytest.mark.parametrize(("tasks", "least"), [(1, 1), (2, 2), (3, 2), (4, 2), (9, 5), (10, 5)])
def test_a_configuration_is_shared_when_half_of_the_tasks_have_tried_it(tasks, least):
    configs = candidates(5)
    losses = bowls(configs, tasks)
    losses[least:, 3] = NAN
    losses[least - 1 :, 4] = NAN
    shared = loss_table(experience_of(losses, configs)).select_common()
    assert shared.configs.dicts() == configs.take(np.arange(4)).dicts()


def test_one_configuration_that_all_have_tried_does_not_make_a_table_shared():
    losses = bowls(candidates(13), tasks=6)
    own = np.repeat(np.arange(6), 2) == np.arange(6)[:, None]
    losses[:, 1:][~own] = NAN
    jobs = look_up_jobs(loss_table(experience_of(losses, candidates(13))))
    assert len(jobs.candidates) == 13
    assert jobs.possible.sum() == 6 + 12


def test_missing_entries_are_no_jobs_where_nothing_is_shared():
    jobs = look_up_jobs(loss_table(unshared_experience(tasks=3, each=5)))
    assert jobs.possible.sum(axis=1).tolist() == [5, 5, 5]


def test_two_tasks_share_what_both_have_tried():
    alone = loss_table(unshared_experience(tasks=2, each=5))
    assert not alone.has_common_configs
    assert look_up_jobs(alone).possible.sum(axis=1).tolist() == [5, 5]
    losses = bowls(candidates(6), tasks=2)
    losses[1, 5] = NAN
    table = loss_table(experience_of(losses, candidates(6)))
    assert table.has_common_configs
    assert len(table.select_common().configs) == 5
    single = loss_table(experience_of(losses[1:], candidates(6)))
    assert single.has_common_configs


def test_an_experience_without_success_is_refused():
    experience = experience_of(np.array([[0.5, 0.6], [NAN, NAN]]), candidates(2))
    assert loss_table(experience).tasks == ("task 0",)
    with refuses("needs-experience", kind=MethodError):
        loss_table(None)


@pytest.mark.parametrize("infinite", [np.inf, -np.inf, 1e300])
@pytest.mark.filterwarnings("error")
def test_an_error_that_is_not_finite_is_a_job_that_failed(infinite):
    configs = candidates(8)
    where = configs.values[:, configs.space.names.index("where")]
    jobs = RecordedJobs(
        2, configs, lambda _, rows: np.where(where[rows] > 0.5, infinite, where[rows])
    )
    picks = built("obo", jobs, 2)
    assert np.isfinite(picks.losses).all()
    assert jobs.ran.all()
    assert np.isnan(jobs.losses[:, where > 0.5]).all()
    assert np.isfinite(jobs.results(np.arange(2), np.arange(len(configs)))).all()
