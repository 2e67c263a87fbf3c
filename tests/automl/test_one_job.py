"""The command, the estimator and a Python job are one job."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from foretune.automl.final_model.model import Model
from foretune.automl.fit_data import TableInMemory
from foretune.automl.job import Job
from foretune.automl.knowledge.memory import Memory
from foretune.automl.plan import FitOptions
from foretune.automl.sklearn_api import ForetuneClassifier
from foretune.cli import main
from foretune.experience import Experience
from foretune.tables.table import Table
from foretune.tables.target import Task

TRIALS, SEED, ONLY, METHOD = 3, 7, ("knn", "lda"), "random"
SPACE = "pipeline-classification"


@pytest.fixture(autouse=True)
def _in_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(90, 3)).round(3)
    return pd.DataFrame(x, columns=list("abc")).assign(y=(x[:, 0] + x[:, 1] > 0).astype(int))


def by_command(frame: pd.DataFrame) -> tuple[Experience, np.ndarray]:
    frame.to_csv("table.csv", index=False)
    words = ["fit", "table.csv", "--target", "y", "--trials", TRIALS, "--seed", SEED]
    words += ["--only", ",".join(ONLY), "--method", METHOD, "--jobs", 1, "--no-transfer"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", ["foretune", *map(str, words)])
        main()
    found = Experience.open("table-foretune/trials.parquet")
    return found, Model.open("table-foretune/model.foretune").predict_proba(frame)


def by_estimator(frame: pd.DataFrame) -> tuple[Experience, np.ndarray]:
    estimator = ForetuneClassifier(
        trials=TRIALS,
        only=ONLY,
        method=METHOD,
        transfer=False,
        remember=True,
        random_state=SEED,
    )
    x = frame.drop(columns="y")
    estimator.fit(x, frame["y"])
    return estimator.fit_.experience(), estimator.predict_proba(x)


def by_job(frame: pd.DataFrame) -> tuple[Experience, np.ndarray]:
    table = Table.of(frame, "y", name="table", task=Task.CLASSIFICATION)
    options = FitOptions(trials=TRIALS, only=ONLY, method=METHOD, seed=SEED)
    job = Job(data=TableInMemory(table, "y"), options=options, transfer=False, executor=None)
    result = job.run()
    return result.experience(), result.model.predict_proba(frame)


WAYS = {"command": by_command, "estimator": by_estimator, "job": by_job}


@pytest.mark.usefixtures("trials_here")
def test_the_same_arguments_give_the_same_trials_and_predictions_and_are_remembered_once(
    frame: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job has no display at all, and is remembered all the same."""
    trials, predictions = {}, {}
    for name, run in WAYS.items():
        monkeypatch.setenv("FORETUNE_HOME", str(tmp_path / f"home of {name}"))
        found, predictions[name] = run(frame)
        trials[name] = json.dumps(found.configs.dicts()), found.values.tolist()
        remembered = Memory.of_user().recall(SPACE)
        assert remembered is not None
        assert len(remembered) == TRIALS
        assert len(remembered.tasks) == 1
        assert sorted(remembered.values[:, 0]) == sorted(found.values[:, 0])
    assert trials["command"] == trials["estimator"] == trials["job"]
    np.testing.assert_allclose(predictions["command"], predictions["estimator"], rtol=1e-12)
    np.testing.assert_allclose(predictions["command"], predictions["job"], rtol=1e-12)
