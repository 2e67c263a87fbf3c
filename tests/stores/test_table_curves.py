"""Learning curves in tables: lists in cells, or one row for each step."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from foretune.cli.import_and_show import import_command, show_command
from foretune.experience import Experience, Status
from foretune.experience.curves import read_curve
from foretune.stores import TableColumns
from foretune.stores.files import evaluation_table
from tests.refusals import refuses, warns

NAN = float("nan")
COLUMNS = TableColumns(task="data", values={"acc": "max"}, seconds="took")
LISTS = pd.DataFrame(
    {
        "data": ["a", "a", "b", "b"],
        "lr": [0.1, 0.2, 0.1, 0.3],
        "acc": [[0.5, 0.75, 0.875], [0.25, 0.5], [0.5, NAN], [0.5, NAN, 0.625]],
        "took": [[1.0, 2.0, 4.0], [1.5, 3.0], [1.0, 2.0], [2.0, 4.0, 6.0]],
    }
)


def write(frame: pd.DataFrame, path) -> None:
    if path.suffix == ".parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False)


def read(frame, path, columns=COLUMNS) -> Experience:
    write(frame, path)
    return evaluation_table.read(path, columns=columns)


def curves(experience: Experience) -> dict:
    """{(task, lr): (status, value, seconds, steps, values at steps, seconds at steps)}"""
    found = {}
    names = [metric.name for metric in experience.metrics]
    for row in range(len(experience)):
        assert experience.curves is not None
        curve = read_curve(experience.curves, row, names)
        config = experience.configs.dicts()[experience.config_index[row]]
        key = experience.tasks[experience.task_index[row]], round(config["lr"], 6)
        found[key] = (
            Status(experience.status[row]).name,
            repr(float(experience.values[row, 0])),
            repr(float(experience.seconds[row])),
            curve and list(curve.steps),
            curve and repr(curve.values[names[0]]),
            curve and repr(curve.seconds),
        )
    return found


@pytest.mark.parametrize("ending", ["parquet", "csv", "csv.gz"])
def test_lists_are_curves_and_their_last_number_is_the_value(tmp_path, ending):
    experience = read(LISTS, tmp_path / f"runs.{ending}")
    assert curves(experience) == {
        ("a", 0.1): ("DONE", "0.875", "4.0", [1, 2, 3], "[0.5, 0.75, 0.875]", "[1.0, 2.0, 4.0]"),
        ("a", 0.2): ("DONE", "0.5", "3.0", [1, 2], "[0.25, 0.5]", "[1.5, 3.0]"),
        ("b", 0.1): ("FAILED", "nan", "2.0", [1, 2], "[0.5, nan]", "[1.0, 2.0]"),
        ("b", 0.3): ("DONE", "0.625", "6.0", [1, 2, 3], "[0.5, nan, 0.625]", "[2.0, 4.0, 6.0]"),
    }


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_lists_can_end_with_their_last_number(tmp_path, ending):
    found = curves(read(LISTS, tmp_path / f"runs.{ending}", replace(COLUMNS, shorten=True)))
    assert found["b", 0.1] == ("DONE", "0.5", "1.0", [1], "[0.5]", "[1.0]")
    # A gap before the last number stays.
    rest = ("DONE", "0.625", "6.0", [1, 2, 3], "[0.5, nan, 0.625]", "[2.0, 4.0, 6.0]")
    assert found["b", 0.3] == rest


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_a_column_of_steps_beside_curves_and_numbers(tmp_path, ending):
    frame = LISTS.assign(
        rows=[[10, 20, 40], [10, 20], [10, 20], [10, 20, 40]], took=[9.0, 8.0, 7.0, 6.0], f1=0.5
    )
    columns = TableColumns("data", {"f1": "max", "acc": "max"}, step="rows", seconds="took")
    experience = read(frame, tmp_path / f"runs.{ending}", columns)
    assert experience.values[0].tolist() == [0.5, 0.875]
    assert experience.seconds.tolist() == [9.0, 8.0, 7.0, 6.0]
    curve = read_curve(experience.curves, 0, ["f1", "acc"])
    assert curve.steps == [10, 20, 40]
    assert np.isnan(curve.values["f1"]).all()
    assert curve.seconds is None
    assert experience.largest_step("b") == 40


def test_a_status_says_which_trials_were_stopped(tmp_path):
    frame = LISTS.assign(state=["COMPLETE", "PRUNED", "FAIL", "STOPPED"])
    columns = TableColumns("data", {"acc": "max"}, seconds="took", status="state")
    experience = read(frame, tmp_path / "runs.csv", columns)
    assert [Status(each).name for each in experience.status] == [
        *("DONE", "STOPPED", "FAILED", "STOPPED")
    ]
    assert experience.values[1, 0] == 0.5
    assert np.isnan(experience.losses[1, 0])


def test_cells_without_a_list_and_lists_of_integers(tmp_path):
    frame = pd.DataFrame({"data": "a", "lr": [0.1, 0.2, 0.3], "acc": [[1, 2], None, []]})
    experience = read(frame, tmp_path / "runs.parquet", TableColumns("data", {"acc": "max"}))
    assert experience.curves.lengths.tolist() == [2, 0, 0]
    assert experience.values[:, 0].tolist()[0] == 2.0
    assert experience.status.tolist() == [Status.DONE, Status.FAILED, Status.FAILED]


def test_a_given_space_and_a_prefix_read_the_same_curves(tmp_path):
    frame = LISTS.rename(columns={"lr": "config/lr"}).assign(loss=LISTS["acc"])
    columns = TableColumns("data", {"acc": "max"}, seconds="took", config_prefix="config/")
    with_prefix = read(frame, tmp_path / "runs.parquet", columns)
    (tmp_path / "space.json").write_text(with_prefix.space.to_json())
    columns = TableColumns("data", {"acc": "max"}, seconds="took", space=tmp_path / "space.json")
    with_space = read(LISTS, tmp_path / "runs.csv", columns)
    assert curves(with_prefix) == curves(with_space) == curves(read(LISTS, tmp_path / "a.parquet"))


def test_other_lists_are_left_out_beside_curves_only(tmp_path):
    frame = LISTS.assign(other=LISTS["acc"])
    with warns("lists-left-out", value=("other",)):
        experience = read(frame, tmp_path / "runs.parquet")
    assert tuple(experience.space.names) == ("lr",)
    plain = frame.assign(acc=0.5, took=1.0)
    with refuses("list-column", field="other"):
        read(plain, tmp_path / "plain.parquet")
    ignored = TableColumns("data", {"acc": "max"}, seconds="took", ignored=("other",))
    assert read(plain, tmp_path / "plain.parquet", ignored).curves is None


@pytest.mark.parametrize(
    ("changes", "columns", "rule", "field"),
    [
        ({"took": [[1.0], [1.5, 3.0], [1.0, 2.0], [1.0, 2.0, 3.0]]}, {}, "curve-length", "took"),
        ({"acc": 0.5}, {}, "list-beside-numbers", "took"),
        ({"epoch": 3}, {"step": "epoch"}, "number-beside-lists", "epoch"),
        ({"data": [["a"]] * 4}, {}, "list-column", "data"),
        ({"acc": [["x"], ["y"], ["x"], ["y"]]}, {}, "not-a-number", "acc"),
        ({"epoch": LISTS["took"]}, {"step": "took"}, "column-of-two-meanings", "took"),
    ],
)
def test_lists_that_do_not_fit_are_refused(tmp_path, changes, columns, rule, field):
    named = {"task": "data", "values": {"acc": "max"}, "seconds": "took", **columns}
    with refuses(rule, field=field):
        read(LISTS.assign(**changes), tmp_path / "runs.parquet", TableColumns(**named))


def test_steps_that_go_back_are_refused(tmp_path):
    frame = LISTS.assign(rows=[[1, 2, 3], [2, 1], [1, 2], [1, 2, 3]])
    columns = TableColumns("data", {"acc": "max"}, seconds="took", step="rows")
    with refuses("curve-steps", field="1", value=1.0):
        read(frame, tmp_path / "runs.parquet", columns)


@pytest.mark.parametrize("text", ["[0.5 0.25]", "[0.5,", "[[1], [2]]", '["a"]', "[true]"])
def test_csv_cells_that_are_no_lists_of_numbers_are_refused(tmp_path, text):
    frame = pd.DataFrame({"data": ["a", "a"], "lr": [0.1, 0.2], "acc": ["[0.5, nan]", text]})
    with refuses("not-a-number", field="acc", value=text):
        read(frame, tmp_path / "runs.csv", TableColumns("data", {"acc": "max"}))


# One row for each step


def long_form(frame: pd.DataFrame) -> pd.DataFrame:
    """The same curves with one row for each step, in a random order."""
    rows = frame.assign(epoch=[list(range(1, len(each) + 1)) for each in frame["acc"]])
    return rows.explode(["acc", "took", "epoch"]).sample(frac=1.0, random_state=0)


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_one_row_for_each_step_gives_the_same_as_lists(tmp_path, ending):
    frame = long_form(LISTS).astype({"acc": float, "took": float, "epoch": int})
    columns = TableColumns("data", {"acc": "max"}, seconds="took", step="epoch")
    experience = read(frame, tmp_path / f"long.{ending}", columns)
    assert curves(experience) == curves(read(LISTS, tmp_path / "lists.parquet"))


def test_rows_of_different_status_are_different_trials(tmp_path):
    frame = pd.DataFrame(
        {
            "data": "a",
            "lr": 0.1,
            "epoch": [1, 2, 1],
            "acc": [0.5, 0.75, 0.25],
            "state": ["DONE", "DONE", "STOPPED"],
        }
    )
    columns = TableColumns("data", {"acc": "max"}, step="epoch", status="state")
    experience = read(frame, tmp_path / "long.csv", columns)
    assert experience.status.tolist() == [Status.DONE, Status.STOPPED]
    assert experience.curves.lengths.tolist() == [2, 1]
    assert experience.values[:, 0].tolist() == [0.75, 0.25]


def test_rows_whose_steps_are_missing_or_repeated_are_refused(tmp_path):
    frame = pd.DataFrame({"data": "a", "lr": 0.1, "epoch": [1.0, 2.0, 2.0], "acc": 0.5})
    columns = TableColumns("data", {"acc": "max"}, step="epoch")
    with refuses("repeated-step", field="epoch", value=2.0):
        read(frame, tmp_path / "long.csv", columns)
    with refuses("row-without-step", field="epoch", value=-1.0):
        read(frame.assign(epoch=[1.0, 2.0, -1.0]), tmp_path / "long.csv", columns)
    with refuses("row-without-step", field="epoch"):
        read(frame.assign(epoch=[1.0, 2.0, NAN]), tmp_path / "long.csv", columns)


def test_a_column_that_changes_with_each_step_is_told(tmp_path):
    frame = pd.DataFrame(
        {"data": "a", "lr": 0.1, "epoch": [1, 2, 3], "acc": 0.5, "other": [0.1, 0.2, 0.4]}
    )
    columns = TableColumns("data", {"acc": "max"}, step="epoch")
    with warns("curves-of-one-step", field="epoch"):
        read(frame, tmp_path / "long.csv", columns)


CURVES = st.lists(
    st.lists(
        # Tables do not tell -0.0 from 0.0.
        st.floats(-1e6, 1e6, width=32).map(lambda number: number + 0.0) | st.just(NAN),
        min_size=1,
        max_size=5,
    ),
    min_size=1,
    max_size=6,
)


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(lists=CURVES)
def test_any_curves_are_the_same_in_each_form(tmp_path, lists):
    lists = [[0.5, 0.25], *lists]
    frame = pd.DataFrame({"data": "a", "lr": np.arange(1.0, len(lists) + 1), "acc": lists})
    frame["took"] = [[float(i) for i in range(len(each))] for each in lists]
    text = frame.assign(acc=[json.dumps(each) for each in lists])
    steps = long_form(frame).astype({"acc": float, "took": float, "epoch": int})
    by_step = TableColumns("data", {"acc": "max"}, seconds="took", step="epoch")
    expected = curves(read(frame, tmp_path / "lists.parquet"))
    assert [each[4] for each in expected.values()] == list(map(repr, lists))
    assert curves(read(text, tmp_path / "lists.csv")) == expected
    assert curves(read(steps, tmp_path / "steps.parquet", by_step)) == expected


def test_the_command_imports_curves_and_shows_them(tmp_path):
    frame = LISTS.assign(config=[0, 1, 0, 2], other=LISTS["acc"])
    write(frame, tmp_path / "runs.parquet")
    out = tmp_path / "exp.parquet"
    with warns("lists-left-out", value=("other",)):
        told = CliRunner().invoke(
            import_command,
            [
                *("table", str(tmp_path / "runs.parquet"), "--task", "data"),
                *("--value", "acc:max", "--seconds", "took", "--ignore", "config", "-o", str(out)),
            ],
        )
    assert told.exit_code == 0, told.output
    assert Experience.open(out).curves.lengths.tolist() == [3, 2, 2, 3]
    shown = CliRunner().invoke(show_command, [str(out)])
    assert "10 points" in shown.output


def test_lists_of_large_types_are_read_a_part_at_a_time(tmp_path):
    # Some releases of pyarrow cannot read a missing list of a fixed size back.
    for kind, gap in (
        (pa.list_(pa.float32()), None),
        (pa.large_list(pa.float64()), None),
        (pa.list_(pa.int64(), 2), [9, 9]),
    ):
        table = pa.table(
            {
                "data": ["a"] * 5,
                "lr": [0.1, 0.2, 0.3, 0.4, 0.5],
                "acc": pa.array([[1, 2], gap, [3, 4], [5, 6], [7, 8]], type=kind),
            }
        )
        pq.write_table(table, tmp_path / "runs.parquet", row_group_size=2)
        experience = evaluation_table.read(
            tmp_path / "runs.parquet", columns=TableColumns("data", {"acc": "max"})
        )
        between = gap or []
        assert experience.curves.values[:, 0].tolist() == [1, 2, *between, 3, 4, 5, 6, 7, 8]
        assert experience.curves.lengths.tolist() == [2, len(between), 2, 2, 2]
