"""What a column of a table is, and how its cells become numbers."""

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
    map_texts,
    numbers_in,
    plain_text,
    read_durations,
    read_numbers,
    texts_of,
    truths,
    usable,
)
from foretune.tables.missing_values import signs_in
from foretune.tables.number_formats import (
    LOOKED_AT,
    TableMark,
    new_mark,
    only_texts,
)
from foretune.tables.vocabulary import which_words


class ColumnKind(StrEnum):
    """What a column holds."""

    NUMBER = "number"
    BOOLEAN = "boolean"
    CATEGORY = "category"
    DATE = "date"
    DURATION = "duration"
    """Spans of time: seconds, whatever their unit is. Models of earlier releases know none, and
    have numbers that count the unit instead.
    """
    WORDS = "words"
    """Different in most rows, as sentences, titles and names are: each word that repeats is a
    column of the matrix. Models of earlier releases know none.
    """
    TEXT = "text"
    """Different in most rows, and without words that repeat, as identifiers are, or whose words
    do not help: not used.
    """
    COUNTER = "counter"
    """The numbers of the rows: not used."""
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
"""One column of a kind, and several of them, for people."""
QUANTITIES = (ColumnKind.NUMBER, ColumnKind.DATE, ColumnKind.DURATION)
"""In which a text may say that a value is not known."""
MUST_BE_READ = (*QUANTITIES, ColumnKind.BOOLEAN)
"""Of such columns a new table must have a value that can be read, where it has any."""

MOST_DIGITS = 15
"""Numbers of more digits, as some names are, may be different ones and alike as floats."""
_CODE = re.compile(r"0\d")
"""How codes begin that are no numbers: 01 is not 1."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table and how it is read."""

    name: str
    kind: ColumnKind
    categories: tuple[str, ...] = ()
    date_format: str = ""
    decimal: str = ""
    """What divides fractions, in numbers that are written as people do; "" for plain ones."""
    date_parts: tuple[str, ...] = ()
    """What becomes of a date."""
    words: tuple[str, ...] = ()
    """What becomes of a text."""
    gaps: tuple[str, ...] = ()
    """The texts that say in a column of numbers or dates that a value is not known."""
    unit: str | None = None
    """The sign of the unit of numbers that are written as people do, "" where they have none; None
    where it is not known, as models of earlier releases do not say it.
    """

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the columns of the matrix it becomes."""
        if self.kind is ColumnKind.DATE:
            return tuple(f"{self.name} ({part})" for part in self.date_parts)
        if self.kind is ColumnKind.WORDS:
            return tuple(f"{self.name} ({word})" for word in self.words)
        return () if self.kind in UNUSED else (self.name,)

    def read(self, given: "pd.Series[Any]") -> Floats:
        """(n, number of features) numbers; what was not seen before counts as missing."""
        if self.kind is ColumnKind.DATE:
            return dates.date_parts(dates.read_dates(given, self.date_format), self.date_parts)
        if self.kind is ColumnKind.WORDS:
            return which_words(given, self.words)
        if self.kind is ColumnKind.CATEGORY:
            return self._read_categories(given)[:, None]
        if self.kind is ColumnKind.BOOLEAN:
            return truths(given)[:, None]
        if self.kind is ColumnKind.DURATION:
            return read_durations(given)[:, None]
        numbers = read_numbers(given, self.decimal)
        return np.where(usable(numbers), numbers, np.nan)[:, None]

    def _read_categories(self, given: "pd.Series[Any]") -> Floats:
        """(n,), the code of each; of a value or none whether it is there, however it is written."""
        if len(self.categories) == 1:
            return np.where(given.notna(), 0.0, np.nan)
        known = self._codes()
        plain = {text: known.get(_plain(text), np.nan) for text in texts_of(given)}
        return map_texts(given, plain | known)

    def _codes(self) -> dict[str, float]:
        """The code of each category, as it was written and as a table with types has it."""
        codes = {category: float(code) for code, category in enumerate(self.categories)}
        # White space that a file has been read without is no part of a category.
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
        """(n,), in which cells there is a value, whether it can be read or not."""
        there: Bools = given.notna().to_numpy()
        if self.kind not in QUANTITIES or not pd.api.types.is_string_dtype(given.dtype):
            return there
        gaps = {*self.gaps, *signs_in(only_texts(given).unique())}
        return there & ~hashable(given).isin(gaps).to_numpy() if gaps else there

    def reads_some(self, given: "pd.Series[Any]") -> bool:
        """Whether any cell can be read, as mostly one of the first ones can."""
        return any(not np.isnan(self.read(each)).all() for each in (given.iloc[:LOOKED_AT], given))

    def as_written_in(self, given: "pd.Series[Any]", table: TableMark) -> "Column":
        """The same column, with the mark of fractions that a new table has."""
        if self.kind is not ColumnKind.NUMBER or is_plain(given):
            return self
        mark = new_mark(given, table, self.decimal)
        if mark == "." and numbers_in(given, "") >= numbers_in(given, mark):
            mark = ""  # Plain numbers; people write no .5, which programs do.
        return replace(self, decimal=mark)


def _plain(text: str) -> str:
    return plain_text(text.strip())


def count_kinds(counts: Mapping[ColumnKind, int]) -> str:
    """How many columns there are of which kinds, for people."""
    return ", ".join(
        f"{counts[kind]:,} {plural if counts[kind] > 1 else singular}"
        for kind, (singular, plural) in NAMES.items()
        if counts.get(kind)
    )
