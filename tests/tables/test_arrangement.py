import numpy as np
import pandas as pd
import pytest

from foretune.tables.column_roles import ColumnRoles
from foretune.tables.identity import fingerprint
from foretune.tables.number_formats import no_mark
from foretune.tables.reading import read_table
from foretune.tables.row_structure import RowStructure, RowStructureKind
from foretune.tables.table import Table
from foretune.tables.target import Task
from tests.automl.samples import mixed_frame
from tests.refusals import refuses


def order_of(values):
    return list(RowStructure.in_order("by", pd.Series(values), no_mark).values)


@pytest.mark.parametrize(
    "values",
    [
        [3, 1, 2, 1],
        [0.3, -0.1, 0.2, -0.1],
        ["1.003", "1.001", "1.002", "1.001"],
        ["2024-03-01", "2023-12-31", "2024-01-15", "2023-12-31"],
        ["01/03/2024", "31/12/2023", "15/01/2024", "31/12/2023"],
        pd.to_datetime(["2024-03-01", "2023-12-31", "2024-01-15", "2023-12-31"]),
        pd.to_datetime(["2024-03-01", "2023-12-31", "2024-01-15", "2023-12-31"]).tz_localize("CET"),
        pd.PeriodIndex(["2024-03", "2023-12", "2024-01", "2023-12"], freq="M"),
        pd.to_timedelta([3, 1, 2, 1], unit="h"),
        pd.Categorical([30, 4, 5, 4]),
        pd.Categorical(["2024-03-01", "2023-12-31", "2024-01-15", "2023-12-31"]),
        pd.Categorical(pd.to_datetime(["2024-03-01", "2023-12-31", "2024-01-15", "2023-12-31"])),
    ],
)
def test_numbers_dates_and_spans_put_rows_in_order(values):
    assert order_of(values) == [2.0, 0.0, 1.0, 0.0]


def test_numbers_of_rows_are_an_order():
    assert order_of([5, 6, 7, 8]) == [0.0, 1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("values", "broken"),
    [
        (["late", "early", "late"], ("order-by-numbers-or-dates", "late")),
        (["2024-01-01", "2024-01-02", "soon"], ("order-by-numbers-or-dates", "soon")),
        (["1,5", "2,5", "many"], ("order-by-numbers-or-dates", "many")),
        ([True, False], ("order-by-numbers-or-dates", "True")),
        ([[1], [2]], ("order-by-numbers-or-dates", "[1]")),
        ([1.0, None, 2.0], ("row-without-place", 1)),
        (pd.Categorical([1, None, 2]), ("row-without-place", 1)),
        ([1.0, np.inf, 1.0], ("row-without-place", 1)),
        ([None, None], ("row-without-place", 2)),
        ([7, 7, 7], ("one-place-for-all-rows", None)),
        (["2024-01-01"] * 3, ("one-place-for-all-rows", None)),
    ],
)
def test_invalid_orders_are_refused(values, broken):
    rule, value = broken
    with refuses(rule, value=value):
        order_of(values)


def test_rows_without_a_group_are_on_their_own():
    found = RowStructure.together("by", pd.Series(["a", None, "b", "a", None]))
    assert found.values[0] == found.values[3]
    assert found.groups == 4


def test_groups_of_any_values():
    found = RowStructure.together("by", pd.Series([1, "1", [2], [2], True], dtype=object))
    assert found.values[2] == found.values[3] != found.values[4]


def test_rows_without_a_group_are_told():
    frame = mixed_frame()
    frame.loc[:9, "class"] = None
    lacking = frame["town"][10:].isna().sum()
    said = f"Rows without a 'town', each a group of its own: {lacking} of 80."
    assert said in read_table(frame, "class", roles=ColumnRoles(group="town")).notes
    others = read_table(frame, "class", roles=ColumnRoles(group="letter", ignored=("town",))).notes
    assert not any("each taken for one" in note for note in others)


@pytest.mark.parametrize("values", [["a"] * 4, [None] * 4])
def test_one_group_is_none(values):
    with refuses("too-few-groups", field="by"):
        RowStructure.together("by", pd.Series(values))


def test_two_of_a_kind_are_enough():
    assert RowStructure.together("by", pd.Series(["a", "a", "b"])).groups == 2
    assert order_of([1, 1, 2]) == [0.0, 0.0, 1.0]


@pytest.mark.parametrize(
    ("roles", "rule", "field"),
    [
        (ColumnRoles(group="lettr"), "unknown-column", "lettr"),
        (ColumnRoles(order="dy"), "unknown-column", "dy"),
        (ColumnRoles(ignored=("day", "nose")), "unknown-column", "nose"),
        (ColumnRoles(group="class"), "target-has-another-role", "class"),
        (ColumnRoles(order="class"), "target-has-another-role", "class"),
        (ColumnRoles(ignored=("class",)), "target-has-another-role", "class"),
        (ColumnRoles(group="letter", order="day"), "group-or-order", ""),
        (ColumnRoles(group="number", weight="number"), "weight-has-another-role", "number"),
        (ColumnRoles(order="number", weight="number"), "weight-has-another-role", "number"),
    ],
)
def test_roles_that_cannot_be(roles, rule, field):
    with refuses(rule, field=field):
        Table.of(mixed_frame(), "class", roles=roles)


@pytest.mark.parametrize("roles", [ColumnRoles(group="letter"), ColumnRoles(ignored=("letter",))])
def test_columns_that_are_left_out_as_asked_for_leave_nothing_to_learn_from(roles):
    frame = mixed_frame()[["letter", "class"]]
    with refuses("nothing-to-learn-from", value={"as asked for": ["letter"]}):
        Table.of(frame, "class", roles=roles)


def test_groups_are_not_learnt_from_and_the_order_is():
    frame = mixed_frame()
    by_letter = Table.of(
        frame, "class", roles=ColumnRoles(group="letter", ignored=("amount", "letter"))
    )
    assert not {"letter", "amount"} & set(by_letter.schema.features)
    assert by_letter.arrangement.kind is RowStructureKind.TOGETHER
    assert by_letter.arrangement.groups == 3
    by_day = Table.of(frame, "class", roles=ColumnRoles(order="day"))
    assert "day (days)" in by_day.schema.features
    assert list(by_day.arrangement.values) == list(range(len(frame)))


def test_only_rows_with_a_target_need_a_place():
    frame = mixed_frame()
    frame.loc[3, ["class", "day"]] = None
    table = Table.of(frame, "class", roles=ColumnRoles(order="day"))
    assert len(table.arrangement) == len(table) == len(frame) - 1


def test_rows_without_a_target_tell_how_dates_are_written():
    days = pd.date_range("2024-01-01", periods=60, freq="3D")
    frame = mixed_frame(60).assign(day=days.strftime("%m/%d/%Y"))
    frame.loc[days.day > 12, "class"] = None
    table = Table.of(frame, "class", roles=ColumnRoles(order="day"))
    assert list(table.arrangement.values) == list(range(len(table)))


def test_an_arrangement_follows_its_rows(tmp_path):
    table = Table.of(mixed_frame(), "class", roles=ColumnRoles(group="letter"))
    some = table.rows(np.array([5, 1, 7]))
    assert list(some.arrangement.values) == list(table.arrangement.values[[5, 1, 7]])
    kept = table.without_rare_classes(25)
    assert len(kept.classes) < len(table.classes)
    assert len(kept.arrangement) == len(kept) < len(table)
    sampled = table.sample(30, seed=0)
    assert len(sampled.arrangement) == 30
    table.save(tmp_path / "t.npz")
    opened = Table.open(tmp_path / "t.npz")
    assert opened.arrangement.kind is RowStructureKind.TOGETHER
    assert opened.arrangement.column == "letter"
    assert np.array_equal(opened.arrangement.values, table.arrangement.values)


def test_an_arrangement_of_other_rows_is_refused(tmp_path):
    table = Table.of(mixed_frame(), "class", roles=ColumnRoles(group="letter"))
    table.save(tmp_path / "t.npz")
    with np.load(tmp_path / "t.npz") as arrays:
        spoilt = {**arrays, "arrangement": arrays["arrangement"][:-1]}
    np.savez(tmp_path / "t.npz", **spoilt)
    with refuses("prepared-table", value=str(tmp_path / "t.npz")):
        Table.open(tmp_path / "t.npz")


def test_the_same_rows_scored_in_another_way_are_another_task():
    frame = mixed_frame().drop(columns="amount")
    ignored = ("letter",)
    tables = [
        Table.of(frame, "class", task=Task.CLASSIFICATION, roles=roles)
        for roles in (
            ColumnRoles(ignored=ignored),
            ColumnRoles(group="letter"),
            ColumnRoles(order="day", ignored=ignored),
            ColumnRoles(order="number", ignored=ignored),
        )
    ]
    assert all(np.array_equal(tables[0].x, table.x, equal_nan=True) for table in tables)
    assert len({fingerprint(table) for table in tables}) == 4
