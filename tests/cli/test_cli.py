"""The command line as a user meets it: what it prints, its exit codes, what it leaves on disk."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import click
import pandas as pd
import pytest

from foretune._base.threads import ONE_NUMERIC_THREAD
from foretune.cli import foretune as commands
from foretune.cli.import_and_show import KINDS
from foretune.cli.option_values import SEED
from foretune.search.seeds import LARGEST_SEED
from foretune.space import Space
from foretune.stores import IMPORTERS
from tests.cli.test_documented_commands import all_commands

ROWS = [
    {"dataset": task, "rate": rate, "depth": depth, "error": abs(rate - best) + depth / 100}
    for task, best in (("a", 0.1), ("b", 0.2), ("c", 0.15))
    for rate in (0.01, 0.05, 0.1, 0.2, 0.3)
    for depth in (1, 5, 9)
]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "runs.csv"
    pd.DataFrame(ROWS).to_csv(path, index=False)
    return path


@pytest.fixture
def experience(foretune, table: Path) -> Path:
    out = table.with_name("runs.parquet")
    import_words = ("import", "table", table, "--task", "dataset", "--value", "error:min")
    code, _, error = foretune(*import_words, "-o", out)
    assert (code, error) == (0, "")
    return out


def test_help_has_examples(foretune) -> None:
    for words in (["--help"], ["import", "--help"], ["bench", "--help"], ["bench", "run", "-h"]):
        code, shown, _ = foretune(*words)
        assert code == 0
        assert "Example" in shown


def test_import_offers_every_importer() -> None:
    assert tuple(IMPORTERS) == KINDS


def test_every_command_takes_the_seeds_that_the_library_takes() -> None:
    assert (SEED.min, SEED.max) == (0, LARGEST_SEED)
    options = [option for command in all_commands(commands) for option in command.params]
    seeds = [option for option in options if option.name == "seed"]
    assert len(seeds) >= 5
    assert all(option.type is SEED for option in seeds)


def test_one_numeric_thread_is_asked_for_before_numpy_is_imported() -> None:
    code = (
        "import os, sys, foretune.cli; "
        "from foretune._base.threads import ONE_NUMERIC_THREAD as one; "
        "print('numpy' in sys.modules, *(os.environ[name] for name in one))"
    )
    others = {n: value for n, value in os.environ.items() if n not in ONE_NUMERIC_THREAD}
    given = {**others, "OMP_NUM_THREADS": "3"}
    command = [sys.executable, "-c", code]
    shown = subprocess.run(command, env=given, capture_output=True, text=True, check=True)
    assert shown.stdout.split() == ["False", "1", "3", "1", "1", "1"]


WAITS = """
import signal, subprocess, sys, time
signal.signal(signal.SIGHUP, signal.SIG_{hangup})
from foretune.cli import foretune, main

@foretune.command("wait")
def wait():
    asked = "import signal; print(signal.getsignal(signal.SIGTERM) is signal.SIG_DFL, flush=True)"
    subprocess.run([sys.executable, "-c", asked])
    time.sleep(60)

main()
"""


@pytest.mark.skipif(os.name == "nt", reason="Windows ends processes without a word")
@pytest.mark.parametrize(
    ("hangup", "words"),
    [("DFL", ["SIGTERM"]), ("DFL", ["SIGHUP"]), ("IGN", ["SIGHUP", "SIGTERM"])],
)
def test_ending_the_process_stops_it_like_ctrl_c(hangup, words) -> None:
    """hangup: what SIGHUP does beforehand, whoever runs the tests; under nohup it is ignored."""
    command = [sys.executable, "-c", WAITS.replace("{hangup}", hangup), "wait"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"True\n"  # what is started from there stops as ever
        for word in words:
            process.send_signal(getattr(signal, word))
        assert b"foretune: stopped" in process.communicate()[1]
    assert process.returncode == 130


def test_methods_lists_the_registry(foretune) -> None:
    code, shown, _ = foretune("methods")
    assert code == 0
    assert {"random", "sobol", "gp", "rf"} <= {line.split()[0] for line in shown.splitlines()}


def test_a_table_is_imported_with_an_inferred_space(foretune, experience: Path) -> None:
    space = Space.from_json(experience.with_suffix(".space.json").read_text())
    assert {p.name for p in space.parameters} == {"rate", "depth"}
    code, shown, _ = foretune("show", experience)
    assert code == 0
    assert re.search(r"Tasks +3\nConfigurations +15\nEvaluations +45", shown)
    assert "error" in shown


def test_an_edited_space_outlives_the_next_import(foretune, experience: Path) -> None:
    saved = experience.with_suffix(".space.json")
    words = ("import", "table", experience.with_name("runs.csv"), "--task", "dataset")
    words = (*words, "--value", "error:min", "-o", experience)
    _, shown, _ = foretune(*words)
    assert "saved to" in shown
    edited = saved.read_text().replace("0.3", "0.9")
    saved.write_text(edited)
    code, shown, _ = foretune(*words)
    assert code == 0
    assert f"to use it, import again with --space {saved}" in shown
    assert saved.read_text() == edited


@pytest.mark.parametrize("source", ["runs.parquet", "same.parquet", "sqlite:///runs.parquet"])
def test_the_input_is_not_overwritten(foretune, tmp_path: Path, monkeypatch, source) -> None:
    monkeypatch.chdir(tmp_path)
    pd.DataFrame(ROWS).to_parquet("runs.parquet")
    Path("same.parquet").symlink_to("runs.parquet")
    before = Path("runs.parquet").read_bytes()
    kind = "optuna" if "://" in source else "table --task dataset --value error:min"
    code, _, error = foretune("import", *kind.split(), source, "-o", "runs.parquet")
    assert code == 2
    assert "'runs.parquet' is both" in error
    assert Path("runs.parquet").read_bytes() == before


def test_trials_of_other_spaces_are_left_out_in_a_plain_sentence(foretune, tmp_path: Path) -> None:
    optuna = pytest.importorskip("optuna")
    url = f"sqlite:///{tmp_path / 'past.db'}"
    study = optuna.create_study(storage=url, study_name="good")
    study.optimize(lambda trial: trial.suggest_float("x", 0.0, 1.0), n_trials=2)
    study.add_trial(optuna.trial.create_trial(state=optuna.trial.TrialState.FAIL))
    code, shown, error = foretune("import", "optuna", url, "-o", tmp_path / "past.parquet")
    assert code == 0
    assert re.search(r"Evaluations +2\n", shown)
    [said] = [line for line in error.splitlines() if "left out" in line]
    assert (
        said
        == "foretune: trials that have none of the hyperparameters 'x' are left out: 1 of 'good'"
    )


def test_a_benchmark_runs_resumes_and_reports(foretune, experience: Path) -> None:
    out = experience.with_name("results.parquet")
    words = ("bench", "run", "--experience", experience, "--trials", 6, "--seeds", 2, "--out", out)
    assert foretune(*words, "--methods", "random")[0] == 0
    before = out.stat().st_mtime_ns
    assert foretune(*words, "--methods", "random,gp")[0] == 0
    assert out.stat().st_mtime_ns > before
    code, shown, error = foretune("bench", "report", out, "--at", "3,6")
    assert (code, error) == (0, "")
    assert "gp" in shown
    assert list(out.with_suffix(".report").glob("*.png"))


def test_the_shortest_demo_has_numbers_in_its_tables(foretune, tmp_path, monkeypatch) -> None:
    from foretune_lab.bench import demo

    monkeypatch.setattr(demo, "DEMO_METHODS", ["random", "sobol"])
    words = ("bench", "demo", "--trials", 2, "--seeds", 1, "--jobs", 1, "--out", tmp_path)
    code, shown, _ = foretune(*words)
    assert code == 0
    assert re.search(r"method +n=2\n", shown)


def test_the_help_names_every_suite_that_can_be_fetched(foretune) -> None:
    from foretune_lab.bench.fetch import SUITES

    _, shown, _ = foretune("bench", "fetch", "--help")
    [line] = [line for line in shown.splitlines() if "Suites:" in line]
    assert set(line.split(":")[1].replace(" ", "").split(",")) == set(SUITES)


BAD = [
    ("import table missing.csv --task t --value e:min -o o.parquet", "missing.csv"),
    ("import table runs.csv --task t --value e -o o.parquet", "COLUMN:min"),
    ("import table runs.csv --task t --value e:min --value e:max -o o.parquet", "'e' came twice"),
    ("import table runs.csv --task dataset --value error:min -o o.csv", "must be a .parquet file"),
    ("import table runs.csv --task dataset --value error:min -o no/o.parquet", "make its folder"),
    ("bench fetch oboe -o o.csv", "must be a .parquet file"),
    ("import table runs.csv --task nope --value error:min -o o.parquet", "nope"),
    ("import table runs.csv --value error:min -o o.parquet", "task"),
    ("import nonsense runs.csv -o o.parquet", "nonsense"),
    ("import optuna runs.db --value e:min -o o.parquet", "--value belongs to table, mlflow, ray"),
    ("import ray runs --task t --value e:min -o o.parquet", "--task belongs to table, mlflow"),
    ("import mlflow typo.db --status s -o o.parquet", "--status belongs to table"),
    ("show missing.parquet", "missing.parquet"),
    ("show runs.csv", "runs.csv"),
    ("bench report missing.parquet", "missing.parquet"),
    ("bench report runs.csv --at x", "positive numbers"),
    ("bench fetch nonsense -o o.parquet", "nonsense"),
    ("bench run --experience runs.csv --methods gp --out o.parquet", "runs.csv"),
    ("nonsense", "nonsense"),
]


@pytest.mark.parametrize(("line", "named"), BAD)
def test_a_mistake_is_one_sentence_and_changes_nothing(
    foretune, table: Path, monkeypatch, line: str, named: str
) -> None:
    monkeypatch.chdir(table.parent)
    code, shown, error = foretune(*line.split())
    assert code == 2
    assert shown == ""
    assert named in error
    assert "Traceback" not in error
    assert os.listdir(table.parent) == ["runs.csv"]


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (["--methods", "gqp"], "gqp"),
        (["--methods", "gp", "--tasks", "zzz"], "zzz"),
        (["--methods", "gp", "--split", "nope"], "nope"),
        (["--methods", "gp", "--objectives", "speed"], "speed"),
        (["--methods", ","], "at least one name"),
        (["--methods", "random", "--out", "results.csv"], "must be a .parquet file"),
        (["--methods", "random", "--out", "no/results.parquet"], "make its folder"),
    ],
)
def test_bad_settings_of_a_benchmark_are_refused(
    foretune, experience: Path, change: list[str], named: str
) -> None:
    before = sorted(os.listdir(experience.parent))
    out = experience.with_name("results.parquet")
    code, _, error = foretune("bench", "run", "--experience", experience, "--out", out, *change)
    assert code == 2
    assert named in error
    assert sorted(os.listdir(experience.parent)) == before


def test_a_corrupt_file_is_refused(foretune, experience: Path) -> None:
    experience.write_bytes(experience.read_bytes()[:-100])
    code, _, error = foretune("show", experience)
    assert code == 2
    assert error.count("\n") == 1


@pytest.fixture
def command_without_jax():
    """A command that lacks a package when it runs."""

    @click.command("lacking")
    def lacking() -> None:
        raise ModuleNotFoundError("No module named 'jax'", name="jax")

    commands.add_command(lacking)
    yield "lacking"
    del commands.commands["lacking"]


def test_an_optional_package_that_is_missed_late_is_named(foretune, command_without_jax):
    code, _, said = foretune(command_without_jax)
    assert (code, said.count("\n")) == (2, 1)
    assert "this command needs the package 'jax'" in said
    assert "foretune[neural]" in said
