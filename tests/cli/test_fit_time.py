"""`foretune fit --time` ends in time and with a model."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from foretune.automl.estimators.fitted_pipeline import Member
from foretune.automl.final_model.model import Model
from foretune.automl.fit_data import TableFile
from foretune.automl.fit_folder import FitFolder
from foretune.automl.job import Job
from foretune.automl.plan import FitOptions
from foretune.cli.fit import run_job
from foretune.tables.target import Task
from tests.automl.samples import mixed_frame, noise_frame


@pytest.fixture(autouse=True)
def _own_home(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("FORETUNE_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def train(tmp_path) -> Path:
    mixed_frame(300).drop(columns="amount").to_csv(tmp_path / "train.csv", index=False)
    return tmp_path / "train.csv"


WORDS = ("--target", "class", "--jobs", 1, "--no-remember")


def test_trials_that_all_fail_leave_the_first_model(foretune, train: Path) -> None:
    """No trial ends within a hundredth of a second."""
    code, shown, _ = foretune(
        "fit", train, *WORDS, "--time", "6s", "--time-limit", "0.01s", "--no-transfer"
    )
    assert code == 0
    assert "WARNING" in shown
    new = mixed_frame(20, seed=4).drop(columns=["class", "amount"])
    new.to_csv("new.csv", index=False)
    code, _, _ = foretune("predict", "train-foretune/model.foretune", "new.csv", "-o", "out.csv")
    assert code == 0
    assert set(pd.read_csv("out.csv")["class"]) <= {"high", "low", "middle"}


@pytest.mark.parametrize("tells_nothing", [False, True])
def test_a_first_model_is_what_is_left_if_all_pipelines_fail(
    train: Path, capsys, tells_nothing: bool
) -> None:
    def fails(*_: object, **__: object) -> Member:
        raise ValueError("no pipeline")

    if tells_nothing:
        noise_frame(Task.CLASSIFICATION).to_csv(train, index=False)
    job = Job(
        data=TableFile(train, "y" if tells_nothing else "class"),
        options=FitOptions(trials=2, seconds=60.0, only=("knn",), method="random", refit=True),
        folder=FitFolder(Path("train-foretune")),
        transfer=False,
        remember=False,
        executor=None,
        fit_pipeline=fails,
    )
    run_job(job)
    shown = capsys.readouterr().out
    assert "WARNING" in shown
    assert ("baseline" in shown) is tells_nothing
    new = noise_frame(Task.CLASSIFICATION, 20) if tells_nothing else mixed_frame(20)
    shares = Model.open("train-foretune/model.foretune").predict_proba(new)
    assert bool(np.ptp(shares, axis=0).max() == 0.0) is tells_nothing


def test_a_wide_table_has_a_model_in_no_time(foretune, tmp_path) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3000, 300)).round(2)
    frame = pd.DataFrame(x, columns=[f"c{place}" for place in range(300)])
    frame.assign(y=np.where(x[:, 0] > 0.0, "yes", "no")).to_csv("wide.csv", index=False)
    code, _, _ = foretune("fit", "wide.csv", "--target", "y", "--jobs", 1, "--time", "3s")
    assert code == 0
    model = Model.open("wide-foretune/model.foretune")
    assert set(model.predict(frame.iloc[:50])) <= {"yes", "no"}
