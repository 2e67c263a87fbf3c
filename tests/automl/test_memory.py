import json
import os
import signal
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from foretune.automl.datasets import Task
from foretune.automl.joining import joined
from foretune.automl.memory import Fit, Memory, home, task_name
from foretune.errors import ExperienceError, UsageError
from foretune.experience import Direction, Evaluation, Experience, Metric, Status
from foretune.space import Space
from tests.automl.tables import mixed_table

SPACE = Space.of({"model": {"knn": {"k": (1, 9)}, "linear": {}}}, stages=("model",))
ACCURACY, ERROR = Metric("accuracy", Direction.MAX), Metric("log_loss", Direction.MIN)
NAME = "pipeline-classification"


@pytest.fixture
def memory(tmp_path):
    return Memory(tmp_path / "experience")


def fit(task="iris@0a", *, space=SPACE, metrics=(ACCURACY,)):
    return Fit(NAME, space, metrics, task, {"log_rows": 5.0, "odd": float("inf")})


def trial(k, accuracy, task="iris@0a", **more):
    return Evaluation(
        task, {"model": "knn", "model:knn:k": k}, {"accuracy": accuracy}, seconds=1.5, **more
    )


def accuracies(memory, task="iris@0a"):
    return {
        each.config.get("model:knn:k"): each.values.get("accuracy")
        for each in memory.earlier(NAME, task)
    }


def test_what_is_remembered_is_recalled(memory):
    memory.remember(fit(), [trial(1, 0.5), trial(2, 0.75)])
    known = memory.recall(NAME)
    assert known.tasks == ("iris@0a",)
    assert known.metrics == (ACCURACY,)
    assert known.meta_features == {"iris@0a": {"log_rows": 5.0}}
    np.testing.assert_allclose(known.seconds, 1.5)
    assert memory.earlier(NAME, "iris@0a") == [trial(1, 0.5), trial(2, 0.75)]
    assert memory.spaces() == [NAME]


def test_nothing_is_recalled_and_nothing_is_made_where_there_is_nothing(memory):
    assert memory.recall(NAME) is None
    assert memory.spaces() == []
    assert memory.earlier(NAME, "iris@0a") == []
    assert not memory.folder.exists()


def test_the_same_table_again_is_the_same_task_and_its_trials_are_not_doubled(memory):
    memory.remember(fit(), [trial(1, 0.5), trial(2, 0.75)])
    renamed = fit("flowers@0a")
    memory.remember(renamed, [trial(2, 0.8, "flowers@0a"), trial(3, 0.9, "flowers@0a")])
    assert memory.recall(NAME).tasks == ("iris@0a",)
    assert accuracies(memory, "flowers@0a") == {1: 0.5, 2: 0.8, 3: 0.9}


def test_a_success_outlives_a_later_failure_and_replaces_an_earlier_one(memory):
    failed = {"status": Status.TIMEOUT}
    memory.remember(fit(), [trial(1, 0.5), replace(trial(2, 0.5), values={}, **failed)])
    memory.remember(fit(), [replace(trial(1, 0.5), values={}, **failed), trial(2, 0.75)])
    assert accuracies(memory) == {1: 0.5, 2: 0.75}
    assert {each.status for each in memory.earlier(NAME, "iris@0a")} == {Status.DONE}


def test_metrics_of_several_fits_stand_beside_each_other(memory):
    memory.remember(fit(), [trial(1, 0.5), trial(2, 0.75)])
    later = [replace(trial(2, 0), values={"log_loss": 0.3}), trial(3, 0.9)]
    memory.remember(fit(metrics=(ERROR, ACCURACY)), later)
    known = memory.recall(NAME)
    assert known.metrics == (ACCURACY, ERROR)
    values = {each.config["model:knn:k"]: each.values for each in memory.earlier(NAME, "iris@0a")}
    assert values == {
        1: {"accuracy": 0.5},
        2: {"accuracy": 0.75, "log_loss": 0.3},
        3: {"accuracy": 0.9},
    }


def test_spaces_of_several_fits_are_joined(memory):
    wider = Space.of(
        {"model": {"rf": {"trees": (10, 99)}, "knn": {"k": (1, 20)}}}, stages=("model",)
    )
    memory.remember(fit(), [trial(1, 0.5)])
    config = {"model": "rf", "model:rf:trees": 50}
    found = [Evaluation("wine@0b", config, {"accuracy": 0.9}), trial(15, 0.6, "wine@0b")]
    memory.remember(fit("wine@0b", space=wider), found)
    assert accuracies(memory) == {1: 0.5}
    assert {each.config["model"] for each in memory.earlier(NAME, "wine@0b")} == {"rf", "knn"}


def test_a_space_that_cannot_be_joined_begins_anew_and_the_older_file_stays(memory):
    memory.remember(fit(), [trial(1, 0.5)])
    other = Space.of({"model": {"knn": {"k": ["few", "many"]}}}, stages=("model",))
    found = Evaluation("a@1", {"model": "knn", "model:knn:k": "few"}, {"accuracy": 0.4})
    memory.remember(fit("a@1", space=other), [found])
    assert memory.recall(NAME).tasks == ("a@1",)
    [older] = memory.folder.glob("*.before-*")
    assert len(older.read_bytes()) > 0


def test_a_fit_of_which_nothing_succeeded_leaves_nothing(memory):
    memory.remember(fit(), [replace(trial(1, 0.5), values={}, status=Status.FAILED)])
    assert memory.recall(NAME) is None
    assert list((memory.folder / f"{NAME}.journals").iterdir()) == []


def test_a_running_fit_is_left_alone_until_it_ends(memory):
    recording = memory.begin(fit())
    recording.add({"model": "linear"}, {"accuracy": 0.5})
    assert memory.recall(NAME) is None
    recording.add({"model": "knn", "model:knn:k": 3}, {"accuracy": 0.75}, seconds=2.0)
    recording.close()
    assert len(memory.recall(NAME)) == 2
    assert list((memory.folder / f"{NAME}.journals").iterdir()) == []


KILLED = """
import sys, time
from foretune.automl.memory import Fit, Memory
from foretune.experience import Direction, Metric
from foretune.space import Space
from pathlib import Path
space = Space.from_json(sys.argv[2])
fit = Fit("pipeline-classification", space, (Metric("accuracy", Direction.MAX),), "iris@0a", {})
recording = Memory(Path(sys.argv[1])).begin(fit)
for k in (1, 2, 3):
    recording.add({"model": "knn", "model:knn:k": k}, {"accuracy": k / 10})
print("ready", flush=True)
time.sleep(600)
"""


def test_a_killed_fit_loses_nothing_that_had_ended(memory):
    command = [sys.executable, "-c", KILLED, str(memory.folder), SPACE.to_json()]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline().strip() == "ready"
            assert memory.recall(NAME) is None
        finally:
            os.kill(process.pid, signal.SIGKILL)
    # The line that it was writing when it was killed.
    [journal] = (memory.folder / f"{NAME}.journals").glob("*.jsonl")
    with journal.open("a") as stream:
        stream.write('{"task": "iris@0a", "config": {"mod')
    assert accuracies(memory) == {1: 0.1, 2: 0.2, 3: 0.3}


def test_killed_between_merging_and_removing_the_journal_is_merged_once(memory, monkeypatch):
    monkeypatch.setattr("foretune.automl.memory._remove", lambda head: None)
    memory.remember(fit(), [trial(1, 0.5)])
    monkeypatch.undo()
    assert len(list((memory.folder / f"{NAME}.journals").glob("*.json"))) == 1
    assert len(memory.recall(NAME)) == 1
    assert list((memory.folder / f"{NAME}.journals").iterdir()) == []


AT_ONCE = """
import sys
from foretune.automl.memory import Fit, Memory
from foretune.experience import Direction, Evaluation, Metric
from foretune.space import Space
from pathlib import Path
space = Space.from_json(sys.argv[2])
memory = Memory(Path(sys.argv[1]))
input()
for number in range(4):
    task = f"t{number}@{sys.argv[3]}{number}"
    fit = Fit("pipeline-classification", space, (Metric("accuracy", Direction.MAX),), task, {})
    memory.remember(fit, [Evaluation(task, {"model": "linear"}, {"accuracy": 0.5})])
"""


def test_two_processes_at_once_do_not_lose_each_other(memory):
    started = [
        subprocess.Popen(
            [sys.executable, "-c", AT_ONCE, str(memory.folder), SPACE.to_json(), which],
            stdin=subprocess.PIPE,
            text=True,
        )
        for which in "ab"
    ]
    for process in started:
        process.stdin.write("\n")
        process.stdin.flush()
    for process in started:
        process.communicate()
        assert process.returncode == 0
    tasks = {f"t{number}@{which}{number}" for which in "ab" for number in range(4)}
    assert set(memory.recall(NAME).tasks) == tasks


def test_a_broken_journal_is_set_aside(memory):
    memory.remember(fit(), [trial(1, 0.5)])
    folder = memory.folder / f"{NAME}.journals"
    (folder / "aa.json").write_text("{}")
    (folder / "bb.json").write_text("no json")
    assert len(memory.recall(NAME)) == 1
    assert sorted(path.name for path in folder.glob("*.broken")) == ["aa.broken", "bb.broken"]


def test_forgetting_one_or_all(memory):
    memory.remember(fit(), [trial(1, 0.5), trial(2, 0.6)])
    memory.remember(fit("iris@0c"), [trial(1, 0.5, "iris@0c")])
    memory.remember(fit("wine@0b"), [trial(1, 0.5, "wine@0b")])
    with pytest.raises(UsageError, match="there is no 'beer'"):
        memory.forget(NAME, "beer")
    assert memory.forget(NAME, "iris@0c") == 1
    assert memory.recall(NAME).tasks == ("iris@0a", "wine@0b")
    assert memory.forget(NAME, "iris") == 2
    assert memory.forget(NAME) == 1
    assert memory.recall(NAME) is None
    assert memory.forget(NAME) == 0


def test_export_is_an_experience_file(memory, tmp_path):
    with pytest.raises(UsageError, match="nothing is of"):
        memory.export(NAME, tmp_path / "own.parquet")
    memory.remember(fit(), [trial(1, 0.5)])
    memory.export(NAME, tmp_path / "own.parquet")
    assert len(Experience.open(tmp_path / "own.parquet")) == 1


def test_experience_from_elsewhere_is_added_once(memory):
    memory.remember(fit(), [trial(1, 0.5)])
    other = memory.recall(NAME)
    memory.forget(NAME)
    memory.add(NAME, other)
    memory.add(NAME, other)
    assert len(memory.recall(NAME)) == 1


def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="FORETUNE_HOME"):
        Memory(tmp_path / "file").begin(fit())


def test_a_damaged_file_is_said(memory):
    memory.remember(fit(), [trial(1, 0.5)])
    (memory.folder / f"{NAME}.parquet").write_bytes(b"PAR1 no more")
    with pytest.raises(ExperienceError, match="must be whole"):
        memory.recall(NAME)


def test_only_numbers_about_a_table_are_kept(memory):
    table = mixed_table(Task.CLASSIFICATION)
    task = task_name(table)
    memory.remember(fit(task), [trial(1, 0.5, task)])
    content = (memory.folder / f"{NAME}.parquet").read_bytes()
    for secret in ("letter", "town", "high", "middle"):
        assert secret.encode() not in content


def test_a_task_is_named_by_its_content():
    table, other = mixed_table(Task.CLASSIFICATION), mixed_table(Task.CLASSIFICATION, seed=1)
    name, _, print_ = task_name(table).rpartition("@")
    assert name == "mixed"
    assert len(print_) == 16
    assert task_name(replace(table, name="copy")).endswith(print_)
    assert not task_name(other).endswith(print_)
    x = table.x.copy()
    x[0, 0] += 1e-9
    assert not task_name(replace(table, x=x)).endswith(print_)


def test_home_is_where_the_environment_says(monkeypatch, tmp_path):
    monkeypatch.setenv("FORETUNE_HOME", str(tmp_path))
    assert home() == tmp_path
    assert Memory.of_user().folder == tmp_path / "experience"
    monkeypatch.delenv("FORETUNE_HOME")
    assert home() != tmp_path


def test_the_newest_value_wins_in_any_order_of_tasks():
    def table(rows):
        tasks = sorted({task for task, *_ in rows})
        return Experience.build(
            SPACE,
            [ACCURACY],
            tasks,
            [tasks.index(task) for task, *_ in rows],
            SPACE.encode([{"model": "knn", "model:knn:k": k} for _, k, _ in rows]),
            np.arange(len(rows)),
            [[value] for *_, value in rows],
        )

    first = table([("b", 1, 0.1), ("a", 2, 0.2), ("b", 3, 0.3)])
    second = table([("b", 1, 0.9), ("c", 1, 0.4)])
    made = joined(first, second)
    found = {
        (task, config["model:knn:k"]): value
        for task in made.tasks
        for config, value in zip(
            made.task(task).configs.dicts(), made.task(task).values[:, 0].tolist(), strict=True
        )
    }
    assert found == {("a", 2): 0.2, ("b", 1): 0.9, ("b", 3): 0.3, ("c", 1): 0.4}


def test_the_journal_of_a_fit_is_one_line_a_trial(memory):
    recording = memory.begin(fit())
    recording.add({"model": "linear"}, {"accuracy": 0.5})
    [journal] = (memory.folder / f"{NAME}.journals").glob("*.jsonl")
    [line] = journal.read_text().splitlines()
    assert json.loads(line)["values"] == {"accuracy": 0.5}
    recording.close()
