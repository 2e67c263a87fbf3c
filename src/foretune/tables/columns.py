"""The columns of a table, and how their cells become numbers."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np
import pandas as pd

from foretune._base.arrays import Bools, Floats
from foretune.tables import dates
from foretune.tables.cells import (
    hashable,
    is_plain,
    is_usable,
    map_texts,
    normalise_text,
    numbers_in,
    read_durations,
    read_numbers,
    read_truths,
    texts_of,
)
from foretune.tables.missing_values import signs_in
from foretune.tables.number_formats import (
    LOOKED_AT,
    TableMark,
    new_mark,
    only_texts,
)
from foretune.tables.vocabulary import mark_words


class ColumnKind(StrEnum):
    """What a column holds."""

    NUMBER = "number"
    BOOLEAN = "boolean"
    CATEGORY = "category"
    DATE = "date"
    DURATION = "duration"
    """Spans of time, in seconds. Models of earlier releases have numbers in the column's unit
    instead."""
    WORDS = "words"
    """Texts that differ in most rows, such as sentences, titles and names. Each word that repeats
    becomes a column of the matrix. Models of earlier releases do not have this kind."""
    TEXT = "text"
    """Texts that differ in most rows, without words that repeat or without words that help. They
    are not used."""
    COUNTER = "counter"
    """The numbers of the rows. They are not used."""
    CONSTANT = "constant"
    EMPTY = "empty"


UNUSED = {
    ColumnKind.TEXT: "text that differs in most rows, without words that help",
    ColumnKind.COUNTER: "the numbers of the rows",
    ColumnKind.CONSTANT: "the same in every row",
    ColumnKind.EMPTY: "no values",
}
"""Why columns of some kinds are left out."""
NAMES = {
    ColumnKind.NUMBER: ("number", "numbers"),
    ColumnKind.BOOLEAN: ("boolean", "booleans"),
    ColumnKind.CATEGORY: ("category", "categories"),
    ColumnKind.DATE: ("date", "dates"),
    ColumnKind.DURATION: ("duration", "durations"),
    ColumnKind.WORDS: ("text", "texts"),
    ColumnKind.TEXT: ("unused text", "unused texts"),
    ColumnKind.COUNTER: ("row number", "row numbers"),
    ColumnKind.CONSTANT: ("constant", "constants"),
    ColumnKind.EMPTY: ("empty", "empty"),
}
"""The words for one column of a kind and for several."""
QUANTITIES = (ColumnKind.NUMBER, ColumnKind.DATE, ColumnKind.DURATION)
"""The kinds in which a text may mean that a value is unknown."""
MUST_BE_READ = (*QUANTITIES, ColumnKind.BOOLEAN)
"""If a new table has values in a column of these kinds, at least one of them must be readable."""

MOST_DIGITS = 15
"""Longer numbers may differ although they are equal as floats. Some of them are names."""
_CODE = re.compile(r"0\d")
"""The beginning of codes that are no numbers: 01 differs from 1."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table and how it is read."""

    name: str
    kind: ColumnKind
    categories: tuple[str, ...] = ()
    date_format: str = ""
    decimal: str = ""
    """The decimal mark of numbers as people write them; "" for plain numbers."""
    date_parts: tuple[str, ...] = ()
    """The numbers that a date becomes."""
    words: tuple[str, ...] = ()
    """The words that become columns of the matrix."""
    gaps: tuple[str, ...] = ()
    """The texts that mean that a number or a date is unknown."""
    unit: str | None = None
    """The sign of the unit of numbers as people write them; "" if they have none; None if it is
    unknown, as in models of earlier releases."""

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the column's columns in the matrix."""
        if self.kind is ColumnKind.DATE:
            return tuple(f"{self.name} ({part})" for part in self.date_parts)
        if self.kind is ColumnKind.WORDS:
            return tuple(f"{self.name} ({word})" for word in self.words)
        return () if self.kind in UNUSED else (self.name,)

    def read(self, given: "pd.Series[Any]") -> Floats:
        """Return (n, number of features) numbers. A value that is new since the fit is missing."""
        if self.kind is ColumnKind.DATE:
            return dates.date_parts(dates.read_dates(given, self.date_format), self.date_parts)
        if self.kind is ColumnKind.WORDS:
            return mark_words(given, self.words)
        if self.kind is ColumnKind.CATEGORY:
            return self._read_categories(given)[:, None]
        if self.kind is ColumnKind.BOOLEAN:
            return read_truths(given)[:, None]
        if self.kind is ColumnKind.DURATION:
            return read_durations(given)[:, None]
        numbers = read_numbers(given, self.decimal)
        return np.where(is_usable(numbers), numbers, np.nan)[:, None]

    def _read_categories(self, given: "pd.Series[Any]") -> Floats:
        """Return (n,), the code of each category. Of one category, whether it is there."""
        if len(self.categories) == 1:
            return np.where(given.notna(), 0.0, np.nan)
        known = self._codes()
        plain = {text: known.get(_plain(text), np.nan) for text in texts_of(given)}
        return map_texts(given, plain | known)

    def _codes(self) -> dict[str, float]:
        """Return the code of each category, as it was written and as a typed table has it."""
        codes = {category: float(code) for code, category in enumerate(self.categories)}
        # White space around a category is no part of it.
        trimmed = {category.strip(): code for category, code in codes.items()} | codes
        plain = {category: _plain(category) for category in codes}
        alike = Counter(plain.values())
        typed = {
            text: codes[category]
            for category, text in plain.items()
            if alike[text] == 1 and len(category) <= MOST_DIGITS and not _CODE.match(category)
        }
        return typed | trimmed

    def present(self, given: "pd.Series[Any]") -> Bools:
        """Return (n,), which cells have a value, readable or not."""
        there: Bools = given.notna().to_numpy()
        if self.kind not in QUANTITIES or not pd.api.types.is_string_dtype(given.dtype):
            return there
        gaps = {*self.gaps, *signs_in(only_texts(given).unique())}
        return there & ~hashable(given).isin(gaps).to_numpy() if gaps else there

    def reads_some(self, given: "pd.Series[Any]") -> bool:
        """Return whether any cell can be read. Mostly one of the first ones can."""
        return any(not np.isnan(self.read(each)).all() for each in (given.iloc[:LOOKED_AT], given))

    def with_marks_of(self, given: "pd.Series[Any]", table: TableMark) -> "Column":
        """Return the same column with the decimal mark of a new table."""
        if self.kind is not ColumnKind.NUMBER or is_plain(given):
            return self
        mark = new_mark(given, table, self.decimal)
        if mark == "." and numbers_in(given, "") >= numbers_in(given, mark):
            mark = ""  # These are plain numbers. Programs write .5, and people do not.
        return replace(self, decimal=mark)


def _plain(text: str) -> str:
    return normalise_text(text.strip())


def count_kinds(counts: Mapping[ColumnKind, int]) -> str:
    """Count the columns of each kind, in words."""
    return ", ".join(
        f"{counts[kind]:,} {plural if counts[kind] > 1 else singular}"
        for kind, (singular, plural) in NAMES.items()
        if counts.get(kind)
    )
