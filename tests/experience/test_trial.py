"""The record of one trial, and the views that are derived from it."""

import math

import numpy as np
import pytest

from foretune.errors import ExperienceError, UsageError
from foretune.experience import Direction, Evaluation, Experience, Metric, Status, status_of
from foretune.experience.evaluation_rows import build_experience, list_evaluations
from foretune.experience.journal import Journal
from foretune.experience.trial import FINAL_STATUSES, Trial, best_first
from foretune.space import Space
from tests.refusals import refuses

SPACE = Space.of({"x": (0.0, 1.0)})
LOSS, SCORE = Metric("loss"), Metric("score", Direction.MAX)
DONE = Trial(0, {"x": 0.25}, Status.DONE, {"loss": 0.5, "score": 2.0, "size": 7.0}, 1.5)
FAILED = Trial(1, {"x": 0.5}, Status.FAILED, {}, 3.0, "it broke", "random")
RUNNING = Trial(2, {"x": 0.75}, chosen_by="expected improvement")


def test_a_trial_runs_until_it_ends_with_a_final_status() -> None:
    assert [trial.is_over for trial in (DONE, FAILED, RUNNING)] == [True, True, False]
    assert FINAL_STATUSES == (Status.DONE, Status.FAILED, Status.TIMEOUT, Status.STOPPED)
    assert math.isnan(RUNNING.seconds)


def test_losses_are_minimised_and_missing_values_are_nan() -> None:
    assert DONE.losses([LOSS, SCORE]) == (0.5, -2.0)
    assert np.isnan(FAILED.losses([LOSS, SCORE])).all()


def test_a_report_gets_the_values_of_its_metrics_only() -> None:
    shown = DONE.select_values(["score", "unknown"])
    assert shown.values == {"score": 2.0}
    assert (shown.number, shown.config, shown.status) == (0, {"x": 0.25}, Status.DONE)


def test_the_best_comes_first_and_of_equals_the_earlier() -> None:
    equal = [Trial(n, {}, Status.DONE, {"score": s}) for n, s in enumerate([1.0, 2.0, 2.0])]
    assert [trial.number for trial in best_first([*equal, FAILED, RUNNING], SCORE)] == [1, 2, 0]


def test_journal_and_experience_say_the_same_of_a_trial(tmp_path) -> None:
    rows = [trial.evaluation("task") for trial in (DONE, FAILED)]
    journal = Journal(tmp_path / "trials.jsonl")
    for row in rows:
        journal.add(row)
    assert Journal(journal.path).evaluations == rows
    experience = build_experience(SPACE, [LOSS, SCORE], rows)
    experience.save(tmp_path / "runs.parquet")
    again = list_evaluations(Experience.open(tmp_path / "runs.parquet"))
    assert again == [
        Evaluation("task", {"x": 0.25}, {"loss": 0.5, "score": 2.0}, Status.DONE, 1.5),
        Evaluation("task", {"x": 0.5}, {}, Status.FAILED, 3.0),
    ]


def test_tasks_keep_the_order_that_is_asked_for() -> None:
    rows = [DONE.evaluation(task) for task in ("b", "a", "c")]
    assert build_experience(SPACE, [LOSS], rows).tasks == ("b", "a", "c")
    assert build_experience(SPACE, [LOSS], rows, tasks=["c", "a"]).tasks == ("c", "a", "b")


@pytest.mark.parametrize("given", ["running", Status.RUNNING, -1])
def test_only_a_final_status_is_told(given) -> None:
    with pytest.raises(UsageError):
        status_of(given)


def test_an_experience_holds_no_running_trial() -> None:
    with pytest.raises(ExperienceError):
        build_experience(SPACE, [LOSS], [DONE.evaluation("a"), RUNNING.evaluation("a")])


def test_a_journal_with_a_running_trial_is_refused(tmp_path) -> None:
    path = tmp_path / "trials.jsonl"
    Journal(path).add(RUNNING.evaluation("a"))
    with refuses("broken-journal-line", value=1):
        Journal(path)
