"""`foretune portfolio build` as a user meets it."""

import json
import os
from pathlib import Path

import pytest

from foretune.cli.portfolio_build import NORMALISATIONS as CLI_NORMALISATIONS
from foretune.experience import Experience
from foretune.methods.zero_shot.portfolio import Portfolio
from foretune.numerics.normalise import NORMALISATIONS
from tests.inline_site import InlineSite

MODULE = """
CENTRES = {"a": 0.2, "b": 0.3, "c": 0.8}

def error(config, task):
    return 0.1 + abs(config["x"] - CENTRES[task])

def broken(config, task):
    raise ValueError("no data")
"""
USUAL = "--tasks tasks.json --space space.json --journal J --candidates 30"


@pytest.fixture
def build(foretune, monkeypatch, tmp_path: Path):
    """Run the command in a folder with a module, tasks and a space."""
    monkeypatch.setattr("foretune.run.executor_choice.ExecutorChoice", InlineSite)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FORETUNE_HOME", str(tmp_path / "home"))
    Path("live_jobs.py").write_text(MODULE)
    Path("tasks.json").write_text('["a", "b", "c"]')
    Path("space.json").write_text(json.dumps({"x": {"range": [0.0, 1.0]}}))
    monkeypatch.syspath_prepend(tmp_path)
    return lambda line: foretune("portfolio", "build", *line.split())


def test_the_same_command_goes_on_and_saves_a_portfolio_and_an_experience(build) -> None:
    line = f"live_jobs:error {USUAL} --size 2 --builder mf -o p.json --budget"
    code, shown, said = build(f"{line} 9")
    assert code == 0, said
    assert "chosen by 'mf' from 9 evaluations" in shown
    code, shown, said = build(f"{line} 15")
    assert code == 0, said
    assert len(Portfolio.open(Path("p.json"))) == 2
    assert len(Experience.open(Path("p.parquet"))) == 15
    code, shown, said = build(f"live_jobs:error {USUAL} --study two --experience p.parquet "
                              "--builder naive --size 1 --budget 3")  # fmt: skip
    assert code == 0, said
    assert "evaluations of past runs were taken over" in said


def test_without_a_success_the_command_fails(build) -> None:
    code, shown, said = build(f"live_jobs:broken {USUAL} --budget 4")
    assert (code, shown) == (1, "")
    assert "4 x ValueError: no data" in said


BAD = [
    ("live_jobs:error --tasks none.json --space space.json", "none.json"),
    ("live_jobs:error --tasks nowhere --space cash --target y", "function"),
    ("--tasks nowhere --space cash", "--target"),
    ("--tasks nowhere --space cash --target y", "nowhere"),
    ("--tasks nowhere --space cahs --target y", "cahs"),
    (f"{USUAL}", "module:function"),
    (f"live_jobs:error --command ls {USUAL}", "one of the two"),
    (f"live_jobs:none {USUAL}", "none"),
    (f"live_jobs:error {USUAL} --aggregate most", "most"),
    (f"live_jobs:error {USUAL} --budget 0", "at least one"),
    (f"live_jobs:error {USUAL} --budget soon", "soon"),
    (f"live_jobs:error {USUAL} -o p.txt", ".json"),
    (f"live_jobs:error {USUAL} --experience none.parquet", "none.parquet"),
    (f"live_jobs:error {USUAL} --normalisation zscore", "zscore"),
    ("live_jobs:error --tasks tasks.json --space space.json --journal no/J", "no/J"),
    (f"--command run/{{y}} {USUAL}", "y"),
]


@pytest.mark.parametrize(("line", "named"), BAD)
def test_a_mistake_is_one_sentence_and_leaves_nothing(build, line: str, named: str) -> None:
    code, shown, error = build(line)
    assert (code, shown) == (2, ""), error
    assert named in error
    left = {name for name in os.listdir() if not name.startswith(("J", "__", "foretune-portfolio"))}
    assert left == {"live_jobs.py", "space.json", "tasks.json"}


def test_too_small_a_budget_for_naive_is_refused(build) -> None:
    code, _, error = build(f"live_jobs:error {USUAL} --builder naive --size 4 --budget 6")
    assert code == 2
    assert "12 jobs" in error


def test_the_command_line_knows_all_normalisations() -> None:
    assert tuple(NORMALISATIONS) == CLI_NORMALISATIONS
