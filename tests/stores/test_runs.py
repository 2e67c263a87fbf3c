import json

import pytest

from foretune.errors import ForetuneWarning
from foretune.experience import Direction, Status
from foretune.space import Space
from foretune.stores.files.dropped_rows import NOT_ENDED, TOLD_IN_PART
from foretune.stores.files.run_table import (
    LoggedRun,
    build_run_experience,
    check_columns,
    flatten_config,
    has_full_config,
)
from foretune.stores.formats import TableColumns
from tests.refusals import refuses, warns

LOSS = TableColumns(values={"loss": "min"})


def run(task, config, loss=None, **fields):
    return LoggedRun(task, config, {} if loss is None else {"loss": loss}, **fields)


def test_runs_become_evaluations_and_the_space_is_inferred():
    runs = [
        run("a", {"lr": 0.1, "depth": 2}, 3.0, seconds=1.5),
        run("b", {"lr": 0.001, "depth": 5}, 4.0),
    ]
    experience = build_run_experience(runs, LOSS, "here")
    assert experience.tasks == ("a", "b")
    assert experience.configs.dicts() == [{"lr": 0.1, "depth": 2}, {"lr": 0.001, "depth": 5}]
    assert experience.values.tolist() == [[3.0], [4.0]]
    assert experience.seconds[0] == 1.5
    assert experience.metrics[0].direction is Direction.MIN


def test_failures_are_kept_where_their_configuration_is_whole():
    """And what becomes of the others is said."""
    runs = [
        run("a", {"x": 0.5, "y": 1}, 1.0),
        run("a", {"x": 0.9, "y": 3}, failed=True),
        run("a", {"x": 0.1, "y": 2}),
        run("a", {"x": 0.7}, failed=True),
        run("a", {"x": 0.3, "y": 2}, float("nan")),
        run("b", {}, failed=True),
        run("b", {"y": 2}, failed=True),
    ]
    with warns("left-out", field="runs", value=(TOLD_IN_PART, 3, ("a", "b"))):
        experience = build_run_experience(runs, LOSS, "here")
    assert [Status(int(s)) for s in experience.status] == [Status.DONE, *[Status.FAILED] * 3]
    assert [c["x"] for c in experience.configs.dicts()] == [0.5, 0.9, 0.1, 0.3]


def test_a_run_without_one_of_the_metrics_has_failed():
    both = TableColumns(values={"loss": "min", "size": "min"})
    runs = [
        LoggedRun("a", {"x": 0.5}, {"loss": 1.0, "size": 2.0}),
        LoggedRun("a", {"x": 0.7}, {"loss": 1.0, "size": float("nan")}),
    ]
    assert build_run_experience(runs, both, "here").status.tolist() == [Status.DONE, Status.FAILED]


def test_a_failure_with_what_is_not_active_there_is_not_whole():
    """Of those that succeeded, none had a gamma with the linear kernel."""
    runs = [
        run("a", {"kernel": "linear"}, 1.0),
        run("a", {"kernel": "rbf", "gamma": 0.5}, 2.0),
        run("a", {"kernel": "linear", "gamma": 0.1}, failed=True),
    ]
    assert has_full_config(runs, [True, True, False]) == [True, True, False]


def test_runs_that_have_not_ended_are_left_out():
    """Also where they have reported the metric already."""
    runs = [run("a", {"x": 1}, 1.0), run("a", {"x": 2}, 2.0, ended=False)]
    with warns("left-out", value=(NOT_ENDED, 1, ("a",))):
        assert len(build_run_experience(runs, LOSS, "here")) == 1
    with pytest.warns(ForetuneWarning), refuses("nothing-ended", value="here"):
        build_run_experience(runs[1:], LOSS, "here")


def test_conditions_are_inferred_as_for_tables():
    runs = [
        run("a", {"model": "svm", "C": 1.0}, 1.0),
        run("a", {"model": "svm", "C": 2.0}, 1.0),
        run("a", {"model": "tree"}, 2.0),
    ]
    experience = build_run_experience(runs, LOSS, "here")
    assert experience.configs.dicts()[2] == {"model": "tree"}


@pytest.mark.parametrize("given", [False, True])
def test_failures_without_what_is_active_in_them_are_left_out(tmp_path, given):
    """Although what they name is all that others have."""
    path = tmp_path / "space.json"
    nested = {"model": {"svm": {"C": (0.0, 9.0)}, "tree": {}, "knn": {}}}
    path.write_text(Space.of(nested).to_json())
    c = "model:svm:C" if given else "C"
    runs = [
        run("a", {"model": "svm", c: 1.0}, 1.0),
        run("a", {"model": "svm", c: 2.0}, 1.0),
        run("a", {"model": "tree"}, 2.0),
        run("a", {"model": "svm"}, failed=True),
        run("a", {"model": "svm", c: 3.0}, failed=True),
        run("a", {"model": "tree"}, failed=True),
        run("a", {"model": "knn"}, failed=True),
    ]
    columns = TableColumns(values={"loss": "min"}, space=path if given else None)
    with warns("left-out", value=(TOLD_IN_PART, 1, ("a",))):
        records = build_run_experience(runs, columns, "here").task("a")
    assert records.configs.dicts() == [one.config for one in (*runs[:3], *runs[4:])]
    assert records.status.tolist() == [*[Status.DONE] * 3, *[Status.FAILED] * 3]


def test_failures_tell_what_is_active_where_none_succeeded():
    runs = [
        run("a", {"model": "svm", "C": 1.0}, 1.0),
        run("a", {"model": "tree"}, 2.0),
        run("a", {"model": "knn", "C": 4.0}, failed=True),
        run("a", {"model": "knn"}, failed=True),
    ]
    with warns("left-out", value=(TOLD_IN_PART, 1, ("a",))):
        found = build_run_experience(runs, LOSS, "here").configs.dicts()
    assert found == [one.config for one in runs[:3]]


def test_none_where_a_hyperparameter_is_inactive_is_no_gap():
    runs = [
        run("a", {"model": "svm", "C": 1.0}, 1.0),
        run("a", {"model": "svm", "C": 2.0}, 1.0),
        run("a", {"model": "tree"}, 2.0, nothing=["C"]),
        run("a", {"model": "tree"}, failed=True, nothing=["C"]),
    ]
    assert len(build_run_experience(runs, LOSS, "here")) == 4


def test_a_given_space_keeps_only_its_own(tmp_path):
    path = tmp_path / "space.json"
    path.write_text(Space.of({"x": (0.0, 1.0)}).to_json())
    columns = TableColumns(values={"loss": "max"}, space=path)
    experience = build_run_experience([run("a", {"x": 0.5, "note": "n"}, 1.0)], columns, "here")
    assert experience.configs.dicts() == [{"x": 0.5}]
    assert experience.metrics[0].direction is Direction.MAX


def test_none_is_not_taken_for_the_default_of_a_given_space(tmp_path):
    path = tmp_path / "space.json"
    columns = TableColumns(values={"loss": "min"}, space=path)
    runs = [run("a", {"x": 0.5}, 1.0, nothing=["depth"]), run("a", {"x": 0.7}, 2.0)]
    path.write_text(Space.of({"x": (0.0, 1.0), "depth": (1, 9)}).to_json())
    with refuses("none-outside-space", field="depth"):
        build_run_experience(runs, columns, "here")
    path.write_text(Space.of({"x": (0.0, 1.0), "depth": [3, None]}).to_json())
    found = build_run_experience(runs, columns, "here").configs.dicts()
    assert [config["depth"] for config in found] == [None, 3]
    # Where it is inactive, None says just that.
    nested = {"x": (0.0, 1.0), "model": {"tree": {"depth": (1, 9)}, "line": {}}}
    path.write_text(Space.of(nested).to_json())
    line = run("a", {"x": 0.5, "model": "line"}, 1.0, nothing=["model:tree:depth"])
    assert build_run_experience([line], columns, "here").configs.dicts() == [
        {"x": 0.5, "model": "line"}
    ]


@pytest.mark.parametrize(
    ("runs", "values", "rule"),
    [
        ([], {"loss": "min"}, "nothing-ended"),
        ([run("a", {"x": 1}, 1.0)], {}, "unnamed-metric"),
        ([run("a", {"x": 1}, 1.0)], {"error": "min"}, "unknown-metric"),
        ([run("a", {"x": 1}, 1.0, failed=True)], {"loss": "min"}, "nothing-succeeded"),
        ([run("a", {"x": 1}, 1.0)], {"loss": "up"}, "unknown-direction"),
    ],
)
def test_missing_parts_are_named(runs, values, rule):
    with refuses(rule):
        build_run_experience(runs, TableColumns(values=values), "here")


def test_options_of_tables_are_refused():
    with refuses("foreign-option", field="seconds"):
        check_columns(TableColumns(seconds="s"), "ray", task=False)
    with refuses("foreign-option", field="task"):
        check_columns(TableColumns(task="t"), "ray", task=False)
    check_columns(TableColumns(task="t", values={"a": "min"}), "mlflow", task=True)


def test_nested_configurations_are_flattened():
    assert flatten_config(json.loads('{"a": {"b": {"c": 1}}, "d": 2}')) == {"a/b/c": 1, "d": 2}
