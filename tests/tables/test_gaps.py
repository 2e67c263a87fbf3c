"""Texts that say in columns of numbers or dates that a value is not known."""

import json

import numpy as np
import pandas as pd
import pytest

from foretune.tables.columns import ColumnKind
from foretune.tables.schema import Schema, infer_schema
from tests.refusals import refuses

MANY = [f"{i / 8}" for i in range(30)]
COMMAS = [f"{i},5" for i in range(30)]
DAYS = [f"{day:02}.12.2020" for day in range(1, 13)]
MOMENTS = [f"12/{day}/2020 2:05 PM" for day in range(1, 31)]


def column_of(cells):
    return infer_schema(pd.DataFrame({"c": cells})).columns[0]


@pytest.mark.parametrize(
    ("cells", "gaps", "expected"),
    [
        *((MANY, [sign], ColumnKind.NUMBER) for sign in (".", "-", "#DIV/0!", "N.A.", " ?", "")),
        (["1", "2", "1"], ["-", "--", "-"], ColumnKind.NUMBER),
        (MANY, ["."] * 300, ColumnKind.NUMBER),
        (MANY, ["Unknown", "none", "missing"], ColumnKind.NUMBER),
        (MANY, ["not asked"] * 30, ColumnKind.NUMBER),
        (MANY, ["not asked", "-", "NONE"], ColumnKind.NUMBER),
        (COMMAS, ["."], ColumnKind.NUMBER),
        (COMMAS, ["not asked"], ColumnKind.NUMBER),
        (DAYS, ["0000-00-00"], ColumnKind.DATE),
        (DAYS, ["unknown"] * 12, ColumnKind.DATE),
        (MOMENTS, ["never", "-"], ColumnKind.DATE),
        (["00:10:50", "00:10:51"], ["-"], ColumnKind.DURATION),
    ],
)
def test_gaps_beside_numbers_and_dates(cells, gaps, expected):
    plain = infer_schema(pd.DataFrame({"c": cells}))
    frame = pd.DataFrame({"c": [gaps[0], *cells, *gaps[1:]]})
    schema = infer_schema(frame)
    assert schema.columns[0].kind is expected
    assert schema.columns[0].gaps == tuple(sorted(set(gaps)))
    # As a saved model reads it, and the same whether there are gaps or not.
    again = Schema.from_list(json.loads(json.dumps(schema.to_list())))
    assert again == schema
    matrix = again.encode(frame)
    np.testing.assert_array_equal(
        matrix[1 : 1 + len(cells)], plain.encode(frame)[1 : len(cells) + 1]
    )
    assert np.isnan(np.delete(matrix, range(1, 1 + len(cells)), axis=0)).all()
    assert np.isfinite(matrix[1 : 1 + len(cells)]).all()
    assert again.count_unread(frame, matrix) == {}
    again.check_numbers(frame.iloc[:1])


@pytest.mark.parametrize(
    "cells",
    [
        ["-", "+", "none"] * 10,
        ["none", "unknown", "cash"] * 10,
        ["1", "2", "3", "A"] * 10,
        ["none", "5", "10"] * 10,
        ["1", "-"] * 10,
        ["?", "-"] * 10,
        ["yes", "no", "unknown"] * 10,
        ["5 \u20ac", "10 \u20ac", "free"] * 10,
        [*MANY, "late", "soon"] * 3,
        [*MANY, "136A"] * 3,
        [*MANY, *["late"] * 31] * 3,
        [*(f"{i:03}" for i in range(30)), "-"] * 3,
    ],
)
def test_codes_and_names_stay_what_they_are(cells):
    column = column_of(cells)
    assert column.kind is ColumnKind.CATEGORY
    assert column.categories == tuple(sorted(set(cells)))
    assert column.gaps == ()


@pytest.mark.parametrize("hour", [0, 1])
def test_gaps_may_come_back_every_so_many_rows(hour):
    cells = ["unknown" if row % 24 == hour else str(1.5 * row) for row in range(2400)]
    assert column_of(cells).kind is ColumnKind.NUMBER


def test_columns_without_gaps_say_nothing_of_them():
    """Or else no table that was remembered before would be known again."""
    frame = pd.DataFrame({"n": MANY, "g": [*MANY[:-1], "-"]})
    assert ["gaps" in each for each in infer_schema(frame).to_list()] == [False, True]


def test_signs_that_the_table_of_the_fit_did_not_have_are_no_values():
    schema = infer_schema(pd.DataFrame({"n": np.arange(30.0) ** 2, "d": DAYS[:3] * 10}))
    new = pd.DataFrame({"n": [".", "#REF!"], "d": ["-", None]})
    schema.check_numbers(new)
    assert schema.count_unread(new, schema.encode(new)) == {}
    new.loc[2] = ["word", "-"]
    assert schema.count_unread(new, schema.encode(new)) == {"n": 1}


def test_gaps_that_nobody_has_saved_are_refused():
    [plain] = infer_schema(pd.DataFrame({"n": MANY})).to_list()
    with refuses("schema-texts", field="gaps"):
        Schema.from_list([plain | {"gaps": ["-", "-"]}])


def test_a_text_may_be_a_number_in_a_table_with_another_notation():
    """Beside 0,5 and 1,25 nobody knows what 1.5 is; beside 2.5 everybody does."""
    fitted = infer_schema(pd.DataFrame({"c": [*(f"{i},25" for i in range(30)), "1.5"]}))
    assert fitted.columns[0].gaps == ("1.5",)
    new = pd.DataFrame({"c": ["1.5", "2.5", "3.25"]})
    np.testing.assert_array_equal(fitted.with_marks_of(new).encode(new), [[1.5], [2.5], [3.25]])
