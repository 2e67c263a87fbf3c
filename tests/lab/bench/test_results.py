from dataclasses import asdict, replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from foretune_lab.bench.results import ReplaySettings, curves_of, merge, read, save
from tests.lab.bench.tables import facts, results
from tests.refusals import refuses

NAN = np.nan


def two_methods():
    return results(
        {
            ("t1", "b", 0): [0.5, NAN, 0.25],
            ("t1", "a", 0): [NAN, 0.75, 1.0],
            ("t2", "b", 0): [1.0, 0.0, 0.5],
            ("t2", "a", 0): [0.0, 0.5],
        },
        {"t1": facts(), "t2": facts(0.0, 2.0)},
    )


def test_a_file_gives_back_what_was_saved(tmp_path):
    path = tmp_path / "results.parquet"
    save(two_methods(), path)
    found = read(path)
    assert found.settings == two_methods().settings
    assert found.runs == two_methods().runs
    assert found.pools["t2"].high == 2.0
    assert len(found.rows) == 11
    assert list(tmp_path.iterdir()) == [path]


def test_files_from_before_there_was_a_choice_of_starts_had_none():
    plain = asdict(two_methods().settings)
    del plain["start"]
    assert ReplaySettings.from_dict(plain) == two_methods().settings


def test_notes_are_compared_and_an_older_file_may_have_used_none():
    older = two_methods().settings
    plain, one, other = (replace(older, notes=notes) for notes in ("", "1f", "2e"))
    assert older.notes is None
    assert older.difference(older) == older.difference(plain) == plain.difference(older) == ""
    for first, second in [(one, other), (one, plain)]:
        assert first.difference(second).startswith("another content of the split")
    for first, second in [(one, older), (older, one)]:
        assert first.difference(second).startswith("settings that do not say which split")


def test_curves_hold_the_losses_in_the_order_of_the_names():
    curves = curves_of(two_methods(), ["a", "b"])
    assert (curves.methods, curves.tasks, curves.seeds) == (("a", "b"), ("t1", "t2"), (0,))
    np.testing.assert_array_equal(curves.values[0, 0, 0, :, 0], [NAN, 0.75, 1.0])
    np.testing.assert_array_equal(curves.best[1, 0, 0], [0.5, 0.5, 0.25])
    np.testing.assert_array_equal(curves.suggest_seconds, [0.5, 0.5])
    np.testing.assert_array_equal(curves.learn_seconds, [2.0, 2.0])
    assert curves.left_out == 0


def test_the_best_stays_after_a_pool_is_used_up():
    np.testing.assert_array_equal(curves_of(two_methods(), ["a"]).best[0, 1, 0], [0.0, 0.0, 0.0])


def test_only_shared_tasks_and_seeds_are_compared():
    lopsided = results(
        {
            ("t1", "a", 0): [1.0],
            ("t1", "a", 1): [2.0],
            ("t2", "a", 0): [3.0],
            ("t1", "b", 0): [4.0],
            ("t2", "b", 0): [5.0],
            ("t3", "b", 0): [6.0],
        }
    )
    curves = curves_of(lopsided)
    assert (curves.tasks, curves.seeds, curves.left_out) == (("t1", "t2"), (0,), 2)


def runs_of(seeds_by_task, methods=("a", "b")):
    return results(
        {(t, m, s): [1.0] for t, seeds in seeds_by_task.items() for s in seeds for m in methods}
    )


def test_one_task_with_few_seeds_does_not_take_the_seeds_of_all():
    curves = curves_of(runs_of({**{f"t{n}": range(4) for n in range(5)}, "late": [0]}))
    assert (curves.tasks, curves.seeds) == (("t0", "t1", "t2", "t3", "t4"), (0, 1, 2, 3))
    assert curves.left_out == 2


def test_one_seed_of_few_tasks_does_not_take_the_tasks_of_all():
    curves = curves_of(runs_of({"t0": [0, 1], "t1": [0], "t2": [0]}))
    assert (curves.tasks, curves.seeds) == (("t0", "t1", "t2"), (0,))


def test_seeds_that_overlap_in_part_are_kept_where_they_do():
    curves = curves_of(runs_of({"t0": [0, 1, 2], "t1": [1, 2, 3], "t2": [2, 3, 4]}))
    assert len(curves.tasks) * len(curves.seeds) == 4


def test_tasks_without_a_seed_in_common_are_still_reported():
    curves = curves_of(runs_of({"t0": [0], "t1": [1]}))
    assert len(curves.tasks) == len(curves.seeds) == 1
    assert curves.left_out == 2


def test_methods_that_share_nothing_cannot_be_compared():
    apart = results({("t1", "a", 0): [1.0], ("t2", "b", 0): [1.0]})
    with refuses("nothing-shared", value=("a", "b")):
        curves_of(apart)


def test_a_method_without_runs_is_named():
    with refuses("method-without-runs", value="zzz"):
        curves_of(two_methods(), ["a", "zzz"])


def test_files_of_one_suite_are_joined_and_suites_kept_apart():
    first = results({("t1", "a", 0): [1.0]})
    second = results({("t1", "b", 0): [2.0]})
    other = results({("t1", "a", 0): [3.0]}, suite="other")
    joined, apart = merge([first, other, second])
    assert joined.runs == {("t1", "a", 0), ("t1", "b", 0)}
    assert apart.settings.suite == "other"


def test_a_run_that_stands_in_two_files_is_refused():
    with refuses("repeated-run", value=("a", "t1", 0)):
        merge([results({("t1", "a", 0): [1.0]}), results({("t1", "a", 0): [1.0]})])


def test_results_made_differently_are_not_joined():
    first = results({("t1", "a", 0): [1.0]})
    second = replace(first, settings=replace(first.settings, trials=9))
    with refuses("equal-settings"):
        merge([first, second])


def test_a_missing_file_is_named(tmp_path):
    with refuses("missing-results"):
        read(tmp_path / "nothing.parquet")


def test_a_damaged_file_is_refused(tmp_path):
    path = tmp_path / "results.parquet"
    save(two_methods(), path)
    path.write_bytes(path.read_bytes()[:-50])
    with refuses("unreadable-results"):
        read(path)


@pytest.mark.parametrize(
    "spoilt",
    [
        b"{",
        b"[]",
        b'{"version": "1"}',
        b'{"version": 1, "pools": null}',
        b'{"version": 1, "pools": {}, "settings": {}}',
    ],
)
def test_a_file_with_spoilt_settings_is_refused(tmp_path, spoilt):
    path = tmp_path / "results.parquet"
    save(two_methods(), path)
    table = pq.read_table(path).replace_schema_metadata({b"foretune.results": spoilt})
    pq.write_table(table, path)
    with refuses("damaged-results"):
        read(path)


def test_another_parquet_file_is_refused(tmp_path):
    path = tmp_path / "other.parquet"
    pd.DataFrame({"a": [1]}).to_parquet(path)
    with refuses("not-results"):
        read(path)


def test_a_newer_file_is_refused(tmp_path):
    path = tmp_path / "results.parquet"
    pq.write_table(
        pa.table({"task": ["t1"]}).replace_schema_metadata({"foretune.results": '{"version": 3}'}),
        path,
    )
    with refuses("results-version", value=3):
        read(path)


def test_missing_columns_are_named(tmp_path):
    path = tmp_path / "results.parquet"
    whole = two_methods()
    save(replace(whole, rows=whole.rows.drop(columns=["best"])), path)
    with refuses("results-columns", value=("best",)):
        read(path)
