"""Finding out what the columns of a table are."""

import time
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from foretune._base.progress import SILENT, Progress, track
from foretune.tables import dates
from foretune.tables.cells import (
    are_plain_numbers,
    are_truths,
    are_written_durations,
    has_leading_zeros,
    hashable,
    is_duration,
    is_plain,
    read_numbers,
    text_of,
    usable,
)
from foretune.tables.columns import Column, ColumnKind
from foretune.tables.deadlines import NO_DEADLINES, Deadlines
from foretune.tables.missing_values import ColumnReading, signs_in
from foretune.tables.number_formats import TableMark, decimal_mark, unit_of
from foretune.tables.vocabulary import words_of_texts

TEXT_SHARE = 0.5
"""Strings of which more than this share are different are text, if there are many of them."""
MOST_CATEGORIES_OF_FEW_ROWS = 20


def infer_columns(
    frame: pd.DataFrame,
    table: TableMark,
    progress: Progress = SILENT,
    *,
    deadlines: Deadlines = NO_DEADLINES,
) -> tuple[Column, ...]:
    """The columns of a table; `table` decides where numbers can be read in two ways.

    Texts that come after the deadline of columns are categories if they repeat.
    """
    what = f"looking at the columns of {len(frame):,} rows"
    names = track(frame.columns, progress, what, frame.shape[1])
    columns = tuple(_column_of(name, frame[name], table, deadlines) for name in names)
    return _with_words(columns, frame, deadlines.texts)


def _column_of(
    name: str, given: "pd.Series[Any]", table: TableMark, deadlines: Deadlines
) -> Column:
    if is_plain(given):
        return _of_numbers(name, given)
    present = hashable(given.dropna())
    if pd.api.types.is_float_dtype(present.dtype):
        present = present[usable(present.to_numpy(dtype=np.float64))]
    distinct = present.nunique()
    if distinct < 2:
        return _of_one_value(name, present, complete=len(present) == len(given))
    if isinstance(present.dtype, pd.CategoricalDtype):
        return _of_words(name, present.astype(object), distinct)
    kind = _kind_of_dtype(present, complete=len(present) == len(given))
    if kind is ColumnKind.DATE:
        return _date(name)
    if kind is not None:
        return Column(name, kind)
    in_time = not deadlines.columns_are_over
    return _of_texts(name, present, distinct, table if in_time else None)


def _with_words(
    columns: tuple[Column, ...], frame: pd.DataFrame, until: float
) -> tuple[Column, ...]:
    """The columns, those of texts with the words that repeat in them, where there are any."""
    texts = [column.name for column in columns if column.kind is ColumnKind.TEXT]
    if not texts or time.monotonic() >= until:
        return columns
    words = words_of_texts(frame, texts, until)
    return tuple(
        replace(column, kind=ColumnKind.WORDS, words=words[column.name])
        if column.name in words
        else column
        for column in columns
    )


def _of_numbers(name: str, given: "pd.Series[Any]") -> Column:
    """A column of plain numbers, of which a wide table may have thousands."""
    values = given.to_numpy()
    present = values[usable(values)]
    if not len(present) or present.min() == present.max():
        return _of_one_value(name, pd.Series(present), complete=not np.isnan(values).any())
    counts = len(present) == len(values) and _counts(present)
    return Column(name, ColumnKind.COUNTER if counts else ColumnKind.NUMBER)


def _of_one_value(name: str, present: "pd.Series[Any]", *, complete: bool) -> Column:
    """A column that has one value or none; in which rows it has one may tell much."""
    if present.empty:
        return Column(name, ColumnKind.EMPTY)
    return Column(name, ColumnKind.CONSTANT) if complete else _category(name, present)


def _kind_of_dtype(present: "pd.Series[Any]", *, complete: bool) -> ColumnKind | None:
    """What the type of a column says about it; None for texts."""
    # Without their type, which gaps take from them, they would be taken for numbers.
    if pd.api.types.infer_dtype(present) == "boolean":
        return ColumnKind.BOOLEAN
    if pd.api.types.is_numeric_dtype(present.dtype):
        counts = complete and _counts(present.to_numpy())
        return ColumnKind.COUNTER if counts else ColumnKind.NUMBER
    if is_duration(present):
        return ColumnKind.DURATION
    return ColumnKind.DATE if dates.is_date(present) else None


def _of_texts(
    name: str, present: "pd.Series[Any]", distinct: int, table: TableMark | None
) -> Column:
    """table: None if there is no time to look for more than words."""
    if table is None:
        return _of_words(name, present, distinct)
    if found := _of_quantities(name, present, table):
        return found
    if are_truths(present):
        return Column(name, ColumnKind.BOOLEAN)
    if found := _of_quantities_and_gaps(name, present, table):
        return found
    return _of_words(name, present, distinct)


def _of_quantities(name: str, present: "pd.Series[Any]", table: TableMark) -> Column | None:
    """A column all of whose texts are numbers, dates or durations."""
    if not dates.has_digit(present.iloc[0]):
        return None
    if are_plain_numbers(present) and usable(read_numbers(present)).any():
        return Column(name, ColumnKind.NUMBER)
    if date_format := dates.date_format(present):
        return _date(name, date_format)
    if are_written_durations(present):
        return Column(name, ColumnKind.DURATION)
    mark = decimal_mark(present, table)
    if mark and usable(read_numbers(present, mark)).any():
        return Column(name, ColumnKind.NUMBER, decimal=mark, unit=unit_of(present))
    return None


def _of_quantities_and_gaps(
    name: str, present: "pd.Series[Any]", table: TableMark
) -> Column | None:
    """The same where the other texts say that a value is not known."""
    if pd.api.types.infer_dtype(present) != "string":
        return None
    gaps = signs_in(present.unique())
    texts = present[~present.isin(gaps)]
    if texts.nunique() < 2:
        return None
    found = _of_quantities(name, texts, table) if gaps else None
    if found is None:
        reading = ColumnReading.of(texts)
        if not reading.leaves_gaps:
            return None
        texts = reading.read
        found = _of_quantities(name, texts, table)
        gaps += reading.others.unique().tolist()
    if found is None or (found.kind is ColumnKind.NUMBER and has_leading_zeros(texts)):
        return None
    return replace(found, gaps=tuple(sorted(gaps)))


def _of_words(name: str, present: "pd.Series[Any]", distinct: int) -> Column:
    """A column of texts that say nothing else."""
    if distinct > max(MOST_CATEGORIES_OF_FEW_ROWS, TEXT_SHARE * len(present)):
        return Column(name, ColumnKind.TEXT)
    return _category(name, present)


def _date(name: str, date_format: str = "") -> Column:
    return Column(name, ColumnKind.DATE, date_format=date_format, date_parts=dates.PARTS)


def _category(name: str, present: "pd.Series[Any]") -> Column:
    texts = sorted({text_of(value) for value in hashable(present).unique()})
    return Column(name, ColumnKind.CATEGORY, tuple(texts))


def _counts(values: Any) -> bool:
    """Whether whole numbers go up by one from row to row."""
    return len(values) > 2 and bool((np.diff(values.astype(np.float64)) == 1.0).all())
