"""`foretune fit` tells which columns count, and what all of them are worth."""

import re

import numpy as np
import pandas as pd
import pytest

from foretune.cli.fit_result import _no_better


@pytest.mark.usefixtures("trials_here")
def test_the_columns_that_count_are_named(foretune, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("FORETUNE_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(240, 3)), columns=["left", "rig<b>ht", "noise"])
    frame["sum"] = 2.0 * frame["left"] + frame["rig<b>ht"]
    frame.to_csv("sums.csv", index=False)
    given = ("--trials", 1, "--only", "knn", "--method", "random", "--jobs", 1, "--no-transfer")
    code, shown, _ = foretune("fit", "sums.csv", "--target", "sum", *given)
    assert code == 0
    assert "The most important columns are 'left', 'rig<b>ht'\n" in shown
    page = (tmp_path / "sums-foretune" / "report.html").read_text()
    assert "Which columns count" in page
    assert "rig&lt;b&gt;ht" in page
    assert re.search(r"Always predicting the mean: r2 -0\.0\d*\n", shown)
    assert "Without columns" in page


def test_a_search_that_finds_nothing_is_told_so() -> None:
    assert _no_better(-0.1) == ""
    assert _no_better(0.0) == _no_better(0.1) != ""
