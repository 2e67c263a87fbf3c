import json
import os
import shutil
import signal
import subprocess
import sys
import warnings
from dataclasses import replace

import numpy as np
import pytest
from pyarrow import parquet

from foretune.automl.knowledge.experience_update import common_first, merge_newest
from foretune.automl.knowledge.fit_journal import FitDescription
from foretune.automl.knowledge.memory import Memory, home
from foretune.errors import ExperienceError, ForetuneWarning
from foretune.experience import Direction, Evaluation, Experience, Metric, Status
from foretune.experience.parquet_format import HEADER_KEY
from foretune.space import Space
from foretune.tables.identity import task_name
from foretune.tables.target import Task
from tests.automl.samples import mixed_table
from tests.refusals import refuses, warns

SPACE = Space.of({"model": {"knn": {"k": (1, 9)}, "linear": {}}}, stages=("model",))
ACCURACY, ERROR = Metric("accuracy", Direction.MAX), Metric("log_loss", Direction.MIN)
NAME = "pipeline-classification"
IRIS, RENAMED = "iris@000000000000000a", "flowers@000000000000000a"
OTHER_IRIS, WINE = "iris@000000000000000c", "wine@000000000000000b"


@pytest.fixture
def memory(tmp_path):
    return Memory(tmp_path / "experience")


def fit(task=IRIS, *, space=SPACE, metrics=(ACCURACY,)):
    return FitDescription(NAME, space, metrics, task, {"log_rows": 5.0, "odd": float("inf")})


def trial(k, accuracy, task=IRIS, **more):
    return Evaluation(
        task, {"model": "knn", "model:knn:k": k}, {"accuracy": accuracy}, seconds=1.5, **more
    )


def accuracies(memory, task=IRIS):
    return {
        each.config.get("model:knn:k"): each.values.get("accuracy")
        for each in memory.earlier(NAME, task)
    }


def test_remembered_fits_are_recalled(memory):
    memory.remember(fit(), [trial(1, 0.5), trial(2, 0.75)])
    known = memory.recall(NAME)
    assert known.tasks == (IRIS,)
    assert known.metrics == (ACCURACY,)
    assert known.meta_features == {IRIS: {"log_rows": 5.0}}
    np.testing.assert_allclose(known.seconds, 1.5)
    assert memory.earlier(NAME, IRIS) == [trial(1, 0.5), trial(2, 0.75)]
    assert memory.spaces() == [NAME]


def test_nothing_is_recalled_and_nothing_is_made_where_there_is_nothing(memory):
    assert memory.recall(NAME) is None
    assert memory.spaces() == []
    assert memory.earlier(NAME, IRIS) == []
    assert not memory.folder.exists()


def test_metrics_that_most_tables_have_come_first(memory, tmp_path):
    f1 = Metric("f1_macro", Direction.MAX)
    both = replace(trial(1, 0.5), values={"f1_macro": 0.4, "log_loss": 0.3})
    memory.remember(fit(metrics=(f1, ERROR)), [both])
    for task in (WINE, OTHER_IRIS):
        lost = replace(trial(2, 0, task), values={}, status=Status.FAILED)
        memory.remember(fit(task, metrics=(f1, ACCURACY, ERROR)), [trial(1, 0.75, task), lost])
    made = memory.export(NAME, tmp_path / "own.parquet")
    assert made.metrics == Experience.open(tmp_path / "own.parquet").metrics
    # Of those that equally many have, the one that was known first.
    assert made.metrics == (ACCURACY, f1, ERROR)
    assert accuracies(memory, WINE) == {1: 0.75, 2: None}
    assert memory.earlier(NAME, IRIS) == [both]


def test_the_same_table_again_is_the_same_task_and_its_trials_are_not_doubled(memory):
    memory.remember(fit(), [trial(1, 0.5), trial(2, 0.75)])
    renamed = fit(RENAMED)
    memory.remember(renamed, [trial(2, 0.8, RENAMED), trial(3, 0.9, RENAMED)])
    assert memory.recall(NAME).tasks == (IRIS,)
    assert accuracies(memory, RENAMED) == {1: 0.5, 2: 0.8, 3: 0.9}


def test_a_success_outlives_a_later_failure_and_replaces_an_earlier_one(memory):
    failed = {"status": Status.TIMEOUT}
    memory.remember(fit(), [trial(1, 0.5), replace(trial(2, 0.5), values={}, **failed)])
    memory.remember(fit(), [replace(trial(1, 0.5), values={}, **failed), trial(2, 0.75)])
    assert accuracies(memory) == {1: 0.5, 2: 0.75}
    assert {each.status for each in memory.earlier(NAME, IRIS)} == {Status.DONE}


def test_metrics_of_several_fits_stand_beside_each_other(memory):
    memory.remember(fit(), [trial(1, 0.5), trial(2, 0.75)])
    later = [replace(trial(2, 0), values={"log_loss": 0.3}), trial(3, 0.9)]
    memory.remember(fit(metrics=(ERROR, ACCURACY)), later)
    known = memory.recall(NAME)
    assert known.metrics == (ACCURACY, ERROR)
    values = {each.config["model:knn:k"]: each.values for each in memory.earlier(NAME, IRIS)}
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
    found = [Evaluation(WINE, config, {"accuracy": 0.9}), trial(15, 0.6, WINE)]
    memory.remember(fit(WINE, space=wider), found)
    assert accuracies(memory) == {1: 0.5}
    assert {each.config["model"] for each in memory.earlier(NAME, WINE)} == {"rf", "knn"}


def test_a_space_that_cannot_be_joined_begins_anew_and_the_older_file_stays(memory):
    memory.remember(fit(), [trial(1, 0.5)])
    other = Space.of({"model": {"knn": {"k": ["few", "many"]}}}, stages=("model",))
    found = Evaluation("a@1", {"model": "knn", "model:knn:k": "few"}, {"accuracy": 0.4})
    memory.remember(fit("a@1", space=other), [found])
    assert memory.recall(NAME).tasks == ("a@1",)
    [older] = memory.folder.glob("*.before-*")
    assert len(older.read_bytes()) > 0


KINDS = Space.of({"model": {"knn": {"k": ["few", "many"]}}}, stages=("model",))
"""A space that cannot be joined with the other: a number has become a choice."""


def few(task):
    return Evaluation(task, {"model": "knn", "model:knn:k": "few"}, {"accuracy": 0.4})


def ended_together(memory, *fits):
    """Journals of fits that were killed one after the other, and that nobody has merged yet."""
    for about, each in fits:
        recording = memory.begin(about)
        recording.add(each)
        recording._alive.close()


@pytest.mark.parametrize("earlier", [[], [trial(1, 0.5, "first")]])
def test_journals_that_cannot_be_joined_are_all_kept(memory, earlier):
    if earlier:
        memory.remember(fit("first"), earlier)
    number, kind = fit("number"), fit("kind", space=KINDS)
    ended_together(memory, (number, trial(2, 0.6, "number")), (kind, few("kind")))
    assert memory.recall(NAME).tasks == ("kind",)
    [older] = memory.folder.glob("*.before-*")
    assert Experience.open(older).tasks == (*(each.task for each in earlier), "number")
    assert list((memory.folder / f"{NAME}.journals").iterdir()) == []


def begun_one_after_the_other(memory, times):
    """Journals of one trial with accuracies of 0.1, 0.2, ..., and files made at these times."""
    for number, time in enumerate(times, start=1):
        recording = memory.begin(fit())
        recording.add(trial(1, number / 10))
        recording._alive.close()
        os.utime(recording._journal.path.with_suffix(".json"), (time, time))


@pytest.mark.parametrize("times", [(1, 2, 3), (3, 2, 1), (2, 3, 1)])
def test_the_fit_that_began_last_counts_also_if_the_clock_ran_back(memory, times):
    begun_one_after_the_other(memory, times)
    assert accuracies(memory) == {1: 0.3}


@pytest.mark.parametrize("last", [0, 1])
def test_the_newest_journal_of_earlier_versions_counts(memory, last):
    begun_one_after_the_other(memory, (1, 2))
    folder = memory.folder / f"{NAME}.journals"
    for path in sorted(folder.iterdir()):  # Their names were random, without a number.
        number, _, rest = path.name.partition("-")
        order = int(number) - 1
        path.rename(folder / f"{'ab'[order]}{rest}")
        if path.suffix == ".json":
            os.utime(folder / f"{'ab'[order]}{rest}", (order == last, order == last))
    begins_later = 0.1 if last == 0 else 0.2
    assert accuracies(memory) == {1: begins_later}


def test_records_set_aside_are_forgotten_too(memory):
    memory.remember(fit(), [trial(1, 0.5)])
    memory.remember(fit(WINE), [trial(1, 0.5, WINE)])
    memory.remember(fit("kind", space=KINDS), [few("kind")])
    (memory.folder / f"{NAME}.journals" / "aa.json").write_text("no json")
    [older] = memory.folder.glob("*.before-*")
    assert memory.forget(NAME, "iris") == 1
    assert Experience.open(older).tasks == (WINE,)
    assert memory.forget(NAME, "kind") == 1
    assert memory.spaces() == []
    assert memory.space_names() == [NAME]
    assert memory.forget(NAME) == 1
    assert memory.space_names() == []
    left = sorted(path.name for path in memory.folder.rglob("*"))
    assert left == [f"{NAME}.journals", f"{NAME}.lock"]


def test_a_task_is_forgotten_though_it_alone_was_measured_by_a_metric(memory):
    memory.remember(fit(), [trial(1, 0.5)])
    measured = replace(trial(1, 0, WINE), values={"log_loss": 0.3})
    memory.remember(fit(WINE, metrics=(ERROR,)), [measured])
    assert memory.forget(NAME, WINE) == 1
    assert memory.recall(NAME).metrics == (ACCURACY,)
    assert accuracies(memory) == {1: 0.5}


def test_names_with_an_at_sign_are_no_fingerprints(memory):
    for task, accuracy in (("credit@2023", 0.5), ("adult@2023", 0.75)):
        memory.remember(fit(task), [trial(1, accuracy, task)])
        assert accuracies(memory, task) == {1: accuracy}
    assert memory.recall(NAME).tasks == ("credit@2023", "adult@2023")
    with refuses("unknown-task", value="credit"):
        memory.forget(NAME, "credit")
    assert memory.forget(NAME, "credit@2023") == 1


def test_what_was_tried_before_in_a_part_of_the_space(memory):
    linear = Evaluation(IRIS, {"model": "linear"}, {"accuracy": 0.9})
    memory.remember(fit(), [trial(1, 0.5), trial(8, 0.6), linear])
    part = Space.of({"model": {"knn": {"k": (1, 5)}}}, stages=("model",))
    assert memory.earlier(NAME, IRIS, space=part) == [trial(1, 0.5)]
    other = Space.of({"model": {"rf": {"trees": (10, 99)}}}, stages=("model",))
    assert memory.earlier(NAME, IRIS, space=other) == []


def test_a_fit_of_which_nothing_succeeded_leaves_nothing(memory):
    memory.remember(fit(), [replace(trial(1, 0.5), values={}, status=Status.FAILED)])
    assert memory.recall(NAME) is None
    assert list((memory.folder / f"{NAME}.journals").iterdir()) == []


def test_a_running_fit_is_left_alone_until_it_ends(memory):
    recording = memory.begin(fit())
    recording.add(Evaluation(IRIS, {"model": "linear"}, {"accuracy": 0.5}))
    assert memory.recall(NAME) is None
    recording.add(trial(3, 0.75))
    recording.close()
    assert len(memory.recall(NAME)) == 2
    assert list((memory.folder / f"{NAME}.journals").iterdir()) == []


KILLED = """
import sys, time
from foretune.automl.knowledge.memory import Memory
from foretune.automl.knowledge.fit_journal import FitDescription
from foretune.experience.parquet_format import HEADER_KEY
from foretune.experience import Direction, Evaluation, Metric
from foretune.space import Space
from pathlib import Path
space = Space.from_json(sys.argv[2])
metrics = (Metric("accuracy", Direction.MAX),)
fit = FitDescription("pipeline-classification", space, metrics, sys.argv[3], {})
recording = Memory(Path(sys.argv[1])).begin(fit)
for k in (1, 2, 3):
    config = {"model": "knn", "model:knn:k": k}
    recording.add(Evaluation(sys.argv[3], config, {"accuracy": k / 10}))
print("ready", flush=True)
time.sleep(600)
"""


def test_a_killed_fit_loses_nothing_that_had_ended(memory):
    command = [sys.executable, "-c", KILLED, str(memory.folder), SPACE.to_json(), IRIS]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline().strip() == "ready"
            assert memory.recall(NAME) is None
        finally:
            os.kill(process.pid, signal.SIGKILL)
    # The line that it was writing when it was killed.
    [journal] = (memory.folder / f"{NAME}.journals").glob("*.jsonl")
    with journal.open("a") as stream:
        stream.write('{"task": IRIS, "config": {"mod')
    assert accuracies(memory) == {1: 0.1, 2: 0.2, 3: 0.3}


def test_killed_between_merging_and_removing_the_journal_is_merged_once(memory, tmp_path):
    journals = memory.folder / f"{NAME}.journals"
    running = memory.begin(fit())
    running.add(trial(1, 0.5))
    shutil.copytree(journals, tmp_path / "copy")
    running.close()
    assert len(memory.recall(NAME)) == 1
    assert list(journals.iterdir()) == []
    shutil.copytree(tmp_path / "copy", journals, dirs_exist_ok=True)
    assert len(list(journals.glob("*.json"))) == 1
    assert len(memory.recall(NAME)) == 1
    assert list(journals.iterdir()) == []


AT_ONCE = """
import sys
from foretune.automl.knowledge.memory import Memory
from foretune.automl.knowledge.fit_journal import FitDescription
from foretune.experience.parquet_format import HEADER_KEY
from foretune.experience import Direction, Evaluation, Metric
from foretune.space import Space
from pathlib import Path
space = Space.from_json(sys.argv[2])
memory = Memory(Path(sys.argv[1]))
print("ready", flush=True)
input()
for number in range(4):
    task = f"t{number}@{sys.argv[3]}{number}"
    metrics = (Metric("accuracy", Direction.MAX),)
    fit = FitDescription("pipeline-classification", space, metrics, task, {})
    memory.remember(fit, [Evaluation(task, {"model": "linear"}, {"accuracy": 0.5})])
"""


def test_two_processes_at_once_do_not_lose_each_other(memory):
    command = [sys.executable, "-c", AT_ONCE, str(memory.folder), SPACE.to_json(), "a"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as other:
        assert other.stdout.readline() == "ready\n"
        other.stdin.write("\n")
        other.stdin.flush()
        for number in range(4):
            task = f"t{number}@b{number}"
            memory.remember(fit(task), [trial(1, 0.5, task)])
        other.communicate()
    assert other.returncode == 0
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
    memory.remember(fit(OTHER_IRIS), [trial(1, 0.5, OTHER_IRIS)])
    memory.remember(fit(WINE), [trial(1, 0.5, WINE)])
    with refuses("unknown-task", value="beer"):
        memory.forget(NAME, "beer")
    assert memory.forget(NAME, OTHER_IRIS) == 1
    assert memory.recall(NAME).tasks == (IRIS, WINE)
    assert memory.forget(NAME, "iris") == 2
    assert memory.forget(NAME) == 1
    assert memory.recall(NAME) is None
    assert memory.forget(NAME) == 0


def test_export_is_an_experience_file(memory, tmp_path):
    with refuses("nothing-remembered"):
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


def test_experience_that_turns_a_metric_is_refused_and_leaves_all_as_it_was(memory):
    memory.remember(fit(), [trial(1, 0.5), trial(2, 0.75)])
    turned = replace(memory.recall(NAME), metrics=(Metric("accuracy", Direction.MIN),))
    content = (memory.folder / f"{NAME}.parquet").read_bytes()
    with refuses("metric-direction"):
        memory.add(NAME, turned)
    assert (memory.folder / f"{NAME}.parquet").read_bytes() == content
    assert list(memory.folder.glob("*.before-*")) == []


def test_a_fit_is_not_lost_where_something_turned_was_remembered(memory):
    turned = replace(fit(WINE), metrics=(Metric("accuracy", Direction.MIN),))
    memory.remember(turned, [trial(1, 0.5, WINE)])
    memory.remember(fit(), [trial(1, 0.5)])
    known = memory.recall(NAME)
    assert (known.tasks, known.metrics) == ((IRIS,), (ACCURACY,))
    [older] = memory.folder.glob("*.before-*")
    assert Experience.open(older).tasks == (WINE,)


def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with refuses("memory-not-writable", field="FORETUNE_HOME"):
        Memory(tmp_path / "file").begin(fit())


def damaged(memory):
    """A memory whose file was cut."""
    memory.remember(fit(), [trial(1, 0.5)])
    file = memory.folder / f"{NAME}.parquet"
    file.write_bytes(file.read_bytes()[:900])
    return file.read_bytes()


def test_a_damaged_file_is_set_aside_and_that_is_said_once(memory):
    content = damaged(memory)
    with warns("damaged-memory"):
        assert memory.recall(NAME) is None
    [aside] = memory.folder.glob(f"{NAME}.broken-*")
    assert aside.read_bytes() == content
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        memory.remember(fit(), [trial(2, 0.6)])
        assert accuracies(memory) == {2: 0.6}


def test_a_damaged_file_is_not_in_the_way_of_a_fit_that_ends(memory):
    damaged(memory)
    with warns("damaged-memory"):
        memory.remember(fit(), [trial(2, 0.6)])
    assert accuracies(memory) == {2: 0.6}


def save_as_newer_version(path):
    """Give an experience file a version that this release does not know."""
    table = parquet.read_table(path)
    header = json.loads(table.schema.metadata[HEADER_KEY])
    newer = {**table.schema.metadata, HEADER_KEY: json.dumps(header | {"version": 99})}
    parquet.write_table(table.replace_schema_metadata(newer), path)


def test_a_file_of_a_newer_version_is_no_damaged_one(memory):
    memory.remember(fit(), [trial(1, 0.5)])
    [file] = memory.folder.glob("*.parquet")
    content = file.read_bytes()
    save_as_newer_version(file)
    with pytest.raises(ExperienceError, match="update foretune"):
        memory.recall(NAME)
    # Nor is it in the way of a fit, whose trials wait for who can read it.
    with warns("journal-not-merged"):
        memory.remember(fit(), [trial(2, 0.6)])
    file.write_bytes(content)
    assert accuracies(memory) == {1: 0.5, 2: 0.6}


@pytest.mark.parametrize("noticed", [False, True])
def test_all_can_be_forgotten_though_it_cannot_be_read(memory, noticed):
    damaged(memory)
    if noticed:
        with pytest.warns(ForetuneWarning):
            memory.recall(NAME)
    assert memory.space_names() == [NAME]
    assert memory.forget(NAME) == 0
    assert memory.space_names() == []
    assert not [path for path in memory.folder.iterdir() if path.stat().st_size and path.is_file()]


def test_forgetting_all_takes_what_killed_fits_have_left(memory):
    ended_together(memory, (fit(), trial(1, 0.5)), (fit(WINE), trial(1, 0.5, WINE)))
    assert memory.space_names() == [NAME]
    assert memory.forget(NAME) == 2
    assert memory.recall(NAME) is None


def test_no_table_is_forgotten_by_a_name_that_several_share(memory):
    for task in (IRIS, OTHER_IRIS):
        memory.remember(fit(task), [trial(1, 0.5, task)])
    with refuses("ambiguous-task"):
        memory.forget(NAME, "iris")
    assert memory.recall(NAME).tasks == (IRIS, OTHER_IRIS)
    # A table without a fingerprint has no other name.
    memory.remember(fit("iris"), [trial(1, 0.5, "iris")])
    assert memory.forget(NAME, "iris") == 1
    assert memory.forget(NAME, IRIS) == 1
    assert memory.forget(NAME, "iris") == 1


def test_only_numbers_about_a_table_are_kept(memory):
    table = mixed_table(Task.CLASSIFICATION)
    task = task_name(table)
    memory.remember(fit(task), [trial(1, 0.5, task)])
    content = (memory.folder / f"{NAME}.parquet").read_bytes()
    for secret in ("letter", "town", "high", "middle"):
        assert secret.encode() not in content


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
    made = merge_newest(first, second)
    found = {
        (task, config["model:knn:k"]): value
        for task in made.tasks
        for config, value in zip(
            made.task(task).configs.dicts(), made.task(task).values[:, 0].tolist(), strict=True
        )
    }
    assert found == {("a", 2): 0.2, ("b", 1): 0.9, ("b", 3): 0.3, ("c", 1): 0.4}


def measured(*rows):
    """Rows of (task, accuracy, size, status), all of one configuration."""
    tasks = sorted({task for task, *_ in rows})
    return Experience.build(
        SPACE,
        [ACCURACY, Metric("size")],
        tasks,
        [tasks.index(task) for task, *_ in rows],
        SPACE.encode([{"model": "knn", "model:knn:k": 3}]),
        np.zeros(len(rows), dtype=int),
        [values for _, *values, _ in rows],
        status=[status for *_, status in rows],
    )


def test_values_of_a_failed_trial_replace_nothing():
    first = measured(("a", 0.5, 1.0, Status.DONE))
    second = measured(("a", 0.9, 9.0, Status.FAILED), ("b", 0.7, 2.0, Status.DONE))
    made = merge_newest(first, second)
    assert made.task("a").values.tolist() == [[0.5, 1.0]]
    assert made.task("a").status.tolist() == [Status.DONE]


def test_the_metric_that_most_tasks_have_measured_comes_first():
    """What was measured by runs that failed counts for nothing."""
    nothing = float("nan")
    made = common_first(
        measured(
            ("a", 0.5, 1.0, Status.DONE),
            ("b", nothing, 2.0, Status.DONE),
            ("c", 0.5, nothing, Status.FAILED),
            ("d", 0.5, nothing, Status.FAILED),
        )
    )
    assert [metric.name for metric in made.metrics] == ["size", "accuracy"]
    assert made.task("a").values.tolist() == [[1.0, 0.5]]


def test_the_journal_of_a_fit_is_one_line_a_trial(memory):
    recording = memory.begin(fit())
    recording.add(Evaluation(IRIS, {"model": "linear"}, {"accuracy": 0.5}))
    [journal] = (memory.folder / f"{NAME}.journals").glob("*.jsonl")
    [line] = journal.read_text().splitlines()
    assert json.loads(line)["values"] == {"accuracy": 0.5}
    recording.close()
