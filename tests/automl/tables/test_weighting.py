"""Columns that say how much rows count."""

import numpy as np
import pandas as pd
import pytest

from foretune.automl.tables.datasets import Table
from foretune.automl.tables.identities import fingerprint
from foretune.automl.tables.roles import Roles
from foretune.automl.tables.weighting import Weighting
from foretune.automl.tables.written_numbers import no_mark
from foretune.errors import UsageError
from tests.automl.samples import mixed_frame


def weights_of(values):
    return Weighting.of("w", pd.Series(values), no_mark).values


def weighed(weights, **more):
    frame = mixed_frame(n=len(weights)).assign(w=weights, **more)
    return Table.of(frame.drop(columns="class"), "amount", roles=Roles(weight="w"))


@pytest.mark.parametrize(
    "values",
    [
        [1, 2, 3],
        [10.0, 20.0, 30.0],
        ["0,5", "1,0", "1,5"],
        pd.array([1, 2, 3], dtype="Int64"),
    ],
)
def test_weights_are_one_on_average(values):
    np.testing.assert_allclose(weights_of(values), [0.5, 1.0, 1.5])


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([1.0, -1.0, 2.0], "1 of 3 rows have something else in 'w', such as '-1.0'"),
        ([1.0, None, None], "2 of 3 rows"),
        ([1.0, np.inf], "such as 'inf'"),
        (["heavy", "light"], "2 of 2 rows have something else in 'w', such as 'heavy'"),
        ([0.0, 0.0], "'w' is 0 in all rows"),
    ],
)
def test_what_is_no_weight_is_refused(values, said):
    with pytest.raises(UsageError, match=said):
        weights_of(values)


def test_weights_are_not_learnt_from_and_rows_of_weight_0_are_left_out():
    table = weighed(np.tile([0.0, 1.0, 3.0], 30))
    assert len(table) == 60
    assert "w" not in [column.name for column in table.schema.columns]
    np.testing.assert_allclose(table.weights, np.tile([0.5, 1.5], 30))


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
    assert again.weighed_by == "w"
    drawn = table.sample(20, seed=0)
    np.testing.assert_allclose(drawn.weights / drawn.weights[0], _by_amount(table, drawn))


def _by_amount(table, drawn):
    places = [int(np.flatnonzero(table.y == y)[0]) for y in drawn.y]
    return table.weights[places] / table.weights[places[0]]


@pytest.mark.parametrize("weights", [np.ones(89), np.zeros(90), np.full(90, np.nan), -np.ones(90)])
def test_a_file_with_weights_of_something_else_is_refused(tmp_path, weights):
    table = weighed(np.ones(90))
    object.__setattr__(table, "weighting", Weighting("w", weights))
    table.save(tmp_path / "t.npz")
    with pytest.raises(UsageError, match="prepared table"):
        Table.open(tmp_path / "t.npz")


def test_the_same_rows_weighed_otherwise_are_another_task():
    even, odd = weighed(np.ones(90)), weighed(np.arange(1.0, 91.0))
    plain = Table.of(mixed_frame(n=90).drop(columns="class"), "amount")
    assert len({fingerprint(table) for table in (even, odd, plain)}) == 3


def test_a_weight_that_is_not_there_is_named():
    with pytest.raises(UsageError, match="the weight column must be in the table, but there is no"):
        Table.of(mixed_frame(), "amount", roles=Roles(weight="v"))
    with pytest.raises(UsageError, match="the weight column must be another one than the target"):
        Table.of(mixed_frame(), "amount", roles=Roles(weight="amount"))
