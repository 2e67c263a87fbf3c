"""The model of a job that must end in time, although a pipeline hangs."""

import time
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from foretune.automl.final_model import worker_pool
from foretune.automl.first_model import fit_first_model
from foretune.automl.job import FitFolder, Job
from foretune.automl.plan import FitOptions, make_plan
from foretune.errors import UsageError
from foretune.tables.target import Task

from .samples import mixed_table

SECONDS = 600.0
LEFT = 3.0
MODEL_END = 0.95 * SECONDS


@dataclass(frozen=True)
class HangingFit:
    """Takes the place of what fits a pipeline in a worker process."""

    table: Path
    seed: int

    def __call__(self, config: object) -> None:
        time.sleep(600.0)


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Job:
    """A job on ten times the rows of a trial, for which processes fit the model."""
    monkeypatch.setenv("FORETUNE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(worker_pool, "TableFileFit", HangingFit)
    wishes = FitOptions(trials=2, seconds=SECONDS, only=("knn", "lda"), method="random", ensemble=1)
    table = mixed_table(Task.CLASSIFICATION, 900)
    return Job(table, "class", wishes, FitFolder(tmp_path / "out"), transfer=False, remember=False)


@pytest.mark.usefixtures("trials_here")
def test_a_pipeline_that_hangs_leaves_the_model_of_the_rows_of_the_search(made: Job) -> None:
    plan = make_plan(made.table.sample(90, seed=0), made.wishes)
    made.first = fit_first_model(plan, target="class", seconds=60.0)
    found = made.search(plan)
    began = time.monotonic()
    made.began = began + LEFT - MODEL_END
    conclusion = made.conclude(found).conclusion
    assert time.monotonic() - began < 60.0
    assert "90 of 900 rows" in conclusion.remark
    assert len(conclusion.model.predict_rows(made.table.x)) == 900
    assert [path.name for path in made.place.folder.iterdir() if "fitting" in path.name] == []


@pytest.mark.usefixtures("trials_here")
def test_without_any_time_no_pipeline_is_fitted(made: Job) -> None:
    plan = make_plan(made.table.sample(90, seed=0), made.wishes)
    made.first = fit_first_model(plan, target="class", seconds=60.0)
    found = made.search(plan)
    made.began = time.monotonic() - SECONDS
    with pytest.raises(UsageError):
        made.conclude(found)


@pytest.mark.usefixtures("trials_here")
def test_the_best_learns_from_as_many_rows_as_there_is_time_for(
    made: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fold of 72 rows took 1 s, so 900 rows take 12.5 s; of 9 s, 70% are for 454 rows."""
    monkeypatch.setattr("foretune.automl.job.contention", lambda: 1.0)
    plan = make_plan(made.table.sample(90, seed=0), made.wishes)
    made.first = fit_first_model(plan, target="class", seconds=60.0)
    found = made.search(plan)
    slow = tuple(replace(trial, seconds=5.0) for trial in found.trials)
    made.began = time.monotonic() + 9.0 - MODEL_END
    rows = made._rows_in_time(replace(found, trials=slow))
    assert rows == pytest.approx(453.6, rel=0.02)
    made.began = time.monotonic() + 90.0 - MODEL_END
    assert made._rows_in_time(replace(found, trials=slow)) is None
