from dataclasses import replace

import pytest
from click.testing import CliRunner

from foretune.automl.knowledge.bundle import Bundle
from foretune.automl.knowledge.fit_journal import FitDescription
from foretune.automl.knowledge.knowledge import own_bundle
from foretune.automl.knowledge.memory import Memory
from foretune.cli.experience_memory import experience_group
from foretune.errors import ForetuneWarning
from foretune.experience import Direction, Evaluation, Experience, Metric
from foretune.space import Space
from tests.automl.past import SPACE, past

OTHER = Space.of({"algorithm": {"knn": {"n_neighbors": (1, 50)}}}, stages=("algorithm",))


@pytest.fixture(autouse=True)
def own_home(tmp_path, monkeypatch):
    monkeypatch.setenv("FORETUNE_HOME", str(tmp_path / "home"))


def run(*words):
    return CliRunner().invoke(experience_group, [str(word) for word in words])


def remember(task="mine@000000000000000a", name=SPACE):
    metric = Metric("r2", Direction.MAX)
    config = {"algorithm": "knn", "algorithm:knn:n_neighbors": 5}
    found = [Evaluation(task, config, {"r2": 0.5})]
    Memory.of_user().remember(FitDescription(name, OTHER, (metric,), task, {}), found)


def test_nothing_is_shown_where_nothing_is():
    ended = run("show")
    assert ended.exit_code == 0
    assert "Nothing is remembered yet" in ended.output


def test_datasets_are_shown_with_their_best():
    remember()
    remember("wine@000000000000000b")
    shown = run("show").output
    assert f"{SPACE}: 2 datasets, 2 evaluations" in shown
    assert "mine@000000000000000a      1, best r2 0.5" in shown
    assert "Kept in" in shown
    assert "Configurations  1" in run("show", "--space", SPACE).output


def test_the_best_is_shown_by_every_metric_that_was_measured():
    """Also by the one that only this search was by."""
    remember("wine@000000000000000b")
    task = "mine@000000000000000a"
    metrics = (Metric("mae"), Metric("r2", Direction.MAX))
    configs = [{"algorithm": "knn", "algorithm:knn:n_neighbors": n} for n in (5, 6)]
    values = [{"r2": 0.5, "mae": 3.0}, {"r2": 0.25, "mae": 2.0}]
    found = [Evaluation(task, *pair) for pair in zip(configs, values, strict=True)]
    Memory.of_user().remember(FitDescription(SPACE, OTHER, metrics, task, {}), found)
    shown = run("show").output
    assert f"{task}      2, best r2 0.5, mae 2\n" in shown
    assert "wine@000000000000000b      1, best r2 0.5\n" in shown


def test_export_takes_the_only_space_or_asks(tmp_path):
    remember()
    out = tmp_path / "own.parquet"
    assert "1 dataset, 1 evaluation" in run("export", out).output
    assert Experience.open(out).tasks == ("mine@000000000000000a",)
    remember(name="cash")
    assert "give --space" in str(run("export", out).exception)
    assert run("export", out, "--space", "cash").exit_code == 0
    assert "rename it" in str(run("export", tmp_path / "own.csv").exception)


def test_files_are_added_if_they_fit(tmp_path):
    file = tmp_path / "collected.parquet"
    past(n_tasks=2, n_configs=4).save(file)
    added = run("add", file, "--space", SPACE)
    assert added.exit_code == 0, added.exception
    assert ": 2 datasets, 8 evaluations" in added.output
    assert Memory.of_user().recall(SPACE).tasks == ("past0", "past1")
    wrong = run("add", file, "--space", "pipeline-classification")
    assert "the metric of a classification" in str(wrong.exception)


def test_a_file_that_turns_a_metric_is_refused_before_anything_is_written(tmp_path):
    file = tmp_path / "wrong.parquet"
    known = past(n_tasks=2, n_configs=4).with_metrics(["r2"])
    replace(known, metrics=(Metric("r2", Direction.MIN),)).save(file)
    said = str(run("add", file, "--space", SPACE).exception)
    assert "'r2' must be recorded as 'max', but got 'min'" in said
    assert not Memory.of_user().folder.exists()


def test_forgetting_needs_a_name_or_all():
    remember()
    remember(name="cash")
    for words in ([], ["mine", "--all"]):
        assert "name a dataset, or give --all" in str(run("forget", *words).exception)
    assert "choose one with --space" in str(run("forget", "mine").exception)
    assert "Forgot 1 evaluation\n" in run("forget", "mine", "--space", SPACE).output
    assert Memory.of_user().spaces() == ["cash"]
    assert "Forgot 1 evaluation\n" in run("forget", "--all").output
    assert Memory.of_user().spaces() == []
    assert Bundle.open(own_bundle()).spaces == {}


def test_a_name_that_one_space_has_is_forgotten_without_naming_the_space():
    remember()
    remember("wine@000000000000000b", name="cash")
    assert "there is no 'beer'" in str(run("forget", "beer").exception)
    assert "Forgot 1 evaluation\n" in run("forget", "wine").output
    assert Memory.of_user().spaces() == [SPACE]


def test_a_damaged_file_is_in_nobodys_way():
    remember()
    remember(name="cash")
    file = Memory.of_user().folder / f"{SPACE}.parquet"
    file.write_bytes(file.read_bytes()[:900])
    with pytest.warns(ForetuneWarning, match="set aside"):
        shown = run("show")
    assert (shown.exit_code, "cash: 1 dataset" in shown.output) == (0, True)
    assert "Forgot 1 evaluation\n" in run("forget", "--all").output
    assert [path.suffix for path in Memory.of_user().folder.iterdir() if path.is_file()] == [
        ".lock",
        ".lock",
    ]


def test_forgetting_one_of_several_tables_of_a_name():
    remember("train@000000000000000a")
    remember("train@000000000000000b")
    said = str(run("forget", "train").exception)
    assert "'train@000000000000000a', 'train@000000000000000b'" in said
    assert "Forgot 1 evaluation\n" in run("forget", "train@000000000000000a").output
    assert Memory.of_user().recall(SPACE).tasks == ("train@000000000000000b",)


def test_forgetting_all_leaves_nothing_that_was_set_aside():
    remember()
    changed = Space.of({"algorithm": {"knn": {"n_neighbors": ["few"]}}}, stages=("algorithm",))
    config = {"algorithm": "knn", "algorithm:knn:n_neighbors": "few"}
    metric = Metric("r2", Direction.MAX)
    found = [Evaluation("other", config, {"r2": 0.5})]
    Memory.of_user().remember(FitDescription(SPACE, changed, (metric,), "other", {}), found)
    assert "Forgot 1 evaluation\n" in run("forget", "other").output
    assert [path.suffix for path in Memory.of_user().folder.glob("*.before-*")] != []
    assert "Forgot 1 evaluation\n" in run("forget", "--all").output
    assert list(Memory.of_user().folder.glob("*.before-*")) == []
