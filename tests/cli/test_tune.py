import html
import json
import os
import re
import shlex
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from foretune.cli.tune import tune_command
from foretune.cli.tune_options import _name_and_direction, resolve_metrics, resolve_space
from foretune.errors import ForetuneError, ForetuneWarning
from foretune.experience import Direction, Experience, Metric, Status
from foretune.stores import import_experience
from tests.refusals import warns

SPACE = {
    "x": {"range": [0.0, 1.0]},
    "n": {"range": [1, 4]},
    "kind": {"a": {"rate": {"range": [0.001, 0.1, "log"]}}, "b": {}},
}
PROGRAM = """
def run(config):
    if config["n"] > 2:
        raise ValueError("too many")
    return {"score": config["x"] + config.get("kind:a:rate", 0.0), "size": config["n"]}

def number(config):
    return config["x"]

def broken(config):
    return "none"

def mended(config):
    import pathlib
    if not pathlib.Path("mended").exists():
        raise ValueError("not yet")
    return config["x"]

def stopped(config):
    raise KeyboardInterrupt

def trained(config, trial):
    file = trial.folder / "step"
    begin = int(file.read_text()) if file.exists() else 0
    for step in range(begin + 1, 10):
        file.write_text(str(step))
        trial.report(step, config["x"] + 1 / step)
        if trial.should_stop():
            return None
    return config["x"] + 1 / 9

def talkative(config):
    print("hello")
    return config["x"]
"""


@pytest.fixture
def in_processes(tmp_path, monkeypatch):
    """A folder with a program; trials run in worker processes."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "tuned_for_tests.py").write_text(PROGRAM)
    (tmp_path / "space.json").write_text(json.dumps(SPACE))
    return tmp_path


@pytest.fixture
def here(trials_here, in_processes):
    """The same folder, whose trials run in this process."""
    return in_processes


def save_past(path, n=6, direction=Direction.MIN):
    """Save an experience as the tuning of `number` makes it."""
    space = resolve_space(Path("space.json"), None)
    configs = space.sample(n, seed=0)
    losses = np.array([[config["x"] for config in configs.dicts()]])
    metrics = [Metric("loss", direction)]
    Experience.from_matrix(space, configs, ["number"], metrics, {"loss": losses}).save(Path(path))


def run(*words):
    return CliRunner().invoke(tune_command, [*map(str, words)])


SEARCH = ("--space", "space.json", "--method", "random")


def test_a_function_is_tuned_and_the_study_resumed(in_processes):
    words = ("tuned_for_tests:run", *SEARCH, "--metric", "score", "--direction", "max")
    ended = run(*words, "--trials", 8, "--out", "trials.parquet")
    assert ended.exit_code == 0, ended.output
    assert "8 trials ended" in ended.stderr
    assert "x ValueError: too many" in ended.stderr
    trials = Experience.open(in_processes / "trials.parquet")
    assert len(trials) == 8
    best = json.loads(ended.stdout)
    done = trials.status == Status.DONE
    assert f"Best score: {trials.values[done].max():.6g}" in ended.stderr
    assert best in trials.configs.dicts()
    again = run(*words, "--trials", 10, "--out", "trials.parquet")
    assert again.exit_code == 0, again.output
    more = Experience.open(in_processes / "trials.parquet")
    assert more.configs.dicts()[:8] == trials.configs.dicts()
    assert len(more) == 10
    assert f"8 of 10 trials: best score {trials.values[done].max():.4g}" in again.stderr


def test_a_command_is_tuned_in_several_processes(in_processes):
    program = "import sys; print(float(sys.argv[1]))"
    command = f"{shlex.quote(sys.executable)} -c {shlex.quote(program)} {{x}} {{kind:a:rate}}"
    ended = run("--command", command, *SEARCH, "--trials", 4, "--jobs", 2, "--study", "mine",
                "--store", "sqlite:///own.db", "--memory", "2GB", "--time-limit", "1h")  # fmt: skip
    assert ended.exit_code == 0, ended.output
    assert "4 trials ended, 0 of them failed" in ended.stderr
    assert f"Study 'mine' in sqlite:///{in_processes}/own.db" in ended.stderr


def test_an_experience_brings_space_and_metric(here):
    words = ("tuned_for_tests:number", "--trials")
    run(*words, 6, *SEARCH, "--out", "past.parquet")
    past = ("--experience", "past.parquet", "--method", "random")
    ended = run(*words, 3, *past, "--store", "new.db")
    assert ended.exit_code == 0, ended.output
    assert "3 trials ended, 0 of them failed" in ended.stderr


def test_past_runs_of_a_space_that_has_changed_since_are_carried_over(here):
    words = ("tuned_for_tests:number", "--trials")
    run(*words, 12, *SEARCH, "--out", "past.parquet")
    known = Experience.open(here / "past.parquet")
    inside = [c for c in known.configs.dicts() if c["x"] >= 0.3]
    (here / "now.json").write_text(
        json.dumps({**SPACE, "x": {"range": [0.3, 2.0]}, "mode": ["1", "2"]})
    )
    past = ("--experience", "past.parquet", "--space", "now.json", "--method", "ws-gp")
    ended = run(*words, 1, *past, "--store", "new.db")
    assert ended.exit_code == 0, ended.output
    left_out = 12 - len(inside)
    assert f"Past runs are of another space: {len(inside)} of 12 (of 1 of 1 tasks)" in ended.stderr
    assert f"{left_out} lie outside of 'x'; they have no value of 'mode'" in ended.stderr
    assert "; give the value they used with --assume" in ended.stderr
    said = run(*words, 1, *past, "--assume", "mode=2", "--store", "said.db")
    assert "no value" not in said.stderr
    best = min(inside, key=lambda config: config["x"])
    assert json.loads(said.stdout) == {**best, "mode": "2"}


def test_several_metrics_are_optimised_at_once(here):
    goals = ("--metric", "score:max", "--metric", "size")
    words = ("tuned_for_tests:run", "--trials", 12, *SEARCH, *goals)
    ended = run(*words, "--out", "past.parquet", "--report", "how.html")
    assert ended.exit_code == 0, ended.output
    past = Experience.open(here / "past.parquet")
    assert [str(metric.direction) for metric in past.metrics] == ["max", "min"]
    found = json.loads(ended.stdout)
    reached = [(each["values"]["score"], each["values"]["size"]) for each in found]
    good = past.values[past.status == Status.DONE].tolist()
    unbeaten = [
        (score, size)
        for score, size in good
        if not any(s >= score and z <= size and (s, z) != (score, size) for s, z in good)
    ]
    assert sorted(reached) == sorted(unbeaten)
    assert reached == sorted(reached, reverse=True)  # the best score first
    assert all(each["config"] in past.configs.dicts() for each in found)
    assert f"{len(found)} unbeaten in score and size" in ended.stderr
    assert "score against size" in (here / "how.html").read_text()


def test_past_runs_tell_which_way_several_metrics_are_better(here):
    goals = ("--metric", "score:max", "--metric", "size")
    run("tuned_for_tests:run", "--trials", 12, *SEARCH, *goals, "--out", "past.parquet")
    later = run(
        "tuned_for_tests:run", "--trials", 4, "--experience", "past.parquet", "--store", "new.db",
        "--metric", "size", "--metric", "score", "--method", "random",
    )  # fmt: skip
    assert later.exit_code == 0, later.output
    both = import_experience("optuna", here / "new.db")
    assert [(m.name, str(m.direction)) for m in both.metrics] == [("size", "min"), ("score", "max")]


def test_a_metric_that_is_named_twice_is_refused(here):
    goals = ("--metric", "score", "--metric", "score:max")
    ended = run("tuned_for_tests:run", "--trials", 1, *SEARCH, *goals)
    assert "named once" in str(ended.exception)
    assert not (here / "foretune.db").exists()


@pytest.mark.parametrize("metric", ["", " ", ":max", " :MIN"])
def test_a_metric_without_a_name_is_refused(here, metric):
    ended = run("tuned_for_tests:run", "--trials", 1, *SEARCH, "--metric", metric)
    assert f"a --metric must have a name, but got '{metric}'" in str(ended.exception)
    assert not (here / "foretune.db").exists()


@pytest.mark.parametrize(
    ("text", "usual", "found"),
    [
        ("acc:MAX", None, ("acc", "max")),
        ("acc:Min", "max", ("acc", "min")),
        ("acc", "max", ("acc", "max")),
        ("max", None, ("max", None)),
        ("a:b", None, ("a:b", None)),
    ],
)
def test_a_metric_may_tell_its_direction_in_any_case(text, usual, found):
    assert _name_and_direction(text, usual) == found


@pytest.mark.parametrize("pair", ["[0.0001, 0.1]", "[2, 8]", "[0, 1.0]"])
def test_it_is_said_that_two_numbers_are_no_range(tmp_path, pair):
    (tmp_path / "space.json").write_text(f'{{"model": {{"svm": {{"C": {pair}}}, "naive": {{}}}}}}')
    with warns("two-numbers-no-range", field="model:svm:C") as told:
        resolve_space(tmp_path / "space.json", None)
    assert f'{{"range": {pair}}}' in str(told[0].message)


@pytest.mark.parametrize(
    "given", ["[0, 1]", "[8, 2]", "[1, 2, 4]", "[true, false]", '["1", "2"]', '{"range": [1, 9]}']
)
def test_other_lists_get_no_remark(tmp_path, recwarn, given):
    (tmp_path / "space.json").write_text(f'{{"a": {given}, "b": {{"ordinal": [32, 64]}}}}')
    resolve_space(tmp_path / "space.json", None)
    assert not recwarn.list


@pytest.mark.parametrize("name", ["accuracy", "val_acc", "ROC-AUC", "test/r2", "mean score"])
def test_it_is_said_that_what_should_grow_is_minimised(name):
    with warns("direction-not-given", field=name):
        [metric] = resolve_metrics([name], None, None)
    assert metric == Metric(name, Direction.MIN)


@pytest.mark.parametrize("name", ["loss", "seconds", "racc", "accident rate", "accuracy:min"])
def test_metrics_to_minimise_are_not_doubted(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        resolve_metrics([name], None, None)
        resolve_metrics(["accuracy"], "min", None)


@pytest.mark.parametrize(("text", "mended"), [("acc:maximize", "acc:max"), ("a:Minimum", "a:min")])
def test_a_direction_in_longer_words_is_no_name(here, text, mended):
    ended = run("tuned_for_tests:number", "--trials", 1, *SEARCH, "--metric", text)
    assert f"must be min or max, but got '{text}': write {mended}" in str(ended.exception)
    assert not (here / "foretune.db").exists()


def test_trials_are_not_written_where_past_runs_or_a_folder_are(here):
    words = ("tuned_for_tests:number", "--trials", 2, *SEARCH)
    save_past("past.parquet")
    before = (here / "past.parquet").read_bytes()
    (here / "folder.parquet").mkdir()
    for out, said in [
        ("./past.parquet", "another file than the --experience"),
        ("folder.parquet", "'folder.parquet' is a folder: name a file in it"),
    ]:
        past = ("--experience", "past.parquet", "--store", "new.db")
        assert said in str(run(*words, *past, "--out", out).exception)
    assert not (here / "new.db").exists()
    assert (here / "past.parquet").read_bytes() == before


def test_a_report_tells_what_was_found_and_from_what(here, monkeypatch):
    save_past("past.parquet")
    (here / "now.json").write_text(json.dumps({**SPACE, "mode": ["1", "2"]}))
    typed = [
        "tuned_for_tests:number", "--space", "now.json", "--experience", "past.parquet",
        "--method", "ws-gp", "--report", "how.html", "--study", "<b>", "--trials", "2",
    ]  # fmt: skip
    monkeypatch.setattr("sys.argv", ["foretune", "tune", *typed])
    ended = run(*typed)
    assert ended.exit_code == 0, ended.output
    assert "Report how.html" in ended.stderr
    text = (here / "how.html").read_text()
    assert "&lt;b&gt; - Foretune report" in text
    assert "they have no value of 'mode'" in html.unescape(text)
    assert re.search(r"The best pipeline \(trial [01]\)", text)
    [go_on] = re.findall(r"<h3>Go on</h3><pre.*?</pre>", text)
    assert go_on.endswith("<span>--trials</span> <span>4</span></code></pre>")
    refused = run(*typed[:-4], "--report", "how.txt", "--store", "other.db")
    assert "the output must be a .html file" in str(refused.exception)
    assert not (here / "other.db").exists()


def test_a_report_is_written_where_nothing_succeeds(here):
    ended = run("tuned_for_tests:broken", *SEARCH, "--trials", 2, "--report", "how.html")
    assert ended.exit_code == 1
    assert "There is no best configuration yet" in (here / "how.html").read_text()


@pytest.mark.parametrize(
    ("assumed", "said"),
    [("n", "write NAME=VALUE"), ("y=1", "but got 'y'"), ("n=9", "{1..4}, but got 9")],
)
def test_impossible_assumptions_about_past_runs_are_named(here, assumed, said):
    words = ("tuned_for_tests:number", "--trials", 2, *SEARCH)
    save_past("past.parquet")
    ended = run(*words, "--experience", "past.parquet", "--assume", assumed)
    assert said in str(ended.exception)
    ended = run(*words, "--assume", assumed)
    assert "give an --experience" in str(ended.exception)


def test_past_runs_may_have_had_another_name_for_a_hyperparameter(here):
    words = ("tuned_for_tests:number", "--trials")
    save_past("now.parquet")
    now = Experience.open(here / "now.parquet")
    now.renamed({"x": "former"}).save(here / "past.parquet")
    past = ("--experience", "past.parquet", "--method", "ws-gp", "--rename", "former=x")
    ended = run(*words, 1, *SEARCH, *past, "--store", "new.db")
    assert ended.exit_code == 0, ended.output
    assert json.loads(ended.stdout) == min(now.configs.dicts(), key=lambda config: config["x"])
    # The space, too, is that of past runs under the names of today.
    ended = run(*words, 1, *past, "--store", "other.db")
    assert ended.exit_code == 0, ended.output
    ended = run(*words, 1, *SEARCH, "--rename", "former=x")
    assert "--rename describes past runs, but got 'former=x'" in str(ended.exception)


def test_the_other_studies_of_a_store_are_past_tasks(here):
    """The same command on new data, month after month, while the space changes."""
    words = ("tuned_for_tests:number", "--experience", "foretune.db", "--trials")
    first = run(*words, 6, *SEARCH, "--study", "january")  # there is no store yet
    assert first.exit_code == 0, first.output
    assert "Another --study starts from it with --experience sqlite:///" in first.stderr
    run(*words, 6, *SEARCH, "--study", "february", "--seed", 1)
    run("tuned_for_tests:run", "--trials", 2, *SEARCH, "--study", "other", "--metric", "score")
    (here / "wide.json").write_text(json.dumps({**SPACE, "x": {"range": [0.0, 2.0]}}))
    now = ("--space", "wide.json", "--method", "ws-gp", "--study", "march")
    ended = run(*words, 1, *now)
    assert ended.exit_code == 0, ended.output
    assert "1 past study does not fit, such as 'other': a metric must be" in ended.stderr
    assert "another space" not in ended.stderr  # nothing of the others is lost
    trials = import_experience("optuna", here / "foretune.db", studies=["january", "february"])
    bests = [min(trials.task(name).configs.dicts(), key=lambda c: c["x"]) for name in trials.tasks]
    assert json.loads(ended.stdout) in bests
    again = run(*words, 1, *now)
    assert (again.exit_code, again.stdout) == (0, ended.stdout)  # its own trials are no past


def test_files_and_stores_are_read_together(here):
    words = ("tuned_for_tests:number", "--trials", 5, *SEARCH)
    run(*words, "--store", "one.db", "--study", "a", "--out", "past.parquet")
    run(*words, "--store", "two.db", "--study", "a", "--seed", 1)
    (here / "now.json").write_text(
        json.dumps({**SPACE, "x": {"range": [0.0, 1.0]}, "z": ["q", "r"]})
    )
    ended = run(
        "tuned_for_tests:number", "--trials", 1, "--space", "now.json", "--method", "random",
        "--experience", "past.parquet", "--experience", "two.db", "--store", "new.db",
    )  # fmt: skip
    assert ended.exit_code == 0, ended.output
    assert "10 of 10 (of 2 of 2 tasks) are used; they have no value of 'z'" in ended.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--experience", "no.db"], "there is no 'no.db'"),
        (["--experience", "past.parquet", "--direction", "max"], "a direction must be"),
        (
            ["--experience", "past.parquet", "--metric", "los"],
            "'past.parquet' does not fit: a metric must be one of the recorded ones",
        ),
        (["--experience", "max.parquet", "--experience", "past.parquet"], "the same by 'loss'"),
    ],
)
def test_past_runs_that_do_not_fit_are_said(here, words, said):
    tuned = ("tuned_for_tests:number", "--trials", 2, *SEARCH)
    save_past("past.parquet")
    save_past("max.parquet", direction=Direction.MAX)
    assert said in str(run(*tuned, "--store", "new.db", *words).exception)
    assert not (here / "new.db").exists()


def test_lessons_of_past_tasks_are_kept(here):
    words = ("tuned_for_tests:number", "--trials")
    save_past("past.parquet")
    past = ("--experience", "past.parquet", "--method", "ws-gp")
    first = run(*words, 1, *past, "--store", "first.db")
    [prior] = (here / "cache/priors").iterdir()
    before = prior.stat().st_ino
    again = run(*words, 1, *past, "--store", "again.db")
    assert (again.exit_code, again.stdout) == (0, first.stdout)
    # A prior that is learnt again takes the place of the file.
    assert [*prior.parent.iterdir()] == [prior]
    assert prior.stat().st_ino == before


def test_poor_trials_end_early_and_more_trials_resume_them(here):
    words = ("tuned_for_tests:trained", *SEARCH, "--stop", "asha", "--first-step", 1)
    ended = run(*words, "--trials", 10, "--out", "trials.parquet")
    assert ended.exit_code == 0, ended.output
    assert "stopped early" in ended.stderr
    assert "Checkpoints:" in ended.stderr
    trials = Experience.open(here / "trials.parquet")
    assert len(trials) == 10
    paused = sum(trials.status == Status.STOPPED)
    assert 0 < paused < 10
    complete = trials.curves.last_steps == 9.0
    assert complete[trials.status == Status.DONE].all()
    assert len(list((here / "foretune.db.trials").glob("*/trial-*"))) == paused
    again = run(*words[:-4], "--trials", 10, "--out", "complete.parquet")
    assert again.exit_code == 0, again.output
    assert (Experience.open(here / "complete.parquet").status == Status.DONE).all()
    assert not (here / "foretune.db.trials").exists()


def test_interruption_says_how_to_go_on(here):
    ended = run("tuned_for_tests:stopped", *SEARCH, "--trials", 3)
    assert ended.exit_code == 130
    assert "the same command goes on from here" in ended.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--trials", "1"], "got neither"),
        (["m:f", "--command", "x", "--trials", "1"], "got both"),
        (["tuned_for_tests:walk", "--trials", "1"], "there is no 'walk'"),
        (["--command", "run {y}", "--trials", "1"], "'{y}' is none of"),
        (
            ["tuned_for_tests:run", "--trials", "1", "--space", "no.json"],
            "there is no file 'no.json': write one",
        ),
        (["tuned_for_tests:run", "--trials", "1", "--space", "bad.json"], "must be a JSON file"),
        (["tuned_for_tests:run", "--trials", "1", "--store", "x.txt"], "must be a URL"),
        (["tuned_for_tests:run", "--trials", "1", "--out", "x.csv"], "must be a .parquet file"),
        (["tuned_for_tests:run", "--trials", "1", "--method", "gpp"], "did you mean gp"),
        (["tuned_for_tests:run", "--trials", "1", "--method", "gcp-prior"], "got no experience"),
    ],
)
def test_mistakes_are_one_sentence_and_change_nothing(here, words, said):
    (here / "bad.json").write_text("{")
    before = sorted(os.listdir(here))
    given = words if "--space" in words else [*words, "--space", "space.json"]
    ended = run(*given)
    assert isinstance(ended.exception, ForetuneError)
    assert said in str(ended.exception)
    assert [name for name in sorted(os.listdir(here)) if name != "__pycache__"] == before


def test_a_store_that_cannot_be_is_refused_before_past_runs_are_read(here):
    ended = run("tuned_for_tests:run", "--experience", "absent.parquet", "--store", "x.txt")
    assert "a store must be a URL" in str(ended.exception)


@pytest.mark.parametrize("seed", [-1, 2**32])
def test_a_seed_that_is_none_is_refused(here, seed):
    ended = run("tuned_for_tests:run", *SEARCH, "--trials", 1, "--seed", seed)
    assert ended.exit_code == 2
    assert f"{seed} is not in the range 0<=x<=4294967295" in ended.stderr


def test_a_study_of_another_function_is_not_joined(here):
    run("tuned_for_tests:number", *SEARCH, "--trials", 1, "--study", "one")
    ended = run("tuned_for_tests:broken", *SEARCH, "--trials", 1, "--study", "one")
    assert "the setting 'objective' is tuned_for_tests:number" in str(ended.exception)


def test_when_nothing_succeeds_the_reason_is_shown(here):
    ended = run("tuned_for_tests:broken", *SEARCH, "--trials", 2, "--out", "none.parquet")
    assert ended.exit_code == 1
    assert "2 x the result 'loss' must be a finite number, but got 'none'" in ended.stderr
    assert ended.stdout == ""
    assert not (here / "none.parquet").exists()


def test_after_failures_alone_it_says_what_tries_again(here):
    words = ("tuned_for_tests:mended", *SEARCH)
    advice = "Failed trials count: to try again, raise --trials, or begin anew with another --store"
    ended = run(*words, "--trials", 1)
    assert "1 trial ended, 1 of them failed" in ended.stderr
    assert advice in ended.stderr
    (here / "mended").touch()
    assert advice in run(*words, "--trials", 1).stderr
    for remedy in (("--trials", 2), ("--trials", 1, "--store", "other.db")):
        again = run(*words, *remedy)
        assert again.exit_code == 0, again.output
        assert advice not in again.stderr


def test_a_space_in_which_all_has_failed_is_begun_anew_in_another_store(here):
    (here / "space.json").write_text(json.dumps({"x": ["a", "b"]}))
    ended = run("tuned_for_tests:broken", *SEARCH, "--trials", 5)
    assert ended.exit_code == 1
    assert "to try again, begin anew with another --store or --study" in ended.stderr


def test_a_mistyped_metric_can_be_corrected(here):
    words = ("tuned_for_tests:run", *SEARCH, "--trials", 3, "--metric")
    assert run(*words, "scor").exit_code == 1
    with pytest.warns(
        ForetuneWarning, match="no trial of the study 'tuned_for_tests:run' has succ"
    ):
        ended = run(*words, "size")
    assert ended.exit_code == 0, ended.output
    assert "3 trials ended" in ended.stderr
    assert "the metric is size:min" in str(run(*words, "score").exception)


def test_without_mlflow_no_store_is_left_behind(here, monkeypatch):
    monkeypatch.setitem(sys.modules, "mlflow", None)
    before = sorted(os.listdir(here))
    ended = run("tuned_for_tests:number", *SEARCH, "--trials", 1, "--mlflow", "http://localhost:1")
    assert "foretune[mlflow]" in str(ended.exception)
    assert [name for name in sorted(os.listdir(here)) if name != "__pycache__"] == before


def test_output_of_a_function_is_kept_off_standard_output(in_processes, capfd):
    ended = run("tuned_for_tests:talkative", *SEARCH, "--trials", 1)
    assert ended.exit_code == 0, ended.output
    printed = capfd.readouterr()  # by the worker, past this process
    assert (printed.out, printed.err) == ("", "hello\n")


def test_a_range_that_is_written_as_choices_is_refused(here):
    (here / "list.json").write_text(json.dumps({"kind": {"a": {"x": [0.001, 0.1, "log"]}}}))
    ended = run("tuned_for_tests:number", "--space", "list.json", "--trials", 1)
    assert 'in JSON {"range": [low, high, "log"]}, but got' in str(ended.exception)
    assert not (here / "foretune.db").exists()
