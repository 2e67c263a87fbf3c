"""Inspecting the columns of a table. Each fact about a column is found out once."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from foretune._base.arrays import Ints
from foretune._base.progress import SILENT, Progress, track
from foretune.tables import dates
from foretune.tables.cells import (
    are_plain_numbers,
    are_truths,
    are_written_durations,
    has_leading_zeros,
    has_usable_number,
    hashable,
    is_duration,
    is_plain,
    is_usable,
    text_of,
)
from foretune.tables.columns import Column, ColumnKind
from foretune.tables.missing_values import ColumnReading, signs_in
from foretune.tables.number_formats import TableMark, decimal_mark, unit_of
from foretune.tables.vocabulary import find_repeated_words

TEXT_SHARE = 0.5
"""Strings are texts if more than this share of them is different, and there are many of them."""
MOST_CATEGORIES_OF_FEW_ROWS = 20
TEXT_KINDS = (ColumnKind.TEXT, ColumnKind.WORDS, ColumnKind.CATEGORY)


class ColumnFacts:
    """What is known about the cells of one column.

    Most facts follow from the different values, which are often far fewer than the cells.
    """

    def __init__(self, given: "pd.Series[Any]") -> None:
        self.given = given

    @cached_property
    def present(self) -> "pd.Series[Any]":
        """The cells that have a value to learn from."""
        present = hashable(self.given.dropna())
        if pd.api.types.is_float_dtype(present.dtype):
            return present[is_usable(present.to_numpy(dtype=np.float64))]
        return present

    @property
    def is_complete(self) -> bool:
        """Whether every cell has a value."""
        return len(self.present) == len(self.given)

    @cached_property
    def _codes_and_values(self) -> "tuple[Ints, pd.Series[Any]]":
        codes, values = pd.factorize(self.present)
        return codes, pd.Series(values, dtype=self.present.dtype)

    @property
    def distinct(self) -> "pd.Series[Any]":
        """The different values, in the order in which they first appear."""
        return self._codes_and_values[1]

    @cached_property
    def counts(self) -> Ints:
        """The number of cells of each different value."""
        codes, values = self._codes_and_values
        return np.bincount(codes, minlength=len(values))

    @cached_property
    def dtype_name(self) -> str:
        """What pandas finds the values to be, such as "string" or "boolean"."""
        return pd.api.types.infer_dtype(self.distinct)

    @cached_property
    def signs(self) -> list[str]:
        """The texts that can only mean that a value is unknown."""
        return signs_in(self.distinct) if self.dtype_name == "string" else []

    @cached_property
    def without_signs(self) -> "pd.Series[Any]":
        """The different values without the signs of a missing value."""
        return self.distinct[~self.distinct.isin(self.signs)] if self.signs else self.distinct

    @cached_property
    def reading(self) -> ColumnReading:
        """How most of the texts can be read as numbers or dates, and which texts cannot."""
        return ColumnReading.of(self.without_signs, self.counts[self.without_signs.index])

    @property
    def odd_text(self) -> str:
        """A text that keeps a mostly numeric column from being numbers or dates; "" without one."""
        return self.reading.odd_text if self.dtype_name == "string" else ""


SEEING_WHICH_HELP = "seeing which texts help"
"""The name of the step that the second deadline ends, in displays of progress."""


@dataclass(frozen=True, slots=True)
class Deadlines:
    """Moments of the monotonic clock."""

    columns: float = math.inf
    """When to stop searching texts for numbers, dates and durations."""
    texts: float = math.inf
    """When to stop searching texts for words, and testing whether these help."""

    @property
    def columns_are_over(self) -> bool:
        """Whether some columns may not have been searched."""
        return time.monotonic() >= self.columns

    @property
    def texts_are_over(self) -> bool:
        """Whether some texts may not have been searched."""
        return time.monotonic() >= self.texts


NO_DEADLINES = Deadlines()


@dataclass(frozen=True, slots=True)
class InspectedColumn:
    """A column of a table, and other facts from its inspection."""

    column: Column
    odd_text: str = ""
    """A text that keeps a mostly numeric column from being numbers or dates."""
    too_large: int = 0
    """The number of cells whose numbers are infinite or too large to learn from."""


def inspect_columns(
    frame: pd.DataFrame,
    table: TableMark,
    progress: Progress = SILENT,
    *,
    deadlines: Deadlines = NO_DEADLINES,
) -> tuple[InspectedColumn, ...]:
    """Find out what the columns of a table are. `table` decides how ambiguous numbers are read.

    After the deadline of columns, texts become categories if they repeat.
    """
    step = f"looking at the columns of {len(frame):,} rows"
    names = track(frame.columns, progress, step, frame.shape[1])
    inspected = tuple(_inspect(name, frame[name], table, deadlines) for name in names)
    return _with_words(inspected, frame, deadlines.texts, progress)


def _inspect(
    name: str, given: "pd.Series[Any]", table: TableMark, deadlines: Deadlines
) -> InspectedColumn:
    if is_plain(given):
        return _inspect_numbers(name, given)
    facts = ColumnFacts(given)
    in_time = not deadlines.columns_are_over
    column = _infer_column(name, facts, table if in_time else None)
    odd_text = facts.odd_text if in_time and column.kind in TEXT_KINDS else ""
    return InspectedColumn(column, odd_text, _count_too_large(column, facts))


def _inspect_numbers(name: str, given: "pd.Series[Any]") -> InspectedColumn:
    """Inspect a column of plain numbers. A wide table may have thousands of them."""
    values = given.to_numpy()
    present = values[is_usable(values)]
    missing = int(np.isnan(values).sum()) if values.dtype.kind == "f" else 0
    too_large = len(values) - len(present) - missing if values.dtype.kind == "f" else 0
    if not len(present) or present.min() == present.max():
        facts = ColumnFacts(pd.Series(present[:1]))
        column = _column_of_one_value(name, facts, is_complete=missing == 0)
    else:
        counts_rows = len(present) == len(values) and _counts_rows(present)
        column = Column(name, ColumnKind.COUNTER if counts_rows else ColumnKind.NUMBER)
    return InspectedColumn(column, too_large=too_large)


def _count_too_large(column: Column, facts: ColumnFacts) -> int:
    """Count the numbers that cannot be learnt from, in a column that had another type."""
    given = facts.given
    if pd.api.types.is_float_dtype(given.dtype):
        numbers = given.to_numpy(dtype=np.float64, na_value=np.nan)
        return int((~np.isnan(numbers) & ~is_usable(numbers)).sum())
    if column.kind is not ColumnKind.NUMBER:
        return 0
    unread = np.isnan(column.read(facts.distinct)[:, 0])
    if not unread.any():
        return 0
    lost = facts.distinct[unread]
    return int(facts.counts[lost.index[column.present(lost)]].sum())


def _infer_column(name: str, facts: ColumnFacts, table: TableMark | None) -> Column:
    """Find out what a column is. Without `table` there is no time to look for numbers in texts."""
    if len(facts.distinct) < 2:
        return _column_of_one_value(name, facts, is_complete=facts.is_complete)
    if isinstance(facts.present.dtype, pd.CategoricalDtype):
        return _column_of_words(name, facts)
    if kind := _kind_of_dtype(facts):
        return _date_column(name) if kind is ColumnKind.DATE else Column(name, kind)
    found = _column_of_texts(name, facts, table) if table is not None else None
    return found or _column_of_words(name, facts)


def _column_of_texts(name: str, facts: ColumnFacts, table: TableMark) -> Column | None:
    """Return a column whose texts are numbers, dates, durations or truth values, or None."""
    if found := _column_of_quantities(name, facts.distinct, table):
        return found
    if are_truths(facts.distinct):
        return Column(name, ColumnKind.BOOLEAN)
    return _column_with_gaps(name, facts, table)


def _column_of_one_value(name: str, facts: ColumnFacts, *, is_complete: bool) -> Column:
    """Return a column with one value or none. It may tell which rows lack the value."""
    if facts.distinct.empty:
        return Column(name, ColumnKind.EMPTY)
    return Column(name, ColumnKind.CONSTANT) if is_complete else _category(name, facts)


def _kind_of_dtype(facts: ColumnFacts) -> ColumnKind | None:
    """Return what the type of a column says about it; None for texts."""
    # Missing values hide the type "boolean", and such a column would be taken for numbers.
    if facts.dtype_name == "boolean":
        return ColumnKind.BOOLEAN
    if pd.api.types.is_numeric_dtype(facts.present.dtype):
        counts_rows = facts.is_complete and _counts_rows(facts.present.to_numpy())
        return ColumnKind.COUNTER if counts_rows else ColumnKind.NUMBER
    if is_duration(facts.distinct):
        return ColumnKind.DURATION
    return ColumnKind.DATE if dates.is_date(facts.present) else None


def _column_of_quantities(name: str, texts: "pd.Series[Any]", table: TableMark) -> Column | None:
    """Return a column whose texts are all numbers, dates or durations; None if they are not."""
    if not dates.has_digit(texts.iloc[0]):
        return None
    if are_plain_numbers(texts) and has_usable_number(texts):
        return Column(name, ColumnKind.NUMBER)
    if date_format := dates.date_format(texts):
        return _date_column(name, date_format)
    if are_written_durations(texts):
        return Column(name, ColumnKind.DURATION)
    mark = decimal_mark(texts, table)
    if mark and has_usable_number(texts, mark):
        return Column(name, ColumnKind.NUMBER, decimal=mark, unit=unit_of(texts))
    return None


def _column_with_gaps(name: str, facts: ColumnFacts, table: TableMark) -> Column | None:
    """Return such a column whose other texts mean that a value is unknown, or None."""
    if facts.dtype_name != "string" or len(facts.without_signs) < 2:
        return None
    texts, gaps = facts.without_signs, facts.signs
    found = _column_of_quantities(name, texts, table) if gaps else None
    if found is None:
        if not facts.reading.leaves_gaps:
            return None
        texts, gaps = facts.reading.read, [*gaps, *facts.reading.others]
        found = _column_of_quantities(name, texts, table)
    if found is None or (found.kind is ColumnKind.NUMBER and has_leading_zeros(texts)):
        return None
    return replace(found, gaps=tuple(sorted(gaps)))


def _column_of_words(name: str, facts: ColumnFacts) -> Column:
    """Return a column of texts that are only texts."""
    if len(facts.distinct) > max(MOST_CATEGORIES_OF_FEW_ROWS, TEXT_SHARE * len(facts.present)):
        return Column(name, ColumnKind.TEXT)
    return _category(name, facts)


def _date_column(name: str, date_format: str = "") -> Column:
    return Column(name, ColumnKind.DATE, date_format=date_format, date_parts=dates.PARTS)


def _category(name: str, facts: ColumnFacts) -> Column:
    return Column(name, ColumnKind.CATEGORY, tuple(sorted({*map(text_of, facts.distinct)})))


def _counts_rows(values: Any) -> bool:
    """Return whether whole numbers go up by one from row to row."""
    return len(values) > 2 and bool((np.diff(values.astype(np.float64)) == 1.0).all())


def _with_words(
    inspected: Sequence[InspectedColumn], frame: pd.DataFrame, until: float, progress: Progress
) -> tuple[InspectedColumn, ...]:
    """Return the columns. Those of texts have the words that repeat in them."""
    texts = [each.column.name for each in inspected if each.column.kind is ColumnKind.TEXT]
    if not texts or time.monotonic() >= until:
        return tuple(inspected)
    words = find_repeated_words(frame, texts, until, progress)
    return tuple(
        replace(
            each,
            column=replace(each.column, kind=ColumnKind.WORDS, words=words[each.column.name]),
        )
        if each.column.name in words
        else each
        for each in inspected
    )
