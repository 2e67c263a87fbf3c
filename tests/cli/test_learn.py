import json
from dataclasses import replace

import pytest
from click.testing import CliRunner

from foretune.automl.knowledge.bundle import Bundle
from foretune.automl.knowledge.knowledge import own_bundle
from foretune.automl.knowledge.learn_bundle import KEPT_METHODS
from foretune.automl.knowledge.memory import Memory
from foretune.cli.learn import METHODS, learn_command
from foretune.experience import Direction, Experience, Metric
from foretune.run.executor_choice import ExecutorChoice
from foretune.run.inline import InlineExecutor
from tests.automl.past import SPACE, past


@pytest.fixture(autouse=True)
def own_home(tmp_path, monkeypatch):
    monkeypatch.setenv("FORETUNE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("foretune.automl.knowledge.knowledge.SHIPPED", tmp_path / "nothing")


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "runs.parquet"
    past(n_tasks=3, n_configs=8).save(path)
    return path


def run(*words):
    return CliRunner().invoke(learn_command, [str(word) for word in words])


def test_the_methods_are_those_that_are_kept():
    assert METHODS == KEPT_METHODS


def test_without_own_experience_there_is_nothing_to_learn():
    ended = run()
    assert ended.exit_code == 0
    assert "Nothing to learn" in ended.output


def test_own_experience_is_learnt_from_and_known_to_be_up_to_date():
    Memory.of_user().add(SPACE, past(n_tasks=3, n_configs=8))
    words = ("--method", "zero-shot", "--metric", "r2", "--time", "10m")
    first = run(*words)
    assert first.exit_code == 0, first.exception
    assert f"{SPACE}: own: 24 evaluations on 3 datasets\n" in first.output
    assert "learnt in" in first.output
    assert set(Bundle.open(own_bundle()).spaces[SPACE].priors) == {"zero-shot"}
    again = run(*words, "--space", SPACE).output
    assert again.count("up to date") == 2


def test_without_jax_the_priors_that_ship_stay_in_use(monkeypatch):
    Memory.of_user().add(SPACE, past(n_tasks=3, n_configs=8))
    monkeypatch.setattr("foretune.cli.learn.find_spec", lambda name: None)
    ended = run("--metric", "r2")
    assert ended.exit_code == 0, ended.exception
    assert "pip install 'foretune[neural]'" in ended.output
    learnt = Bundle.open(own_bundle()).spaces[SPACE]
    assert learnt.priors == {}
    assert set(learnt.portfolios) == {"r2"}


def test_lessons_go_where_the_options_say(file, tmp_path, monkeypatch):
    asked = []

    def pool(site, room, *, workers, limits):
        asked.append((site.kind, site.address, workers))
        return InlineExecutor(room)

    monkeypatch.setattr("foretune.run.executor_choice.find_spec", lambda name: True)
    monkeypatch.setattr(ExecutorChoice, "pool", pool)
    out = tmp_path / "made"
    words = ("--space", SPACE, "--experience", file, "--out", out, "--method", "zero-shot")
    ended = run(*words, "--jobs", 8, "--executor", "ray", "--address", "auto")
    assert ended.exit_code == 0, ended.exception
    assert asked == [("ray", "auto", 8)]
    assert set(Bundle.open(out).spaces[SPACE].priors["zero-shot"]) == {"r2", "rmse"}


def test_a_file_becomes_a_folder_that_stands_alone(file, tmp_path):
    note = {"recipe": {"folds": 3}, "evaluations": 24}
    file.with_suffix(".collect.json").write_text(json.dumps(note))
    out = tmp_path / "made"
    words = ("--space", SPACE, "--experience", file, "--out", out, "--method", "zero-shot")
    ended = run(*words, "--time", "10m")
    assert ended.exit_code == 0, ended.exception
    assert f"Saved {out}" in ended.output
    learnt = Bundle.open(out).spaces[SPACE]
    assert learnt.about["recipe"] == {"folds": 3}
    assert set(learnt.portfolios) == {"r2", "rmse"}
    assert (learnt.tasks, learnt.evaluations) == (3, 24)
    assert learnt.experience is not None


def test_a_file_that_turns_a_metric_is_refused(file, tmp_path):
    known = Experience.open(file).with_metrics(["r2"])
    replace(known, metrics=(Metric("r2", Direction.MIN),)).save(file)
    ended = run("--space", SPACE, "--experience", file, "--out", tmp_path / "made")
    assert "'r2' must be recorded as 'max', but got 'min'" in str(ended.exception)
    assert not (tmp_path / "made").exists()


def test_time_that_is_over_is_said_and_portfolios_are_there(file, tmp_path):
    out = tmp_path / "made"
    words = ("--space", SPACE, "--experience", file, "--out", out, "--method", "zero-shot")
    ended = run(*words, "--time", "0.001s")
    assert ended.exit_code == 0, ended.exception
    assert ended.output.count("the time was over") == 2
    assert ended.output.count("such as --time 10m") == 1
    assert set(Bundle.open(out).spaces[SPACE].portfolios) == {"r2", "rmse"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--experience", "runs.parquet"], "give all three"),
        (["--experience", "runs.parquet", "--out", "made"], "give all three"),
        (["--method", "zero-shoot"], "zero-shot"),
        (["--address", "auto"], "leave the address out"),
    ],
)
def test_mistakes_are_one_sentence(words, said):
    assert said in str(run(*words).exception)
