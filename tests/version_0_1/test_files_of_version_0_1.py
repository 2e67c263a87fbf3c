"""What version 0.1 wrote opens, and says what it said then."""

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import foretune as ft
from foretune.automl.knowledge.memory import Memory
from foretune.experience import Status
from foretune.methods.zero_shot.portfolio import Portfolio
from foretune.space import Space
from foretune.stores import import_experience
from foretune.stores.studies import open_study

HERE = Path(__file__).parent


@pytest.mark.parametrize(
    ("model", "table"), [("people", "people"), ("prices", "prices"), ("qda", "people")]
)
def test_models_predict_what_they_did(model: str, table: str) -> None:
    predictions = ft.Model.open(HERE / f"{model}.foretune").predict(
        pd.read_csv(HERE / f"{table}.csv")
    )
    expected = pd.read_csv(HERE / f"{model}-predictions.csv").iloc[:, 0]
    if expected.dtype.kind == "f":
        np.testing.assert_allclose(np.asarray(predictions, dtype=float), expected, rtol=1e-6)
    else:
        assert list(np.asarray(predictions)) == list(expected)


def test_an_experience_has_its_evaluations() -> None:
    past = ft.Experience.open(HERE / "runs.parquet")
    assert past.tasks == ("task0", "task1", "task2", "task3")
    assert len(past) == 80
    configs, losses = past.configs.dicts(), past.losses[:, 0]
    for row in (0, 37, 79):
        config, task = configs[past.config_index[row]], int(past.task_index[row])
        expected = (config["x"] - 0.2 - 0.1 * task) ** 2 + 0.1 * (config["kind"] == "b")
        assert losses[row] == pytest.approx(expected)


@pytest.mark.parametrize("name", ["zero-shot", "factors", "gcp-prior"])
def test_a_prior_suggests_what_it_did(name: str) -> None:
    if name == "gcp-prior":
        pytest.importorskip("jax")
    method, space = ft.method(name), ft.Experience.open(HERE / "runs.parquet").space
    prior = method.load(HERE / f"prior-{name}.safetensors")
    first = ft.Optimizer(ft.Target(space), method, prior, seed=0).ask()[0].config
    expected = json.loads((HERE / "priors.json").read_text())[f"{name}-first"]
    assert first["kind"] == expected["kind"]
    if name != "gcp-prior":  # drawn by a network, whose last digits depend on the machine
        assert first == pytest.approx(expected)


def test_a_portfolio_can_be_loaded() -> None:
    assert len(Portfolio.open(HERE / "portfolio.json").configs) == 3


def test_a_study_goes_on(tmp_path: Path) -> None:
    store = tmp_path / "tune.db"
    shutil.copy(HERE / "tune.db", store)
    past = import_experience("optuna", f"sqlite:///{store}")
    assert past.tasks == ("first",)
    assert len(past) == 12
    metric = past.metrics[0]
    with open_study(str(store), "first", **identity(store, metric)) as study:
        trials = study.trials()
    assert [trial.number for trial in trials] == list(range(12))
    assert sum(trial.status is Status.DONE for trial in trials) == 6


def identity(store: Path, metric: ft.Metric) -> dict[str, object]:
    """What the study was begun with, as it says itself."""
    import optuna

    stored = optuna.load_study(study_name="first", storage=f"sqlite:///{store}")
    said = stored.user_attrs["foretune"]
    return {
        "space": Space.from_json(said["space"]),
        "metrics": [metric],
        "settings": said["settings"],
    }


def test_a_memory_keeps_what_was_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "experience"
    folder.mkdir()
    shutil.copy(HERE / "memory-classification.parquet", folder / "pipeline-classification.parquet")
    monkeypatch.setenv("FORETUNE_HOME", str(tmp_path))
    remembered = Memory.of_user().recall("pipeline-classification")
    assert remembered is not None
    assert len(remembered) == 6
