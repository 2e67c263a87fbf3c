import json
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from foretune._base.progress import SILENT
from foretune.automl.evaluation import Protocol, evaluate
from foretune.errors import ForetuneError, UsageError
from foretune.experience import Experience, Status
from foretune.experience.journal import Journal
from foretune.run.inline import InlineExecutor
from foretune.run.pool import ProcessPool
from foretune.tables.table import Table
from foretune.tables.target import Task
from foretune_lab.collect.collect import Collection, collect
from foretune_lab.collect.families import choose_holdout_families
from foretune_lab.collect.prepared_tables import PreparedTable, prepare
from foretune_lab.collect.recipe import CollectionRecipe, Folder
from foretune_lab.collect.table_sources import TableSource, sources
from foretune_lab.collect.table_trial import TableTrial, table_path
from tests.automl.samples import mixed_frame, mixed_table
from tests.refusals import refuses

ONLY = ("decision_tree", "gaussian_nb")
RECIPE = CollectionRecipe("cash", Protocol(("accuracy",), folds=2), evaluations=4, only=ONLY)


def source(name, seed, family=None):
    return TableSource(name, family or name, lambda: mixed_table(Task.CLASSIFICATION, seed=seed))


SOURCES = [source("a", 0), source("b/ä", 1), source("a2", 2, family="a")]


def made_of(recipe, tables, out, start=InlineExecutor):
    return collect(recipe, tables, out, start=start)


@pytest.fixture
def out(tmp_path):
    return tmp_path / "made.parquet"


def test_every_table_gets_the_same_configurations(out):
    made = made_of(RECIPE, SOURCES, out)
    assert made.tasks == ("a", "b/ä", "a2")
    assert (len(made), len(made.configs)) == (12, 4)
    assert (made.status == Status.DONE).all()
    assert (made.seconds > 0).all()
    left = ["made.collect.json", "made.lock", "made.parquet"]
    assert [p.name for p in sorted(out.parent.iterdir())] == left
    first = made.task("b/ä")
    config = first.configs.dicts()[0]
    again = evaluate(config, mixed_table(Task.CLASSIFICATION, seed=1), RECIPE.protocol)
    assert first.values[0, 0] == again.values["accuracy"]
    assert set(made.meta_features) == {"a", "b/ä", "a2"}
    assert made.meta_features["a"]["classes"] == 3
    about = json.loads(out.with_suffix(".collect.json").read_text())
    assert about["ended"] == {"DONE": 12, "FAILED": 0, "TIMEOUT": 0, "STOPPED": 0}
    assert [table["family"] for table in about["tables"]] == ["a", "b/ä", "a"]


def test_more_evaluations_and_tables_are_added(out):
    made_of(RECIPE, SOURCES[:1], out)
    before = Experience.open(out)
    evaluated = []
    start = partial(_counting, evaluated)
    made = made_of(replace(RECIPE, evaluations=6), SOURCES[:2], out, start)
    assert len(evaluated) == 2 + 6
    assert len(made) == 12
    kept = {tuple(sorted(c.items())) for c in before.configs.dicts()}
    assert kept < {tuple(sorted(c.items())) for c in made.configs.dicts()}


def test_the_configurations_of_an_earlier_collection_on_other_tables(out, tmp_path):
    first, other = tmp_path / "first.parquet", tmp_path / "other.parquet"
    made_of(replace(RECIPE, refined=2), SOURCES[:1], first)
    again = made_of(replace(RECIPE, like=first), SOURCES[1:2], other)
    known = Experience.open(first).configs
    assert len(known) == 6
    assert len(again) == 6
    assert set(again.configs.keys().tolist()) == set(known.keys().tolist())
    whole = made_of(replace(RECIPE, like=first), SOURCES[:2], first)
    assert len(whole) == 12


def test_a_file_without_configurations_of_the_space_is_refused_before_anything_is_written(out):
    out.with_name("bad.parquet").write_text("x")
    with pytest.raises(ForetuneError, match="must be whole"):
        replace(RECIPE, like=out.with_name("bad.parquet"))
    made_of(RECIPE, SOURCES[:1], out)
    with pytest.raises(ForetuneError):
        CollectionRecipe("pipeline-regression", Protocol(("r2",)), evaluations=4, like=out)


def test_refinements_are_the_same_on_every_table_and_the_same_again(out):
    refining = replace(RECIPE, refined=3)
    made = made_of(refining, SOURCES[:2], out)
    assert len(made) == 2 * (4 + 3)
    shared = refining.configs()
    new = made.configs.take(np.flatnonzero(~made.configs.isin(shared)))
    assert len(new) == 3
    evaluated = []
    assert len(made_of(refining, SOURCES[:2], out, partial(_counting, evaluated))) == len(made)
    assert evaluated == []


def test_the_order_is_one_configuration_on_all_tables_after_the_other(out):
    folder = Folder.beside(out)
    folder.begin(RECIPE)
    tables = [_known(name) for name in ("a", "b")]
    todo = Collection(RECIPE, tables, out, Journal(folder.journal)).todo(RECIPE.configs())
    assert [task for task, _ in todo] == ["a", "b"] * 4
    assert all(todo[i][1] == todo[i + 1][1] for i in range(0, 8, 2))


def _known(name):
    return PreparedTable(name, name, 1, 1, {})


def test_failures_and_timeouts_are_recorded_as_such(out):
    recipe = replace(RECIPE, only=("gaussian_nb", "mlp"), evaluations=2, cpu_seconds=0.5)
    large = TableSource("large", "large", lambda: mixed_table(Task.CLASSIFICATION, n=4000))
    made = made_of(recipe, [large], out, partial(ProcessPool, limits=recipe.limits))
    assert made.status.tolist() == [Status.DONE, Status.TIMEOUT]
    about = json.loads(out.with_suffix(".collect.json").read_text())
    assert about["reasons"] == {"over its limit of 0.5 s of CPU time": 1}


def test_nothing_but_failures_is_said(out):
    with refuses("no-success", value=4):
        made_of(RECIPE, SOURCES[:1], out, lambda trial: InlineExecutor(_broken))
    assert not out.exists()


def _broken(trial):
    raise ValueError("cannot be read")


def test_a_trial_of_a_worker(tmp_path):
    table = mixed_table(Task.REGRESSION)
    table.save(table_path(tmp_path, "odd/../name"))
    config = {
        "imputer": "mean",
        "encoder": "ordinal",
        "scaler": "none",
        "reducer": "none",
        "estimator": "knn",
        "estimator:knn:n_neighbors": 3,
        "estimator:knn:p": 2,
        "estimator:knn:weights": "uniform",
    }
    trial = TableTrial(tmp_path, Protocol(("r2",)))
    assert trial(("odd/../name", config)) == evaluate(config, table, Protocol(("r2",))).values


def test_large_tables_are_sampled(out):
    recipe = replace(RECIPE, evaluations=1, most_rows=50)
    made_of(recipe, SOURCES[:1], out)
    about = json.loads(out.with_suffix(".collect.json").read_text())
    assert about["tables"][0]["rows"] == 50


def test_other_settings_and_other_files_are_refused(out, tmp_path):
    made_of(replace(RECIPE, evaluations=1), SOURCES[:1], out)
    content = out.read_bytes()
    with refuses("equal-settings", field="folds", value=3):
        made_of(replace(RECIPE, protocol=Protocol(("accuracy",), folds=3)), SOURCES[:1], out)
    other = tmp_path / "other.parquet"
    other.write_bytes(content)
    with refuses("foreign-output"):
        made_of(RECIPE, SOURCES[:1], other)
    assert out.read_bytes() == other.read_bytes() == content


def test_another_table_or_target_under_the_name_of_one_is_refused(out, tmp_path):
    few = replace(RECIPE, evaluations=1)
    folder = tmp_path / "tables"
    folder.mkdir()
    mixed_frame().drop(columns="amount").to_csv(folder / "a.csv", index=False)
    mixed_frame().drop(columns="amount").to_csv(folder / "b.csv", index=False)

    def collected(target=None):
        return made_of(few, sources(str(folder), Task.CLASSIFICATION, target=target), out)

    collected()
    before = [path.read_bytes() for path in (out, out.with_suffix(".collect.json"))]
    with refuses("equal-tables", value=("a", "b")):
        collected(target="letter")
    mixed_frame(60).drop(columns="amount").to_csv(folder / "b.csv", index=False)
    with refuses("equal-tables", value=("b",)):
        collected()
    assert before == [path.read_bytes() for path in (out, out.with_suffix(".collect.json"))]
    assert not Folder.beside(out).parts.exists()
    # The same data in another file is the same table, whether its target is named or not.
    mixed_frame().drop(columns="amount").to_parquet(folder / "b.parquet")
    (folder / "b.csv").unlink()
    assert len(collected(target="class")) == 2


def test_a_table_that_cannot_be_used_is_refused_before_any_trial_and_nothing_is_left(out, tmp_path):
    folder = tmp_path / "tables"
    folder.mkdir()
    mixed_frame().drop(columns="class").to_csv(folder / "a.csv", index=False)
    recipes = {
        Task.CLASSIFICATION: RECIPE,
        Task.REGRESSION: CollectionRecipe(
            "pipeline-regression", Protocol(("r2",), folds=2), evaluations=1, only=("elastic_net",)
        ),
    }

    def collected(task):
        return made_of(recipes[task], sources(str(folder), task), out)

    with pytest.raises(UsageError, match="must repeat"):
        collected(Task.CLASSIFICATION)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["made.lock", "tables"]
    # So the remedy that it names can be taken with the same output; what was made then stays.
    assert len(collected(Task.REGRESSION)) == 1
    mixed_frame()[["letter", "note"]].to_csv(folder / "b.csv", index=False)
    with refuses("unusable-table"):
        collected(Task.REGRESSION)
    assert len(Experience.open(out)) == 1
    assert Folder.beside(out).about.exists()


def test_a_target_that_changes_after_a_stop_is_refused_too(out, tmp_path):
    folder = tmp_path / "tables"
    folder.mkdir()
    mixed_frame().drop(columns="amount").to_csv(folder / "a.csv", index=False)
    right, wrong = (
        sources(str(folder), Task.CLASSIFICATION, target=target) for target in ("class", "letter")
    )
    with pytest.raises(KeyboardInterrupt):
        made_of(RECIPE, wrong, out, _stopped_at(0))
    # Nothing of it was evaluated, so nothing can be mixed.
    with pytest.raises(KeyboardInterrupt):
        made_of(RECIPE, right, out, _stopped_at(2))
    with refuses("equal-tables", value=("a",)):
        made_of(RECIPE, wrong, out)
    made = made_of(RECIPE, right, out)
    config = made.configs.dicts()[made.config_index[3]]
    assert (
        made.values[3, 0] == evaluate(config, right[0].load(), RECIPE.protocol).values["accuracy"]
    )


def _stopped_at(count):
    """Executors that are interrupted after so many trials."""

    def start(trial):
        done = []

        def evaluated(job):
            if len(done) == count:
                raise KeyboardInterrupt
            done.append(job)
            return trial(job)

        return InlineExecutor(evaluated)

    return start


def test_collections_of_earlier_versions_go_on(out):
    made_of(replace(RECIPE, evaluations=1), SOURCES[:1], out)
    about = out.with_suffix(".collect.json")
    said = json.loads(about.read_text())
    assert set(said.pop("fingerprints")) == {"a"}
    about.write_text(json.dumps(said))
    assert len(made_of(replace(RECIPE, evaluations=2), SOURCES[:2], out)) == 4
    assert set(json.loads(about.read_text())["fingerprints"]) == {"a", "b/ä"}


def test_a_second_run_at_the_same_time_is_refused_and_breaks_nothing(out):
    refused = []

    def busy(trial):
        def evaluated(job):
            if not refused:
                with refuses("one-collection-at-a-time") as said:
                    made_of(RECIPE, SOURCES[:2], out)
                refused.append(said)
            return trial(job)

        return InlineExecutor(evaluated)

    assert len(made_of(RECIPE, SOURCES[:2], out, busy)) == 8
    assert len(refused) == 1
    assert len(made_of(RECIPE, SOURCES, out)) == 12


def test_a_fifth_of_the_families_is_held_out():
    families = {f"family {i}" for i in range(40)}
    assert len(choose_holdout_families(families)) == 8
    assert choose_holdout_families({"one"}) == set()


def test_a_kill_costs_the_running_trials_only(out, tmp_path):
    recipe, tables = _interrupted(tmp_path)
    command = [sys.executable, "-c", "from foretune.cli import main; main()", "collect"]
    command += ["--space", "cash", "--only", ",".join(ONLY), "--datasets", str(tmp_path / "tables")]
    command += ["--evaluations", "10", "--folds", "2", "--jobs", "1", "-o", str(out)]
    journal = Folder.beside(out).journal
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE)
    _wait_for(lambda: journal.exists() and journal.read_bytes().count(b"\n") >= 3, process)
    process.kill()
    process.communicate(timeout=120)
    finished = len(Journal(journal).evaluations)
    assert 3 <= finished < 20
    _check_it_goes_on(recipe, tables, out, finished)


def test_ctrl_c_costs_the_running_trial_only(out, tmp_path):
    recipe, tables = _interrupted(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        made_of(recipe, tables, out, _stopped_at(3))
    assert len(Experience.open(out)) == 3
    _check_it_goes_on(recipe, tables, out, finished=3)


def _interrupted(tmp_path):
    """The recipe and the two tables of a collection that something stops."""
    folder = tmp_path / "tables"
    folder.mkdir()
    for name in "ab":
        mixed_frame().drop(columns="amount").to_csv(folder / f"{name}.csv", index=False)
    recipe = CollectionRecipe(
        "cash",
        Protocol(("accuracy", "balanced_accuracy"), folds=2),
        evaluations=10,
        only=ONLY,
        memory_bytes=2**31,
    )
    return recipe, sources(str(folder), Task.CLASSIFICATION)


def _check_it_goes_on(recipe, tables, out, finished):
    """All twenty evaluations are there in the end, and no finished one was made again."""
    evaluated = []
    made = made_of(recipe, tables, out, partial(_counting, evaluated))
    assert len(evaluated) == 20 - finished
    assert len(made) == 20
    assert len(set(zip(made.task_index, made.config_index, strict=True))) == 20
    assert np.isfinite(made.losses).all()


def _counting(evaluated, trial):
    """An executor that notes which trials it is given."""

    def evaluate_and_count(job):
        evaluated.append(job)
        return trial(job)

    return InlineExecutor(evaluate_and_count)


def _wait_for(condition, process, within=300.0):
    end = time.monotonic() + within
    while not condition():
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < end
        time.sleep(0.02)


def test_tables_are_prepared_once(out):
    loads = []

    def load():
        loads.append(1)
        return Table.of(mixed_frame().drop(columns="amount"), "class")

    folder = Folder.beside(out)
    folder.begin(RECIPE)
    for _ in range(2):
        [known] = prepare(
            [TableSource("t", "t", load)], folder.tables, most_rows=99, seed=0, progress=SILENT
        )
    assert len(loads) == 1
    assert (known.rows, known.columns) == (90, 11)
