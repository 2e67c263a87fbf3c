"""`foretune portfolio` as a user meets it."""

import os
from pathlib import Path

import pytest

from foretune.cli.portfolio_text import NORMALISATION_WORDS
from foretune.methods.zero_shot.portfolio import Portfolio
from foretune.numerics.normalise import REFERENCE_SIZE
from tests.methods.zero_shot.examples import bowls, candidates, experience_of, unshared_experience


@pytest.fixture
def portfolio(foretune, monkeypatch, tmp_path: Path):
    """Run the command in a folder with two experiences; give exit code, output and errors."""
    experience_of(bowls(candidates()), candidates()).save(tmp_path / "shared.parquet")
    unshared_experience().save(tmp_path / "unshared.parquet")
    monkeypatch.chdir(tmp_path)
    return lambda line: foretune("portfolio", *line.split())


def test_a_portfolio_is_built_saved_and_shown_again(portfolio) -> None:
    line = "shared.parquet -k 3 --builder obo --budget 200 --metric error -o p.json"
    code, shown, error = portfolio(line)
    assert (code, error) == (0, "")
    assert "chosen by 'obo' from 200 evaluations" in shown
    assert len(Portfolio.open(Path("p.json"))) == 3
    code, again, _ = portfolio("p.json")
    assert code == 0
    assert again == shown.removesuffix("# Saved p.json\n")


def test_losses_are_relative_to_the_mean_of_a_few_best() -> None:
    assert f"the mean of a task's {REFERENCE_SIZE} best" in NORMALISATION_WORDS["red"]


def test_a_shipped_portfolio_is_printed_ready_to_paste(portfolio) -> None:
    code, shown, _ = portfolio("xgboost -k 2")
    assert code == 0
    assert shown.startswith("# 2 configurations from Winkelmolen")
    assert max(map(len, shown.split("[")[0].splitlines())) <= 100
    assert "Table 6" in shown
    pasted = eval("".join(line for line in shown.splitlines() if not line.startswith("#")))
    assert [config["max_depth"] for config in pasted] == [7, 3]


def test_without_a_builder_one_is_chosen(portfolio) -> None:
    assert "chosen by 'naive'" in portfolio("shared.parquet -k 2 --aggregate p90")[1]
    assert "chosen by 'surrogate'" in portfolio("unshared.parquet -k 2")[1]


BAD = [
    ("unshared.parquet --builder naive -o p.json", "fewer than half of the 6 tasks"),
    ("shared.parquet --builder naive --budget 30 -o p.json", "240 jobs"),
    ("shared.parquet --aggregate most -o p.json", "most"),
    ("shared.parquet --metric speed -o p.json", "speed"),
    ("missing.parquet -o p.json", "missing.parquet"),
    ("missing.json -o p.json", "missing.json"),
    ("svm -o p.json", "svm"),
    ("xgboost --budget 30 -o p.json", "already"),
    ("shared.parquet -o p.txt", "must be a .json file"),
    ("shared.parquet -o no/p.json", "make its folder"),
]


@pytest.mark.parametrize(("line", "named"), BAD)
def test_a_mistake_is_one_sentence_and_changes_nothing(portfolio, line: str, named: str) -> None:
    code, shown, error = portfolio(line)
    assert (code, shown) == (2, "")
    assert named in error
    assert sorted(os.listdir()) == ["shared.parquet", "unshared.parquet"]
