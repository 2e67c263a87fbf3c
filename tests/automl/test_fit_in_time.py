"""The model of a job that must end in time, although a pipeline hangs."""

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from foretune._base.time_budget import TimeBudget
from foretune.automl.estimators.fitted_pipeline import Member, refit
from foretune.automl.final_model.fit import FinalModelRequest, fit_final_model, rows_in_time
from foretune.automl.plan import FitOptions, make_plan
from foretune.errors import UsageError
from foretune.experience import Status
from foretune.experience.trial import Trial
from foretune.tables.table import Table
from foretune.tables.target import Task

from .samples import mixed_table

SECONDS = 600.0
LEFT = 3.0
MODEL_END = 0.95 * SECONDS


class HangsOnManyRows:
    """Takes the place of what fits a pipeline: more rows than the search has never end."""

    def __call__(self, config: Mapping[str, object], table: Table, *, seed: int) -> Member:
        if len(table) > 90:
            time.sleep(600.0)
        return refit(config, table, seed=seed)


@pytest.fixture
def request_of_many_rows(tmp_path: Path) -> FinalModelRequest:
    """A model of ten times the rows of a trial, which processes fit."""
    table = mixed_table(Task.CLASSIFICATION, 900)
    options = FitOptions(only=("knn", "lda"))
    plan = make_plan(table.sample(90, seed=0), options)
    configs = plan.space.sample(2, seed=0).dicts()
    trials = [
        Trial(number, config, Status.DONE, {"log_loss": 0.5 + number}, 0.5)
        for number, config in enumerate(configs)
    ]
    return FinalModelRequest(
        plan=plan,
        table=table,
        target="class",
        trials=tuple(trials),
        clock=TimeBudget(SECONDS),
        must_end=True,
        processes=1,
        folder=tmp_path,
        contention=1.0,
    )


def with_time_left(seconds: float) -> TimeBudget:
    """A clock of which so many seconds are left for the model."""
    return TimeBudget(SECONDS, time.monotonic() + seconds - MODEL_END)


def test_a_pipeline_that_hangs_leaves_the_model_of_the_rows_of_the_search(
    request_of_many_rows: FinalModelRequest,
) -> None:
    began, request = time.monotonic(), request_of_many_rows
    # What is expected to take long is fitted by a process, where it hangs.
    slow = tuple(replace(trial, seconds=2.0) for trial in request.trials)
    made = fit_final_model(
        replace(request, clock=with_time_left(LEFT), trials=slow, fit=HangsOnManyRows())
    )
    assert time.monotonic() - began < 60.0
    assert "90 of 900 rows" in made.remark
    assert len(made.model.predict_rows(request.table.x)) == 900
    assert list(request.folder.iterdir()) == []


def test_without_any_time_no_pipeline_is_fitted(request_of_many_rows: FinalModelRequest) -> None:
    with pytest.raises(UsageError):
        fit_final_model(replace(request_of_many_rows, clock=with_time_left(-0.05 * SECONDS)))


def test_the_best_learns_from_as_many_rows_as_there_is_time_for(
    request_of_many_rows: FinalModelRequest,
) -> None:
    """A fold of 72 rows took 1 s, so 900 rows take 12.5 s; of 9 s, 70% are for 454 rows."""
    slow = tuple(replace(trial, seconds=5.0) for trial in request_of_many_rows.trials)
    request = replace(request_of_many_rows, trials=slow)
    rows = rows_in_time(replace(request, clock=with_time_left(9.0)))
    assert rows == pytest.approx(453.6, rel=0.02)
    assert rows_in_time(replace(request, clock=with_time_left(90.0))) is None
