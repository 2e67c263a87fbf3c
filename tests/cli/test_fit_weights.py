"""`foretune fit --weight`: rows that do not count alike."""

import numpy as np
import pandas as pd
import pytest

QUICK = ("--trials", 1, "--only", "naive_bayes", "--method", "random", "--jobs", 1, "--no-transfer")


@pytest.mark.usefixtures("trials_here")
def test_rows_are_weighed_in_the_search_and_on_the_test_table(foretune, tmp_path, monkeypatch):
    """Half of the rows say the opposite of the others, and count a ninth."""
    monkeypatch.setenv("FORETUNE_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    x, heavy = np.random.default_rng(0).normal(size=300), np.arange(300) % 2 == 0
    good = np.where(np.where(heavy, x > 0, x < 0), "good", "bad")
    frame = pd.DataFrame({"x": x, "months": np.where(heavy, 9, 1), "is": good})
    frame[:200].to_csv("train.csv", index=False)
    frame[200:].to_csv("test.csv", index=False)
    frame[200:].drop(columns="months").to_csv("unweighed.csv", index=False)
    given = ("fit", "train.csv", "--target", "is", "--metric", "accuracy", "--weight", "months")

    code, _, said = foretune(*given, *QUICK, "--test", "unweighed.csv")
    assert code == 2
    assert "must have the column of weights, but it has no 'months'" in said
    assert not (tmp_path / "train-foretune").exists()

    code, shown, _ = foretune(*given, *QUICK, "--test", "test.csv")
    assert code == 0
    assert "on 200 rows, weighed by 'months'" in shown
    assert _number(shown, "Best of 1 trial: accuracy ") > 0.8
    assert _number(shown, "On the test table: accuracy ") > 0.8
    assert "weighed by" in (tmp_path / "train-foretune/report.html").read_text()

    code, _, _ = foretune(
        "predict", "train-foretune/model.foretune", "unweighed.csv", "-o", "p.csv"
    )
    assert code == 0


def _number(shown: str, after: str) -> float:
    return float(shown.split(after)[1].split(maxsplit=1)[0])
