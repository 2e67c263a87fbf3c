"""How long a model takes, going by trials."""

import math
import time

import numpy as np
import pytest

from foretune._base.time_budget import TimeBudget
from foretune.automl.final_model.fit import model_deadline
from foretune.automl.fit_time_model import FitTimeModel
from foretune.automl.plan import FitOptions, FitPlan, make_plan
from foretune.automl.search_budget import search_budget
from foretune.experience import Status
from foretune.experience.trial import Trial
from foretune.tables.table import Table
from foretune.tables.target import Task

from .samples import mixed_table


@pytest.fixture(scope="module")
def table() -> Table:
    return mixed_table(Task.CLASSIFICATION)


@pytest.fixture(scope="module")
def plan(table: Table) -> FitPlan:
    return make_plan(table, FitOptions())


def trial(seconds: float, *, estimator: str = "knn", loss: float = 0.0) -> Trial:
    return Trial(0, {"estimator": estimator}, Status.DONE, {"log_loss": loss}, seconds)


def test_folds_share_the_seconds_of_a_trial(plan: FitPlan, table: Table) -> None:
    """Five folds learn from four fifths each: ten seconds are two a fold, 2.5 for all rows."""
    assert len(plan.protocol.splits(plan.table)) == 5
    assert FitTimeModel.of(plan, rows=len(table)).seconds(trial(10.0)) == pytest.approx(2.5)


def test_a_held_out_third_was_not_learnt_from(table: Table) -> None:
    many = table.rows(np.arange(3000) % len(table))
    split_once = make_plan(many, FitOptions(refit=True))
    assert FitTimeModel.of(split_once, rows=3000).seconds(trial(10.0)) == pytest.approx(15.0)


@pytest.mark.parametrize(("estimator", "seconds"), [("knn", 25.0), ("svm", 312.5)])
def test_more_rows_take_more_time(
    plan: FitPlan, table: Table, estimator: str, seconds: float
) -> None:
    """12.5 times the rows of a fold of two seconds; support vector machines by the square."""
    pace = FitTimeModel.of(plan, rows=10 * len(table))
    assert pace.seconds(trial(10.0, estimator=estimator)) == pytest.approx(seconds)


def test_a_model_takes_the_best_and_that_one_again(plan: FitPlan, table: Table) -> None:
    """The second time is for what its columns are worth; what is not known counts nothing."""
    trials = [trial(40.0, loss=3.0), trial(4.0, loss=1.0), trial(8.0, loss=2.0)]
    trials += [trial(math.nan, loss=2.5), Trial(4, {}, Status.RUNNING, {}, math.nan)]
    pace = FitTimeModel.of(plan, rows=len(table))
    assert pace.model_seconds(trials, members=1) == pytest.approx(2.0)
    assert pace.model_seconds(trials, members=3) == pytest.approx(4.0)
    assert pace.model_seconds(trials, members=5) == pytest.approx(14.0)
    assert pace.model_seconds([], members=5) == 0.0


def test_slow_pipelines_are_fitted_side_by_side(plan: FitPlan, table: Table) -> None:
    """Three seconds to start, then half of 10 + 20 + 30, or as long as the longest."""
    trials = [trial(4.0 * seconds, loss=seconds) for seconds in (10.0, 20.0, 30.0)]
    pace = FitTimeModel.of(plan, rows=len(table))
    assert pace.model_seconds(trials, members=3) == pytest.approx(60.0 + 10.0)
    assert pace.model_seconds(trials, members=3, workers=2) == pytest.approx(3.0 + 30.0 + 10.0)
    assert pace.model_seconds(trials, members=3, workers=8) == pytest.approx(3.0 + 30.0 + 10.0)
    assert pace.model_seconds(trials, members=2, workers=2) == pytest.approx(3.0 + 20.0 + 10.0)
    assert pace.model_seconds([trial(16.0)], members=3, workers=2) == pytest.approx(8.0)


def test_at_most_half_of_the_time_is_left_to_the_model(plan: FitPlan, table: Table) -> None:
    now = time.monotonic()
    options, clock = FitOptions(seconds=100.0), TimeBudget(100.0, now - 40.0)
    found = search_budget(plan, options, clock, rows=len(table), workers=1, must_end=False)
    assert found.trials is None
    assert found.seconds == pytest.approx(60.0, abs=5.0)
    assert found.reserve([]) == 0.0
    assert found.reserve([trial(20.0)]) == pytest.approx(10.0)
    assert found.reserve([trial(2000.0)]) == pytest.approx(0.5 * found.seconds)
    # With a quicker one, the slow one would be passed over.
    assert found.reserve([trial(2000.0), trial(20.0, loss=1.0)]) == pytest.approx(10.0)


def test_a_model_that_must_be_ready_has_a_tenth_of_the_time_at_least(
    plan: FitPlan, table: Table
) -> None:
    options, clock = FitOptions(seconds=100.0), TimeBudget(100.0)
    found = search_budget(plan, options, clock, rows=len(table), workers=1, must_end=True)
    assert found.seconds == pytest.approx(95.0, abs=5.0)  # a twentieth is for saving
    assert found.reserve([]) == 0.0
    assert found.reserve([trial(0.2)]) == pytest.approx(10.0)
    assert found.reserve([trial(2000.0)]) == pytest.approx(0.5 * found.seconds)


def test_a_trial_of_unknown_time_counts_as_quick(plan: FitPlan, table: Table) -> None:
    pace, slow, unknown = FitTimeModel.of(plan, rows=len(table)), trial(40.0), trial(math.nan)
    assert pace.select_quick([slow, unknown], 5.0) == [unknown]
    assert pace.select_quick([slow, trial(80.0)], 5.0) == [slow]  # the quickest, at least
    assert pace.select_quick([slow], 10.0) == [slow]


def test_without_a_limit_of_time_nothing_is_left(plan: FitPlan, table: Table) -> None:
    options, clock = FitOptions(trials=7), TimeBudget()
    found = search_budget(plan, options, clock, rows=len(table), workers=1, must_end=False)
    assert (found.trials, found.seconds, found.reserve) == (7, None, None)


@pytest.mark.parametrize(("gone", "left"), [(20.0, 80.0), (70.0, 50.0), (200.0, 50.0)])
def test_the_model_has_what_is_left_and_at_least_half_of_the_time(gone: float, left: float) -> None:
    now = time.monotonic()
    until = model_deadline(TimeBudget(100.0, now - gone))
    assert until - now == pytest.approx(left, abs=5.0)
    assert model_deadline(TimeBudget()) == math.inf


def test_workers_fit_many_more_rows(plan: FitPlan, table: Table) -> None:
    quick = [trial(0.1)]
    assert not FitTimeModel.of(plan, rows=len(table)).needs_workers(quick)
    assert FitTimeModel.of(plan, rows=2 * len(table)).needs_workers(quick)
