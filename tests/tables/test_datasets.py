from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from foretune.automl.model_scores import rows_with_target
from foretune.errors import UsageError
from foretune.tables.table import Table
from foretune.tables.target import LabelKind, Task, encode_classes, infer_task
from tests.automl.samples import mixed_frame, mixed_table
from tests.refusals import refuses


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["a", "b"] * 20, Task.CLASSIFICATION),
        ([True, False] * 20, Task.CLASSIFICATION),
        ([0, 1, 2] * 20, Task.CLASSIFICATION),
        ([3.0, 7.0], Task.CLASSIFICATION),
        (list(range(40)), Task.REGRESSION),
        ([0.5, 1.5] * 20, Task.REGRESSION),
    ],
)
def test_the_task_is_found_out(values, expected):
    assert infer_task(pd.Series(values)) is expected


@pytest.mark.parametrize("cell", [[1, 2], {"a": 1}, np.array([1, 2])])
def test_a_target_of_many_parts_is_refused(cell):
    frame = pd.DataFrame({"a": range(0, 60, 2), "y": [None, *[cell] * 29]})
    with refuses("target-of-many-parts", field="y"):
        Table.of(frame, "y")


def test_a_target_is_read_as_what_is_learnt_from():
    """1.101 may be 1101 in a table of decimal commas, but it may also be a number as it stands."""
    texts = [f"{number / 1000:.3f}" for number in range(1001, 1301)]
    frame = pd.DataFrame({"x": texts, "y": texts, "share": ["0,5", "1,5", "2,5"] * 100})
    table = Table.of(frame, "y")
    np.testing.assert_array_equal(table.y, np.arange(1001, 1301) / 1000)
    np.testing.assert_array_equal(table.x[:, 0], table.y)
    assert table.target_decimal == ""


def test_classes_become_codes_and_rows_without_a_target_are_left_out():
    frame = mixed_frame().drop(columns="amount")
    frame.loc[0, "class"] = None
    table = Table.of(frame, "class")
    assert table.task is Task.CLASSIFICATION
    assert table.classes == ("high", "low", "middle")
    assert len(table) == len(frame) - 1
    decoded = [table.classes[int(code)] for code in table.y]
    assert decoded == frame["class"].iloc[1:].tolist()


@pytest.mark.parametrize("task", list(Task))
def test_a_saved_table_comes_back(tmp_path, task):
    table = mixed_table(task)
    table.save(tmp_path / "t.npz")
    back = Table.open(tmp_path / "t.npz")
    assert (back.name, back.task, back.schema, back.classes) == (
        table.name,
        table.task,
        table.schema,
        table.classes,
    )
    np.testing.assert_array_equal(back.x, table.x)
    np.testing.assert_array_equal(back.y, table.y)


@pytest.mark.parametrize("content", [b"", b"nonsense", b"\x80\x04N."])
def test_other_files_are_refused(tmp_path, content):
    path = tmp_path / "t.npz"
    path.write_bytes(content)
    with refuses("prepared-table", value=str(path)):
        Table.open(path)


def test_a_sample_keeps_the_shares_of_classes():
    table = mixed_table(Task.CLASSIFICATION, n=900)
    part = table.sample(90, seed=1)
    assert len(part) == 90
    shares = np.bincount(table.y.astype(int)) / 900
    assert np.abs(np.bincount(part.y.astype(int)) / 90 - shares).max() < 0.02
    assert table.sample(900, seed=1) is table
    assert len(mixed_table(Task.REGRESSION).sample(30, seed=1)) == 30


def test_rare_classes_can_be_left_out():
    frame = pd.DataFrame({"a": np.arange(12.0) ** 2, "y": list("aaaaabbbbbbc")})
    table = Table.of(frame, "y").without_rare_classes(5)
    assert table.classes == ("a", "b")
    assert table.y.tolist() == [0.0] * 5 + [1.0] * 6


def test_mistakes():
    frame = mixed_frame()
    with refuses("unknown-column", field="clas"):
        Table.of(frame, "clas")
    with refuses("too-few-rows", field="class", value=3):
        Table.of(frame.iloc[:3], "class")
    with refuses("one-class", field="one", value="a"):
        Table.of(frame.assign(one="a"), "one")
    with refuses("target-is-no-number", field="class"):
        Table.of(frame, "class", task=Task.REGRESSION)
    with refuses("nothing-to-learn-from", value={"the same in every row": ["always"]}):
        Table.of(frame[["always", "class"]], "class")


@pytest.mark.parametrize(
    ("different", "advice"), [(4, "or choose classification"), (40, "or leave them out")]
)
def test_classes_are_advised_only_where_values_repeat(different, advice):
    y = [np.inf, *range(different - 1)] * (40 // different)
    with pytest.raises(UsageError, match=f"finite numbers.* {advice}$"):
        Table.of(pd.DataFrame({"a": np.arange(40) ** 2, "y": y}), "y", task=Task.REGRESSION)


@pytest.mark.parametrize(
    ("others", "said"),
    [
        (["free"] * 2, ["free"]),
        (["a", "b", "a", "c"], ["a", "b", "c"]),
        (["a", "b", "c", "d", "e"], ["a", "b", "c", "d", "e"]),
    ],
)
@pytest.mark.parametrize("mark", [".", ","])
def test_the_cells_that_are_no_numbers_are_named(others, said, mark):
    y = [*(f"{i}{mark}5" for i in range(40)), *others]
    with refuses("target-is-no-number", field="y", value=said):
        Table.of(pd.DataFrame({"a": np.arange(len(y)) ** 2, "y": y}), "y", task=Task.REGRESSION)


def test_numbers_of_two_units_are_named_as_they_are():
    y = [f"{i} {'€' if i % 2 else '$'}" for i in range(40)]
    with refuses("target-is-no-number", field="y", value=y):
        Table.of(pd.DataFrame({"a": np.arange(40) ** 2, "y": y}), "y", task=Task.REGRESSION)


@pytest.mark.parametrize("how", ["datetime64[ns]", "datetime64[s]", "period[D]", "text"])
def test_dates_are_no_numbers_to_predict(how):
    y = pd.Series(pd.date_range("2020-01-01", periods=40))
    y = y.dt.strftime("%d.%m.%Y") if how == "text" else y.astype(how)
    with refuses("target-is-a-time", field="y", value="dates"):
        Table.of(pd.DataFrame({"a": np.arange(40) ** 2, "y": y}), "y", task=Task.REGRESSION)


@pytest.mark.parametrize("unit", ["ms", "ns", "text"])
def test_durations_are_no_numbers_to_predict(unit):
    y = pd.Series(pd.to_timedelta(np.arange(40), unit="s"))
    y = y.astype(str if unit == "text" else f"timedelta64[{unit}]")
    with refuses("target-is-a-time", field="y", value="durations"):
        Table.of(pd.DataFrame({"a": np.arange(40) ** 2, "y": y}), "y", task=Task.REGRESSION)


def test_numbers_of_a_database_are_numbers():
    prices = [None, *(Decimal(cents) / 100 for cents in range(125, 164))]
    frame = pd.DataFrame({"a": np.arange(40.0) ** 2, "y": pd.Series(prices, dtype=object)})
    table = Table.of(frame, "y")
    assert table.task is Task.REGRESSION
    np.testing.assert_allclose(table.y, np.arange(125, 164) / 100)
    _, y = rows_with_target(frame, "y", table.task, ())
    np.testing.assert_array_equal(y, table.y)


def test_whole_numbers_of_a_database_may_be_classes():
    flags = [Decimal("0.00"), Decimal("1.00")] * 20
    frame = pd.DataFrame({"a": np.arange(40.0) ** 2, "y": pd.Series(flags, dtype=object)})
    table = Table.of(frame, "y")
    assert (table.classes, table.label_kind) == (("0", "1"), LabelKind.INTEGER)
    _, y = rows_with_target(frame, "y", table.task, table.classes)
    np.testing.assert_array_equal(y, table.y)


def test_a_test_table_may_have_numbered_columns():
    frame = pd.DataFrame({0: np.arange(40.0) ** 2, 1: ["a", "b"] * 20})
    table = Table.of(frame, "1")
    known, y = rows_with_target(frame, "1", table.task, table.classes)
    assert list(known.columns) == ["0", "1"]
    np.testing.assert_array_equal(y, table.y)


def test_classes_that_differ_in_what_numpy_cuts_off_stay_apart():
    frame = pd.DataFrame({"a": np.arange(20.0) ** 2, "y": ["0", "0\x00"] * 10})
    assert Table.of(frame, "y").classes == ("0", "0\x00")


def test_whole_numbers_with_gaps_are_whole_classes():
    frame = pd.DataFrame({"a": np.arange(40.0) ** 2, "y": [0.0, 1.0] * 19 + [None, 1.0]})
    # Rows may have the same label, as after pd.concat.
    table = Table.of(frame.set_axis([0] * 40), "y")
    assert table.classes == ("0", "1")
    assert table.label_kind is LabelKind.INTEGER
    assert len(table) == 39


@pytest.mark.parametrize("classes", [("0", "1"), ("0.0", "1.0")])
@pytest.mark.parametrize("values", [[0, 1, 1], [0.0, 1.0, 1.0], ["0", "1.0", "1"]])
def test_whole_numbers_are_the_same_class_however_they_were_read(classes, values):
    codes, new = encode_classes(pd.Series(values), classes)
    assert codes.tolist() == [0.0, 1.0, 1.0]
    assert new == []


def test_texts_that_are_no_class_are_named():
    codes, new = encode_classes(pd.Series(["1.0", "1", "x.0", "2", "2.5"]), ("1", "1.0", "2.0"))
    assert codes[:2].tolist() == [1.0, 0.0]
    assert codes[3] == 2.0
    assert new == ["2.5", "x.0"]


def test_texts_of_numbers_are_no_dates_to_predict():
    y = [str(20240101 + i) for i in range(30)]
    table = Table.of(pd.DataFrame({"a": np.arange(30) ** 2, "y": y}), "y", task=Task.REGRESSION)
    assert table.y[0] == 20240101
