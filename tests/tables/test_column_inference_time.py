"""Looking at columns within a time, and without one at a cost that wide tables can bear."""

import math
from unittest.mock import patch

import pandas as pd
import pytest

from foretune.tables import dates
from foretune.tables.column_inference import ColumnFacts, Deadlines
from foretune.tables.columns import ColumnKind
from foretune.tables.reading import read_table
from foretune.tables.remarks import NO_TIME_FOR_TEXTS
from foretune.tables.schema import infer_schema

OVER = Deadlines(columns=0.0, texts=0.0)


def formats_tried(read: object, *given: object) -> int:
    """How often texts are read as dates."""
    with patch.object(dates, "_read_cells", wraps=dates._read_cells) as reader:
        read(*given)  # type: ignore[operator]
    return reader.call_count


@pytest.mark.parametrize(
    "cells",
    [["red old car", "blue new car", "green small car"] * 20, ["kind 1", "kind 22", "kind 3"] * 20],
)
def test_no_format_of_dates_is_tried_where_no_cell_can_be_one(cells: list[str]) -> None:
    assert formats_tried(lambda: ColumnFacts(pd.Series(cells)).reading) == 0
    assert formats_tried(infer_schema, pd.DataFrame({"a": cells})) == 0


def test_each_text_is_read_once_as_a_date() -> None:
    given = pd.Series(["2024-05-01", None, "2024-05-01", "2023-01-31", "soon"] * 300)
    with patch.object(dates, "_read_cells", wraps=dates._read_cells) as reader:
        found = dates.read_dates(given, "ISO8601")
    assert [len(call.args[0]) for call in reader.call_args_list] == [3]
    expected = [
        pd.Timestamp(2024, 5, 1),
        pd.NaT,
        pd.Timestamp(2024, 5, 1),
        pd.Timestamp(2023, 1, 31),
    ]
    assert found.index.equals(given.index)
    pd.testing.assert_series_equal(
        found.iloc[:5], pd.Series([*expected, pd.NaT]), check_dtype=False
    )


@pytest.mark.parametrize(
    ("cells", "read"),
    [
        (["5 €", "7 €", "8 €", "none"], 3),
        (["EUR 5", "EUR 6", "EUR 7", "x"], 3),
        (["1e5", "2E6", "3", "?"], 3),
        (["kr. 5", "kr. 6,50", "kr. 7", "x"], 3),
        (["5 May 2024", "6 May 2024", "x"], 2),
        (["May 5, 2024 10:00", "Sept 6, 2024 10:00", "x"], 2),
        (["kind 1", "kind 2", "kind 3"], 0),
        (["version 2.4.10", "version 2.4.11"], 0),
    ],
)
def test_the_cheap_look_leaves_out_nothing_that_can_be_read(cells: list[str], read: int) -> None:
    assert len(ColumnFacts(pd.Series(cells)).reading.read) == read


def test_columns_after_the_deadline_are_categories_or_unused_texts() -> None:
    frame = pd.DataFrame(
        {
            "number": range(0, 300, 3),
            "day": ["2024-01-01", "2024-01-02"] * 50,
            "name": [f"2024-01-01 row {row}" for row in range(100)],
        }
    )
    kinds = [column.kind for column in infer_schema(frame, deadlines=OVER).columns]
    assert kinds == [ColumnKind.NUMBER, ColumnKind.CATEGORY, ColumnKind.TEXT]
    assert infer_schema(frame).columns[1].kind is ColumnKind.DATE
    assert infer_schema(frame, deadlines=Deadlines(math.inf)) == infer_schema(frame)


def test_steps_without_time_are_named() -> None:
    frame = pd.DataFrame(
        {
            "number": [float(row % 7) for row in range(60)],
            "text": [f"car {'red' if row % 3 else 'blue'} of {row}" for row in range(60)],
            "target": ["yes", "no"] * 30,
        }
    )
    late, whole = read_table(frame, "target", deadlines=OVER), read_table(frame, "target")
    assert late.facts.columns_cut_short
    assert late.facts.texts_cut_short
    assert any(NO_TIME_FOR_TEXTS in note and "'text'" in note for note in late.notes)
    assert not any("time" in note for note in whole.notes)


def test_columns_that_were_not_looked_at_are_not_looked_at_for_the_notes() -> None:
    frame = pd.DataFrame(
        {
            "number": [float(row % 7) for row in range(60)],
            "day": [f"2024-01-{row % 28 + 1:02}" for row in range(60)],
            "target": ["yes", "no"] * 30,
        }
    )
    with patch.object(dates, "_read_cells", wraps=dates._read_cells) as reader:
        read_table(frame, "target", deadlines=OVER)
    assert reader.call_count == 0
