"""Columns that say how much rows count."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from foretune.automl.model_scores import rows_with_target
from foretune.tables.column_roles import ColumnRoles
from foretune.tables.columns import ColumnKind
from foretune.tables.identity import fingerprint
from foretune.tables.number_formats import no_mark
from foretune.tables.reading import read_table, read_test_table
from foretune.tables.row_weights import RowWeights
from foretune.tables.table import Table
from foretune.tables.target import Task
from tests.automl.samples import mixed_frame
from tests.refusals import refuses


def weights_of(values):
    return RowWeights.of("w", pd.Series(values), no_mark).values


def weighed(weights, **more):
    frame = mixed_frame(n=len(weights)).assign(w=weights, **more)
    return Table.of(frame.drop(columns="class"), "amount", roles=ColumnRoles(weight="w"))


@pytest.mark.parametrize(
    "values",
    [
        [1, 2, 3],
        [10.0, 20.0, 30.0],
        ["0,5", "1,0", "1,5"],
        pd.array([1, 2, 3], dtype="Int64"),
        [Decimal("0.5"), Decimal(1), Decimal("1.5")],
        pd.Categorical(["0,5", "1,0", "1,5"]),
        pd.to_timedelta(["1D", "2D", "3D"]),
        [5e307, 1e308, 1.5e308],
        [1e-300, 2e-300, 3e-300],
    ],
)
def test_weights_are_one_on_average(values):
    np.testing.assert_allclose(weights_of(values), [0.5, 1.0, 1.5])


@pytest.mark.parametrize(
    ("values", "rule"),
    [
        ([1.0, -1.0, 2.0], "weights-are-numbers"),
        ([1.0, None, None], "weights-are-numbers"),
        ([1.0, np.inf], "weights-are-numbers"),
        (["heavy", "light"], "weights-are-numbers"),
        ([0.0, 0.0], "weights-above-zero"),
        (["3 months", "1 year"], "weights-are-numbers"),
        (pd.to_datetime(["2024-01-01", "2024-01-02"]), "weights-are-numbers"),
        (pd.period_range("2024-01", periods=2, freq="M"), "weights-are-numbers"),
        ([1 + 2j, 2 + 0j], "weights-are-numbers"),
        ([1e-300, 1.0], "weights-too-far-apart"),
    ],
)
def test_invalid_weights_are_refused(values, rule):
    with refuses(rule, field="w"):
        weights_of(values)


def test_weights_are_not_learnt_from_and_rows_of_weight_0_are_left_out():
    table = weighed(np.tile([0.0, 1.0, 3.0], 30))
    assert len(table) == 60
    assert "w" not in [column.name for column in table.schema.columns]
    np.testing.assert_allclose(table.weights, np.tile([0.5, 1.5], 30))


def test_the_unit_of_weights_does_not_matter():
    months = np.random.default_rng(0).integers(1, 100, 90) * 1.0
    assert fingerprint(weighed(months)) == fingerprint(weighed(7.0 * months))
    assert np.array_equal(weights_of(np.full(7, 0.1)), np.ones(7))


def test_rows_of_weight_0_are_as_if_they_were_not_there():
    amount = np.random.default_rng(0).normal(size=90).astype(str).astype(object)
    size = np.arange(90.0).astype(str).astype(object)
    amount[3], size[3] = "not known", "large"
    weights = np.ones(90)
    weights[3] = 0.0
    frame = pd.DataFrame({"size": size, "amount": amount, "w": weights})
    read = read_table(frame, "amount", roles=ColumnRoles(weight="w"))
    assert read.table.task is Task.REGRESSION
    assert [column.kind for column in read.table.schema.columns] == [ColumnKind.NUMBER]
    assert "Rows of weight 0, left out: 1 of 90." in read.notes
    assert read.facts.rows == 90


def test_few_rows_that_count_are_too_few():
    with refuses("too-few-rows", value=5):
        weighed(np.repeat([0.0, 1.0], [85, 5]))
    with refuses("too-few-rows"):
        weighed(np.ones(90), amount=None)


def test_weights_are_read_alike_in_a_test_table(tmp_path):
    """1.234 alone would be a fraction, which the table of the fit shows not to be meant."""
    x = np.arange(40) % 7
    lines = [f"{x};{'ab'[x % 2]};{'1.234,5' if x > 3 else '500,0'}" for x in x]
    (tmp_path / "train.csv").write_text("\n".join(["x;y;w", *lines]))
    (tmp_path / "test.csv").write_text("x;y;w\n1;a;1.234\n2;b;500\n3;;\n4;b;0\n")
    read = read_table(tmp_path / "train.csv", "y", roles=ColumnRoles(weight="w"))
    test, _ = read_test_table(tmp_path / "test.csv", read)
    known, _ = rows_with_target(
        test, "y", read.table.task, read.table.classes, weighting=read.table.weighting
    )
    assert known["x"].tolist() == [1, 2]
    given = read.table.weighting.of_test(known, np.ones(2, dtype=bool))
    assert given.tolist() == [1.0, 500 / 1234]
    for wrong in ("heavy", None):
        with refuses("weights-are-numbers", field="w"):
            rows_with_target(
                test.assign(w=["1", wrong, None, "2"]),
                "y",
                read.table.task,
                read.table.classes,
                weighting=read.table.weighting,
            )


def test_only_rows_with_a_target_need_a_weight():
    amount = np.arange(90.0)
    amount[0] = np.nan
    weights = np.ones(90)
    weights[0] = np.nan
    assert len(weighed(weights, amount=amount)) == 89


def test_weights_go_with_their_rows(tmp_path):
    table = weighed(np.arange(1.0, 91.0))
    some = table.rows(np.array([3, 5]))
    np.testing.assert_allclose(some.weights, table.weights[[3, 5]])
    np.testing.assert_allclose(some.y, table.y[[3, 5]])
    table.save(tmp_path / "t.npz")
    again = Table.open(tmp_path / "t.npz")
    np.testing.assert_array_equal(again.weights, table.weights)
    assert (again.weighting.column, again.weighting.decimal) == ("w", "")
    drawn = table.sample(20, seed=0)
    np.testing.assert_allclose(drawn.weights / drawn.weights[0], _by_amount(table, drawn))


def _by_amount(table, drawn):
    places = [int(np.flatnonzero(table.y == y)[0]) for y in drawn.y]
    return table.weights[places] / table.weights[places[0]]


@pytest.mark.parametrize("weights", [np.ones(89), np.zeros(90), np.full(90, np.nan), -np.ones(90)])
def test_a_file_with_weights_of_something_else_is_refused(tmp_path, weights):
    table = weighed(np.ones(90))
    object.__setattr__(table, "weighting", RowWeights("w", weights))
    table.save(tmp_path / "t.npz")
    with refuses("prepared-table"):
        Table.open(tmp_path / "t.npz")


def test_the_same_rows_weighed_otherwise_are_another_task():
    even, odd = weighed(np.ones(90)), weighed(np.arange(1.0, 91.0))
    plain = Table.of(mixed_frame(n=90).drop(columns="class"), "amount")
    assert len({fingerprint(table) for table in (even, odd, plain)}) == 3


def test_a_weight_that_is_not_there_is_named():
    with refuses("unknown-column", field="v", value="weight"):
        Table.of(mixed_frame(), "amount", roles=ColumnRoles(weight="v"))
    with refuses("target-has-another-role", field="amount"):
        Table.of(mixed_frame(), "amount", roles=ColumnRoles(weight="amount"))
