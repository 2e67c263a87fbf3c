"""The short forms of the attacks in benchmarks/reliability, which makes hundreds of each."""

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.reliability.rows import Row, read_rows

pytest.importorskip("optuna")
pytest.importorskip("skops")

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "benchmarks" / "reliability"


ATTACKS = (
    "kills.py --command tune", "step_kills.py", "stops.py", "full_disk.py", "read_only.py",
    "outages.py --store sqlite", "clock.py",
)  # fmt: skip


@pytest.fixture(scope="module")
def attacks():
    """What each attack printed. One process makes all of them: its imports cost the most."""
    done = subprocess.run(
        [sys.executable, FOLDER / "short.py", *ATTACKS], capture_output=True, text=True, check=False
    )
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(found) == len(ATTACKS), done.stderr
    return {each["words"]: each for each in found}


@pytest.mark.parametrize("words", ATTACKS)
def test_nothing_is_lost_doubled_or_wrong(words, attacks):
    errors = attacks[words]["errors"]
    rows = read_rows(attacks[words]["output"])
    assert rows, errors
    for row in rows:
        assert row.faults == 0, errors
        if row.skipped:
            pytest.skip(row.skipped)
        assert row.count > 0
    assert attacks[words]["code"] == 0, errors


# The checks themselves: each must find the fault that it is for.


def load(name, monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module(name)


def trial(x, state="COMPLETE"):
    value = (x - 0.3) ** 2
    return (state, ("trial_params", "x", x), ("trial_values", 0, value))


@pytest.mark.parametrize(
    ("now", "running", "found"),
    [
        ({0: trial(0.1), 1: trial(0.2)}, {}, (0, 0, 0)),
        ({1: trial(0.2)}, {}, (1, 0, 0)),
        ({0: trial(0.5), 1: trial(0.2)}, {}, (0, 0, 1)),
        ({0: trial(0.1), 1: trial(0.2), 2: trial(0.1)}, {}, (0, 1, 0)),
        ({0: trial(0.1), 1: trial(0.2)}, {2: "RUNNING", 3: "RUNNING"}, (0, 0, 1)),
    ],
)
def test_faults_in_a_store_are_found(now, running, found, monkeypatch):
    tally = load("tally", monkeypatch).Tally()
    before = {0: trial(0.1), 1: trial(0.2)}
    load("stores", monkeypatch).compare(before, now, running, 1, tally)
    assert (tally.lost, tally.doubled, tally.wrong) == found


@pytest.mark.parametrize(
    ("log", "stored", "found"),
    [
        ("0.1\n", trial(0.1), (0, 0, 0)),
        ("0.1\n0.1\n", trial(0.1), (0, 1, 0)),
        ("", trial(0.1), (0, 1, 0)),
        ("0.1\n", (*trial(0.1)[:2], ("trial_values", 0, 0.5)), (0, 0, 1)),
        ("0.1\n", trial(0.1, "FAIL"), (0, 0, 1)),
    ],
)
def test_faults_in_evaluations_are_found(log, stored, found, tmp_path, monkeypatch):
    tally = load("tally", monkeypatch).Tally()
    (tmp_path / "evaluations.log").write_text(log)
    load("stores", monkeypatch).compare_evaluations(tmp_path, {0: stored}, tally)
    assert (tally.lost, tally.doubled, tally.wrong) == found


# The table of all attacks.


def make_script(folder, name, body):
    lines = ["import sys", f"sys.path.insert(0, {str(FOLDER)!r})", "from rows import Row", body]
    (folder / name).write_text("\n".join(lines))


@pytest.fixture
def harness(tmp_path):
    from benchmarks.reliability.__main__ import Attack, main

    make_script(tmp_path, "good.py", "Row('good', 5, refused=2, longest_s=1.0).print()")
    make_script(tmp_path, "lost.py", "Row('loses', 5, lost=1).print()")
    make_script(tmp_path, "dies.py", "sys.exit('a fault')")
    make_script(tmp_path, "silent.py", "print('a table of its own')")
    make_script(tmp_path, "skips.py", "Row('skips', 0, skipped='no server').print()")
    names = ("good", "lost", "dies", "skips", "silent", "missing")
    attacks = tuple(Attack(name, f"{name}.py", folder=tmp_path) for name in names)

    def run(out, only=""):
        with pytest.raises(SystemExit) as left:
            main(["--out", str(out), "--only", only], attacks)
        return left.value.code

    return run


def test_the_exit_code_tells_of_faults(harness, tmp_path):
    assert harness(tmp_path / "out", "good,skips,missing") == 0
    assert harness(tmp_path / "out", "good,lost") == 1
    assert harness(tmp_path / "out", "dies") == 1


def test_the_table_has_a_line_for_every_attack(harness, tmp_path, capsys):
    harness(tmp_path / "out")
    lines = (tmp_path / "out" / "table.md").read_text().splitlines()
    table = lines[2 : lines.index("")]
    assert [line.split(" | ")[0].strip("| ") for line in table] == [
        "good", "loses", "dies", "skips", "silent", "missing"
    ]  # fmt: skip
    assert "| good | 5 | 0 | 0 | 0 | 2 | 1.0 s |  |" in lines
    said = capsys.readouterr().out
    assert "no server" in said
    assert "a fault" in said


def test_a_finished_attack_is_not_made_again(harness, tmp_path):
    out = tmp_path / "out"
    harness(out, "good")
    (kept,) = json.loads((out / "rows.jsonl").read_text())["rows"]
    assert Row(**kept) == Row("good", 5, refused=2, longest_s=1.0)
    make_script(tmp_path, "good.py", "Row('good', 5, lost=1).print()")
    assert harness(out, "good") == 0
    (out / "rows.jsonl").unlink()
    assert harness(out, "good") == 1
