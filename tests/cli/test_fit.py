"""`foretune fit` as a user meets it."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from foretune.experience import Experience
from tests.automl.tables import mixed_frame

QUICK = ("--trials", 3, "--only", "knn,lda", "--method", "random", "--jobs", 1, "--no-transfer")


@pytest.fixture(autouse=True)
def _own_home(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("FORETUNE_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def train(tmp_path) -> Path:
    mixed_frame().drop(columns="amount").to_csv(tmp_path / "train.csv", index=False)
    return tmp_path / "train.csv"


def test_the_main_job(foretune, train: Path, tmp_path) -> None:
    mixed_frame(seed=2).drop(columns="amount").to_csv(tmp_path / "test.csv", index=False)
    code, shown, _ = foretune("fit", train, "--target", "class", "--test", "test.csv", *QUICK)
    assert code == 0
    assert "Best of 3 trials: " in shown
    assert re.search(r"On the test table: log_loss [\d.]+, accuracy [\d.]+, balanced", shown)
    made = tmp_path / "train-foretune"
    assert len(Experience.open(made / "trials.parquet")) == 3
    assert "<title>" in (made / "report.html").read_text()
    new = mixed_frame(20, seed=4).drop(columns=["class", "amount"])
    new.to_csv(tmp_path / "new.csv", index=False)
    code, _, _ = foretune("predict", made / "model.foretune", "new.csv", "-o", "out.csv")
    assert code == 0
    assert set(pd.read_csv("out.csv")["class"]) <= {"high", "low", "middle"}
    code, shown, _ = foretune("experience", "show")
    assert "train" in shown


def test_the_same_command_goes_on(foretune, train: Path, tmp_path) -> None:
    foretune("fit", train, "--target", "class", *QUICK)
    more = ("--trials", 4, *QUICK[2:])
    code, shown, _ = foretune("fit", train, "--target", "class", *more)
    assert code == 0
    assert "Best of 4 trials" in shown
    assert len(Experience.open("train-foretune/trials.parquet")) == 4


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["absent.csv", "--target", "class"], "absent.csv"),
        (["train.csv", "--target", "clas"], "did you mean 'class'"),
        (["train.csv"], "no --target"),
        ([], "no table"),
        (["--demo", "--target", "risk"], "leave one of them out"),
        (["train.csv", "--target", "always"], "at least two classes"),
        (["train.csv", "--target", "class", "--metric", "r2"], "must be one of accuracy"),
        (["train.csv", "--target", "class", "--method", "aut"], "did you mean auto"),
        (["train.csv", "--target", "class", "--only", "lgbm"], "'lgbm'"),
        (["train.csv", "--target", "class", "--space", "pipes"], "pipes"),
        (["train.csv", "--target", "class", "--test", "other.csv"], "has no 'class'"),
        (["train.csv", "--target", "class", "--test", "strange.csv"], "'odd' besides"),
        (["train.csv", "--target", "class", "-o", "train.csv/out"], "is a file"),
        (["train.csv", "--target", "class", "--time", "soon"], "20s"),
    ],
)
def test_mistakes_are_one_sentence_and_leave_nothing(foretune, train, tmp_path, words, said):
    pd.DataFrame({"letter": ["x"] * 5}).to_csv("other.csv", index=False)
    strange = mixed_frame().drop(columns="amount")
    strange["class"] = "odd"
    strange.to_csv("strange.csv", index=False)
    before = sorted(path.name for path in tmp_path.iterdir())
    code, _, error = foretune("fit", *words)
    assert code == 2
    assert said in error
    assert "Traceback" not in error
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_three_rows_are_too_few(foretune, tmp_path) -> None:
    pd.DataFrame({"a": [1, 2, 3], "y": ["u", "v", "u"]}).to_csv("tiny.csv", index=False)
    code, _, error = foretune("fit", "tiny.csv", "--target", "y")
    assert code == 2
    assert "at least 10 rows" in error


def test_columns_without_a_value_and_infinities_are_lived_with(foretune, tmp_path) -> None:
    frame = mixed_frame().drop(columns="class")
    frame["infinite"] = np.where(np.arange(len(frame)) % 7 == 0, np.inf, frame["number"])
    frame.to_csv("odd.csv", index=False)
    code, shown, error = foretune("fit", "odd.csv", "--target", "amount", "--trials", 2, "--only",
                                  "knn", "--method", "random", "--no-transfer")  # fmt: skip
    assert (code, "Traceback" in error) == (0, False)
    assert "r2" in shown


def test_text_of_users_is_escaped_in_the_report(foretune, tmp_path) -> None:
    frame = mixed_frame().drop(columns="amount")
    frame["<script>alert(1)</script>"] = frame["number"]
    frame["class"] = frame["class"].map(lambda name: f"</script><b>{name}")
    frame.to_csv("evil.csv", index=False)
    code, _, _ = foretune("fit", "evil.csv", "--target", "class", *QUICK)
    assert code == 0
    page = Path("evil-foretune/report.html").read_text()
    assert "<script>alert" not in page
    assert "<b>" not in page


def test_trials_are_an_optuna_study(foretune, train: Path) -> None:
    optuna = pytest.importorskip("optuna")
    foretune("fit", train, "--target", "class", *QUICK)
    [name] = optuna.get_all_study_names("sqlite:///train-foretune/study.db")
    study = optuna.load_study(study_name=name, storage="sqlite:///train-foretune/study.db")
    assert [trial.state.name for trial in study.trials] == ["COMPLETE"] * 3
    assert study.best_value == min(trial.value for trial in study.trials)
    assert json.dumps(study.best_params)
