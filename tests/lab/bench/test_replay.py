import json
import multiprocessing
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from foretune._base.files import try_lock
from foretune.errors import (
    ExperienceError,
    MethodError,
    MissingExtraError,
    UsageError,
)
from foretune.experience import Direction, Experience, Metric, find_splits, learning_split
from foretune.experience.selection import take_rows
from foretune.search import METHODS, Design, Method
from foretune_lab.bench import parts
from foretune_lab.bench.parts import Parts
from foretune_lab.bench.replay import fingerprint_of_notes, replay
from foretune_lab.bench.results import COLUMNS, read, save
from foretune_lab.bench.starts import Start
from tests.lab.bench.tables import SPACE, Spy, SpyOfMany, table
from tests.refusals import refuses


@pytest.fixture
def out(tmp_path):
    return tmp_path / "results.parquet"


def register(monkeypatch, spy, name="spy", **traits):
    entry = Method(
        name, "a spy", lambda: spy, design=Design("random", None), needs_experience=True, **traits
    )
    monkeypatch.setitem(METHODS, name, entry)
    return spy


class Interrupting:
    """A progress that presses Ctrl-C after some steps."""

    def __init__(self, after):
        self.left = after

    def start(self, what, total):
        self.what, self.total = what, total

    def step(self, n=1, note=""):
        self.note = note
        self.left -= n
        if self.left <= 0:
            raise KeyboardInterrupt

    def stop(self):
        pass


class Counting(Interrupting):
    def __init__(self):
        super().__init__(np.inf)
        self.done = 0

    def step(self, n=1, note=""):
        super().step(n, note)
        self.done += n


# What the learner sees


def test_the_targets_own_records_never_reach_the_learner(monkeypatch, out):
    spy = register(monkeypatch, Spy())
    experience = table(tasks=3)
    replay(experience, ["spy"], trials=2, seeds=1, out=out)
    assert [given.tasks for given, _ in spy.given] == [
        ("task1", "task2"),
        ("task0", "task2"),
        ("task0", "task1"),
    ]
    for held_out, (given, _) in zip(experience.tasks, spy.given, strict=True):
        own = experience.task(held_out).values[:, 0]
        assert not np.isin(own, given.values).any()
        assert len(given) == 2 * 12


def test_the_target_tells_no_losses_before_they_are_asked_for(monkeypatch, out):
    spy = register(monkeypatch, Spy())
    replay(table(), ["spy"], trials=2, seeds=1, out=out)
    for target in spy.targets:
        assert target.objectives == ("error",)
        assert len(target.pool) == 12
        assert not target.meta_features


def test_a_named_split_teaches_its_training_and_validation_tasks_once_a_seed(monkeypatch, out):
    spy = register(monkeypatch, Spy())
    results = replay(table(tasks=5), ["spy"], trials=2, seeds=2, split="paper", out=out)
    assert [(given.tasks, seed) for given, seed in spy.given] == [
        (("task0", "task1"), 0),
        (("task0", "task1"), 1),
    ]
    assert set(results.rows["task"]) == {"task2", "task3", "task4"}


def test_a_fold_is_learnt_once_a_seed_and_replayed_with_it(monkeypatch, out):
    spy = register(monkeypatch, Spy())
    experience = table(tasks=7)
    results = replay(experience, ["spy"], trials=2, seeds=2, split="3-fold", out=out)
    folds = find_splits(experience, "3-fold")
    assert [(given.tasks, seed) for given, seed in spy.given] == [
        (fold.train, seed) for fold in folds for seed in (0, 1)
    ]
    assert len(results.runs) == 7 * 2


def test_the_learner_can_tell_training_from_validation_tasks(monkeypatch, out):
    spy = register(monkeypatch, Spy())
    replay(table(tasks=5), ["spy"], trials=2, seeds=1, split="paper", out=out)
    known = learning_split(spy.given[0][0])
    assert (known.train, known.validation) == (("task0",), ("task1",))


def test_the_learner_sees_only_the_chosen_objectives(monkeypatch, out):
    spy = register(monkeypatch, Spy())
    replay(table(), ["spy"], trials=1, seeds=1, objectives=["seconds"], tasks=["task0"], out=out)
    assert [metric.name for metric in spy.given[0][0].metrics] == ["seconds"]


def test_seeds_are_learnt_together_where_a_learner_can(monkeypatch, out):
    spy = register(monkeypatch, SpyOfMany())
    replay(table(), ["spy"], trials=1, seeds=[4, 2, 7], tasks=["task0"], out=out)
    assert spy.batches == [(2, 4, 7)]


def test_requirements_missing_for_learning_are_named(monkeypatch, out):
    lacking = ModuleNotFoundError("No module named 'jax'", name="jax")
    register(monkeypatch, SpyOfMany(learning_fault=lacking))
    with pytest.raises(MissingExtraError, match=r"the method 'spy' needs .*foretune.neural"):
        replay(table(), ["spy"], trials=1, seeds=[4, 2], tasks=["task0"], out=out)


def test_a_fault_of_a_method_says_in_which_run_it_was(monkeypatch, out):
    spy = register(monkeypatch, Spy(suggesting_fault=ValueError("a fault")))
    with pytest.raises(ValueError, match="a fault") as suggesting:
        replay(table(), ["spy"], trials=1, seeds=[4, 2], tasks=["task1"], out=out)
    assert suggesting.value.__notes__ == ["In the replay, 'spy' was on 'task1' with seed 4."]
    spy.learning_fault = ValueError("another")
    with pytest.raises(ValueError, match="another") as learning:
        replay(table(), ["spy"], trials=1, seeds=[4, 2], tasks=["task1"], out=out)
    assert learning.value.__notes__ == ["In the replay, 'spy' was learning, for 'task1'."]


# What is written


def test_rows_follow_the_recorded_losses(out):
    experience = table()
    results = replay(experience, ["random"], trials=5, seeds=2, suite="toy", out=out)
    assert list(results.rows.columns) == COLUMNS
    assert len(results.rows) == 3 * 2 * 5
    run = results.rows.query("task == 'task1' and seed == 1").sort_values("trial")
    assert run["trial"].tolist() == [1, 2, 3, 4, 5]
    assert run["value"].isin(experience.task("task1").losses[:, 0]).all()
    assert run["value"].is_unique
    assert run["best"].tolist() == np.minimum.accumulate(run["value"]).tolist()
    assert (results.rows["suggest_seconds"] > 0).all()
    assert read(out).rows.equals(results.rows.sort_values(
        ["task", "method", "seed", "trial"], ignore_index=True
    ))  # fmt: skip


def test_a_maximised_metric_is_written_as_a_loss(out):
    experience = table(direction=Direction.MAX)
    results = replay(experience, ["random"], trials=12, seeds=1, out=out)
    assert results.settings.directions == ("max",)
    best = results.rows.query("task == 'task0'")["best"].min()
    assert best == -experience.task("task0").values[:, 0].max()


def test_a_replay_ends_with_the_pool(out):
    results = replay(table(configs=4), ["random"], trials=9, seeds=1, out=out)
    assert results.rows.groupby("task")["trial"].max().tolist() == [4, 4, 4]
    for task, pool in results.pools.items():
        assert results.rows[results.rows["task"] == task]["best"].min() == pool.low
        assert len(pool.random) == 9


def test_several_objectives_have_a_column_each(out):
    experience = table()
    results = replay(
        experience, ["random"], trials=3, seeds=1, objectives=["seconds", "error"], out=out
    )
    rows = results.rows.query("task == 'task2'")
    recorded = experience.task("task2").losses[:, [1, 0]]
    pairs = rows[["value_seconds", "value_error"]].to_numpy()
    assert all((recorded == pair).all(axis=1).any() for pair in pairs)
    assert rows["value"].tolist() == rows["value_seconds"].tolist()
    assert results.pools["task2"].reference.tolist() == recorded.max(axis=0).tolist()


def test_failed_configurations_are_tried_and_count_as_nothing(out):
    values = np.array([[0.4, np.nan, 0.2, 0.3]])
    experience = Experience.from_matrix(
        SPACE,
        SPACE.sample(4, seed=1),
        ["one"],
        [Metric("error")],
        {"error": values},
        failed=np.isnan(values),
    )
    results = replay(experience, ["random"], trials=4, seeds=3, out=out)
    assert results.rows.groupby("seed")["value"].apply(lambda v: v.isna().sum()).tolist() == [1] * 3
    assert results.pools["one"].size == 4
    assert results.rows.groupby("seed")["best"].last().tolist() == [0.2] * 3


def test_random_search_agrees_with_its_closed_form(out):
    results = replay(table(tasks=1, configs=10), ["random"], trials=10, seeds=80, out=out)
    best = results.rows.pivot_table(index="seed", columns="trial", values="best").to_numpy()
    error = best.std(axis=0) / np.sqrt(len(best))
    distance = np.abs(best.mean(axis=0) - results.pools["task0"].random)
    assert (distance <= 4 * error + 1e-12).all()
    assert error[0] > 0


def test_equal_seeds_give_equal_runs(out, tmp_path):
    first = replay(table(), ["random", "gp"], trials=7, seeds=2, out=out)
    second = replay(table(), ["random", "gp"], trials=7, seeds=2, out=tmp_path / "again.parquet")
    assert first.rows["value"].tolist() == second.rows["value"].tolist()


def test_tasks_that_share_their_configurations_have_draws_of_their_own(out):
    same = np.tile(np.linspace(0.0, 1.0, 12), (4, 1))
    names = [f"task{number}" for number in range(4)]
    experience = Experience.from_matrix(
        SPACE, SPACE.sample(12, seed=1), names, [Metric("error")], {"error": same}
    )
    results = replay(experience, ["random"], trials=6, seeds=1, out=out)
    drawn = results.rows.pivot(index="task", columns="trial", values="value").to_numpy()
    assert len(np.unique(drawn, axis=0)) == 4


# With what runs begin, and on how many tasks


def test_all_methods_begin_with_the_same_random_members(out):
    results = replay(table(), ["random", "gp"], trials=5, seeds=2, start="random:3", out=out)
    first = results.rows[results.rows["trial"] <= 3].pivot(
        index=["task", "seed", "trial"], columns="method", values="value"
    )
    assert (first["random"] == first["gp"]).all()
    assert first["gp"].xs(0, level="seed").tolist() != first["gp"].xs(1, level="seed").tolist()
    assert results.settings.start == "random:3"


def test_results_of_another_start_are_not_mixed(out):
    replay(table(), ["random"], trials=3, seeds=1, out=out)
    with refuses("equal-settings"):
        replay(table(), ["random"], trials=3, seeds=1, start="random:2", out=out)


def test_a_sample_of_tasks_can_be_extended_to_all(out):
    some = replay(table(tasks=6), ["random"], trials=2, seeds=1, tasks_limit=2, out=out)
    assert (len(some.runs), some.held_out) == (2, 6)
    more = replay(table(tasks=6), ["random"], trials=2, seeds=1, tasks_limit=4, out=out)
    assert some.runs < more.runs
    assert len(more.runs) == 4
    assert len(replay(table(tasks=6), ["random"], trials=2, seeds=1, out=out).runs) == 6


# Interrupted, resumed, extended, refused


def test_an_interrupted_replay_goes_on_where_it_stopped(out):
    with pytest.raises(KeyboardInterrupt):
        replay(table(), ["random"], trials=4, seeds=3, out=out, progress=Interrupting(after=4))
    assert not out.exists()
    assert Parts.beside(out).count() == 4
    progress = Counting()
    results = replay(table(), ["random"], trials=4, seeds=3, out=out, progress=progress)
    assert (progress.total, progress.done) == (5, 5)
    assert len(results.runs) == 9
    assert not Parts.beside(out).folder.exists()


def test_a_resumed_replay_equals_an_uninterrupted_one(out, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        replay(table(), ["gp"], trials=7, seeds=2, out=out, progress=Interrupting(after=2))
    replay(table(), ["gp"], trials=7, seeds=2, out=out)
    replay(table(), ["gp"], trials=7, seeds=2, out=tmp_path / "whole.parquet")
    whole = read(tmp_path / "whole.parquet").rows
    assert read(out).rows["value"].tolist() == whole["value"].tolist()


def test_finished_results_can_be_extended(out):
    replay(table(), ["random"], trials=3, seeds=1, out=out)
    before = read(out).rows
    progress = Counting()
    results = replay(table(), ["random", "sobol"], trials=3, seeds=2, out=out, progress=progress)
    assert progress.done == 12 - 3
    assert len(results.runs) == 12
    kept = read(out).rows.query("method == 'random' and seed == 0").reset_index(drop=True)
    assert kept.equals(before)


def test_nothing_is_done_twice(out):
    replay(table(), ["random"], trials=3, seeds=1, out=out)
    written = out.stat().st_mtime_ns
    replay(table(), ["random"], trials=3, seeds=1, out=out)
    assert out.stat().st_mtime_ns == written


def test_a_run_stands_once_after_a_stop_before_the_parts_were_removed(monkeypatch, out):
    with monkeypatch.context() as patched:
        patched.setattr(Parts, "remove", lambda self: None)
        replay(table(), ["random"], trials=3, seeds=1, out=out)
    before = read(out).rows
    replay(table(), ["random"], trials=3, seeds=1, out=out)
    assert read(out).rows.equals(before)
    assert not Parts.beside(out).folder.exists()


def test_two_replays_do_not_fill_one_file_at_once(out):
    class SecondReplay(Counting):
        def step(self, n=1, note=""):
            with refuses("one-replay-at-a-time"):
                replay(table(tasks=2), ["sobol"], trials=3, seeds=1, out=out)
            super().step(n, note)

    replay(table(tasks=2), ["random"], trials=3, seeds=1, out=out, progress=SecondReplay())
    replay(table(tasks=2), ["sobol"], trials=3, seeds=1, out=out)
    assert {method for _, method, _ in read(out).runs} == {"random", "sobol"}


@pytest.mark.skipif(os.name == "nt", reason="Windows keeps a file that is open")
def test_a_lock_that_was_removed_while_it_was_taken_is_taken_anew(monkeypatch, out):
    removed = []

    def taken_late(path):
        stream = try_lock(path)
        if not removed:  # by the replay before, which ended between the opening and the locking
            path.unlink()
            removed.append(path)
        return stream

    monkeypatch.setattr(parts, "try_lock", taken_late)
    alone = Parts.beside(out).alone
    with alone(), refuses("one-replay-at-a-time"), alone():
        pass
    assert list(out.parent.iterdir()) == []


def test_runs_without_their_settings_are_not_taken_for_others(out):
    with pytest.raises(KeyboardInterrupt):
        replay(table(tasks=2), ["random"], trials=3, seeds=1, out=out, progress=Interrupting(1))
    (Parts.beside(out).folder / "settings.json").unlink()  # where a removal was cut short
    results = replay(table(tasks=2), ["random"], trials=5, seeds=1, out=out)
    assert results.rows.groupby("task").size().tolist() == [5, 5]


def test_a_split_with_other_tasks_under_the_same_name_is_refused(out):
    replay(table(tasks=4), ["random"], trials=2, seeds=1, split="paper", out=out)
    other = {"paper": {"train": ["task1"], "validation": ["task0"], "test": ["task2", "task3"]}}
    changed = table(tasks=4).with_splits(other)
    with refuses("equal-settings"):
        replay(changed, ["random"], trials=2, seeds=2, split="paper", out=out)
    assert len(read(out).runs) == 2


def older_file(out, **choice):
    """Results as they were written before notes were."""
    replay(table(), ["random"], trials=2, seeds=1, out=out, **choice)
    whole = read(out)
    save(replace(whole, settings=replace(whole.settings, notes=None)), out)


def test_older_results_are_extended_where_no_notes_were_used(out):
    older_file(out)
    assert len(replay(table(), ["random"], trials=2, seeds=2, out=out).runs) == 6
    assert read(out).settings.notes == ""


def test_older_results_are_kept_apart_where_their_split_cannot_be_known(out):
    older_file(out, split="paper")
    with refuses("equal-settings"):
        replay(table(), ["random"], trials=2, seeds=2, split="paper", out=out)


def test_parts_of_other_settings_are_refused(out):
    with pytest.raises(KeyboardInterrupt):
        replay(table(), ["random"], trials=4, seeds=3, out=out, progress=Interrupting(after=1))
    with refuses("equal-settings"):
        replay(table(), ["random"], trials=5, seeds=3, out=out)
    with refuses("equal-settings"):
        replay(table(configs=13), ["random"], trials=4, seeds=3, out=out)
    assert Parts.beside(out).count() == 1


def test_parts_whose_settings_cannot_be_read_are_refused(out):
    with pytest.raises(KeyboardInterrupt):
        replay(table(), ["random"], trials=3, seeds=1, out=out, progress=Interrupting(1))
    (Parts.beside(out).folder / "settings.json").write_text('{"of": "another version"}')
    with refuses("equal-settings"):
        replay(table(), ["random"], trials=3, seeds=1, out=out)


def test_results_of_other_settings_are_refused_and_kept(out):
    replay(table(), ["random"], trials=3, seeds=1, out=out)
    before = out.read_bytes()
    with refuses("equal-settings"):
        replay(table(), ["random"], trials=4, seeds=1, out=out)
    assert out.read_bytes() == before
    assert list(out.parent.iterdir()) == [out]


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"methods": ["nonsense"]}, MethodError, "nonsense"),
        ({"tasks": ["moon"]}, UsageError, "'moon' is not"),
        ({"split": "unheard"}, ExperienceError, "unheard"),
        ({"split": "4-fold"}, ExperienceError, "but got 4"),
        ({"start": "recorded"}, UsageError, "none with .* a recorded initial design"),
        ({"objectives": ["beauty"]}, ExperienceError, "beauty"),
    ],
)
def test_bad_requests_change_nothing_on_disk(out, change, error, message):
    request = {"methods": ["random"], "trials": 2, "seeds": 1, **change}
    with pytest.raises(error, match=message):
        replay(table(), out=out, **request)
    assert list(out.parent.iterdir()) == []


@pytest.mark.parametrize(
    ("change", "rule", "field", "value"),
    [
        ({"methods": []}, "replay-count", "methods", 0),
        ({"trials": 0}, "replay-count", "trials", 0),
        ({"seeds": 0}, "replay-count", "seeds", 0),
        ({"jobs": 0}, "replay-count", "jobs", 0),
        ({"tasks_limit": 0}, "replay-count", "tasks_limit", 0),
        ({"split": "paper", "tasks": ["task0"]}, "task-not-held-out", "task", "task0"),
        ({"start": "random"}, "unknown-start", "start", "random"),
        ({"suite": "a/b"}, "suite-name", "suite", "a/b"),
    ],
)
def test_requests_that_break_a_rule_change_nothing_on_disk(out, change, rule, field, value):
    request = {"methods": ["random"], "trials": 2, "seeds": 1, **change}
    with refuses(rule, field=field, value=value):
        replay(table(), out=out, **request)
    assert list(out.parent.iterdir()) == []


def test_a_method_that_learns_needs_another_task(monkeypatch, out):
    register(monkeypatch, Spy())
    with refuses("no-past-tasks", value="spy"):
        replay(table(tasks=1), ["spy"], trials=2, seeds=1, out=out)
    assert list(out.parent.iterdir()) == []


def test_a_method_of_one_objective_is_refused_for_two(monkeypatch, out):
    register(monkeypatch, Spy(), several_objectives=False)
    with refuses("one-objective", value="spy"):
        replay(table(), ["spy"], trials=2, seeds=1, objectives=["error", "seconds"], out=out)


def test_tasks_without_a_success_are_left_out_unless_named(out):
    matrix = np.array([[0.1, 0.2], [np.nan, np.nan]])
    experience = Experience.from_matrix(
        SPACE,
        SPACE.sample(2, seed=1),
        ["alive", "dead"],
        [Metric("error")],
        {"error": matrix},
        failed=np.isnan(matrix),
    )
    with refuses("no-success", value="dead"):
        replay(experience, ["random"], trials=1, seeds=1, tasks=["dead"], out=out)
    results = replay(experience, ["random"], trials=1, seeds=1, out=out)
    assert set(results.rows["task"]) == {"alive"}


# Several processes


def test_processes_give_what_one_process_gives(out, tmp_path):
    progress = Counting()
    whole = table(tasks=4)
    first_only = (whole.config_index < 4) & (whole.task_index > 0)
    part = take_rows(whole, np.flatnonzero(~first_only)).without(["task0"])
    wanted = {"methods": ["random"], "trials": 4, "seeds": 2, "start": "random:2"}
    many = replay(part, **wanted, jobs=2, out=out, progress=progress)
    one = replay(part, **wanted, out=tmp_path / "one.parquet")
    assert progress.done == progress.total == 6
    ordered = [
        results.rows.sort_values(["task", "seed", "trial"])["value"].tolist()
        for results in (many, one)
    ]
    assert ordered[0] == ordered[1]
    assert list(tmp_path.glob("*.parts")) == []


def test_interrupted_processes_stop_and_keep_their_parts(out):
    """The split replays one task, for which one process is enough."""
    wanted = {"trials": 4, "seeds": 2, "jobs": 2, "split": "paper"}
    with pytest.raises(KeyboardInterrupt):
        replay(table(), ["random"], **wanted, out=out, progress=Interrupting(after=1))
    parts = Parts.beside(out)
    assert 1 <= parts.count() <= 2
    assert json.loads((parts.folder / "settings.json").read_text())["trials"] == 4
    assert not out.exists()


def test_a_process_that_is_killed_is_one_clear_error(out):
    class Killing(Counting):
        def step(self, n=1, note=""):
            for child in multiprocessing.active_children():
                child.kill()
            super().step(n, note)

    wanted = {"trials": 4, "seeds": 2, "jobs": 2, "split": "paper"}
    with refuses("process-lost"):
        replay(table(), ["random"], **wanted, out=out, progress=Killing())


ENDLESS = """
from pathlib import Path

from foretune_lab.bench.demo import demo_experience
from foretune_lab.bench.replay import replay

if __name__ == "__main__":
    past = demo_experience()
    task = list(past.tasks)[:1]
    replay(past, ["random"], trials=150, seeds=9999, jobs=2, tasks=task, out=Path("out.parquet"))
"""


def test_processes_do_not_outlive_a_parent_that_is_killed(tmp_path):
    (tmp_path / "endless.py").write_text(ENDLESS)
    parent = subprocess.Popen([sys.executable, "endless.py"], cwd=tmp_path)
    parts = Parts.beside(tmp_path / "out.parquet")
    while not parts.count():  # a worker follows its parent before it plays
        assert parent.poll() is None
        time.sleep(0.05)
    asked = ["pgrep", "-P", str(parent.pid), "-f", "spawn_main"]
    workers = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split()
    parent.kill()
    parent.wait()
    end = time.monotonic() + 60
    while any(map(_is_running, workers)):
        assert time.monotonic() < end
        time.sleep(0.1)


def _is_running(process: str) -> bool:
    try:
        return bool(Path(f"/proc/{process}/cmdline").read_bytes())  # that of a zombie is empty
    except OSError:
        return False


def test_the_fingerprint_of_notes_follows_those_that_are_used():
    def noted(start="none", split="leave-one-out", **notes):
        experience = Experience.from_matrix(
            SPACE,
            SPACE.sample(3, seed=1),
            ["a", "b"],
            [Metric("error")],
            {"error": np.arange(6.0).reshape(2, 3)},
            **notes,
        )
        return fingerprint_of_notes(experience, split, Start.parse(start))

    designs = [{"a": {"one": [0, 1]}}, {"a": {"one": [1, 0]}}]
    assert noted() == noted(starts=designs[0]) == noted(split="2-fold") == ""
    used = [
        *(noted("recorded", starts=starts) for starts in designs),
        *(noted(meta_features={"a": {"rows": rows}}) for rows in (10.0, 20.0)),
        *(noted(split="s", splits={"s": {"train": [t], "test": ["b"]}}) for t in ("a",)),
    ]
    assert len({*used, ""}) == len(used) + 1
    both = [{"rows": 10.0, "columns": 3.0}, {"columns": 3.0, "rows": 10.0}]
    assert noted(meta_features={"a": both[0]}) == noted(meta_features={"a": both[1]}) != ""
