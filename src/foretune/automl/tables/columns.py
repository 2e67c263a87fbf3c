"""What the columns of a table are, and one matrix of numbers out of them.

Every later step works on that matrix: numbers as they are, categories as codes, NaN where a value
is missing. Texts become the words that repeat in them. Columns that cannot help (constant, empty,
row numbers, texts without such words) have no place in it.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from foretune.arrays import Bools, Floats
from foretune.automl.tables import dates
from foretune.automl.tables.cells import (
    are_written_durations,
    hashable,
    is_duration,
    is_plain,
    looked_up,
    numbers_in,
    plain_text,
    read_durations,
    read_numbers,
    text_of,
    texts_of,
    truths,
)
from foretune.automl.tables.words import MOST_CELLS, most_words, telling_words, which_words
from foretune.automl.tables.written_numbers import (
    MARKS,
    TableMark,
    decimal_mark,
    new_mark,
    table_mark,
)
from foretune.errors import UsageError
from foretune.experience.naming import listed


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
MUST_BE_READ = (ColumnKind.NUMBER, ColumnKind.DURATION)
"""Of such columns a new table must have a value that can be read, where it has any."""
TEXT_SHARE = 0.5
"""Strings of which more than this share are different are text, if there are many of them."""
MOST_CATEGORIES_OF_FEW_ROWS = 20


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
            codes = {category: float(code) for code, category in enumerate(self.categories)}
            plain = {text: codes.get(plain_text(text), np.nan) for text in texts_of(given)}
            return looked_up(given, plain | codes)[:, None]
        if self.kind is ColumnKind.BOOLEAN:
            return truths(given)[:, None]
        if self.kind is ColumnKind.DURATION:
            return read_durations(given)[:, None]
        return read_numbers(given, self.decimal)[:, None]

    def as_written_in(self, given: "pd.Series[Any]", table: TableMark) -> "Column":
        """The same column, with the mark of fractions that a new table has."""
        if self.kind is not ColumnKind.NUMBER or is_plain(given):
            return self
        mark = new_mark(given, table, self.decimal)
        if mark == "." and numbers_in(given, "") > numbers_in(given, mark):
            mark = ""  # People write no .5, which programs do.
        return replace(self, decimal=mark)


@dataclass(frozen=True, slots=True)
class Schema:
    """The columns of a table, in their order."""

    columns: tuple[Column, ...]

    @classmethod
    def infer(cls, frame: pd.DataFrame, table: TableMark | None = None) -> "Schema":
        """The schema of a table; refuses columns of the same name.

        table: what decides how numbers are written that can be read in two ways; these columns
        themselves if None.
        """
        frame = named_by_text(frame)
        table = table or table_mark(frame)
        columns = tuple(_column(name, frame[name], table) for name in frame.columns)
        return cls(_with_words(columns, frame))

    def as_written_in(self, frame: pd.DataFrame) -> "Schema":
        """The same columns, with the marks of fractions that a new table has.

        A model of 1.234,5 may meet 1234.5, and the other way round.
        """
        frame = named_by_text(frame)
        table = table_mark(frame)
        return Schema(
            tuple(
                column.as_written_in(frame[column.name], table)
                if column.name in frame.columns
                else column
                for column in self.columns
            )
        )

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the columns of the matrix."""
        return tuple(feature for column in self.columns for feature in column.features)

    @property
    def texts(self) -> dict[str, Bools]:
        """Of each column of texts, which columns of the matrix, (d,), are its words."""
        names = np.array([column.name for column in self.columns for _ in column.features])
        texts = [column.name for column in self.columns if column.kind is ColumnKind.WORDS]
        return {name: names == name for name in texts}

    def without_words(self, names: Collection[str]) -> "Schema":
        """The same columns, but the texts of these names are not used."""
        return Schema(
            tuple(
                replace(column, kind=ColumnKind.TEXT, words=()) if column.name in names else column
                for column in self.columns
            )
        )

    @property
    def categorical(self) -> Bools:
        """(d,), which columns of the matrix hold codes."""
        kinds = [column.kind for column in self.columns for _ in column.features]
        return np.array([kind is ColumnKind.CATEGORY for kind in kinds], dtype=np.bool_)

    @property
    def written(self) -> tuple[str, ...]:
        """The columns that are to be read as they are written, where a file has no types.

        1.234 may be 1234, and a part of a file in which all codes look like 01 or TRUE, or all
        dates like 2024, would lose what they are.
        """
        read = (ColumnKind.CATEGORY, ColumnKind.DATE, ColumnKind.WORDS)
        return tuple(each.name for each in self.columns if each.decimal or each.kind in read)

    def matrix(self, frame: pd.DataFrame) -> Floats:
        """(n, d) numbers of a table with these columns, in any order; more columns are ignored."""
        frame = named_by_text(frame)
        blocks = [column.read(frame[column.name]) for column in self._used(frame)]
        return np.hstack(blocks) if blocks else np.empty((len(frame), 0))

    def in_parts(self, frame: pd.DataFrame) -> Iterator[tuple[pd.DataFrame, Floats]]:
        """Some rows at a time and their matrix: that of all words may be a hundred times the texts.

        A table without rows has one part.
        """
        rows = max(1, MOST_CELLS // max(1, len(self.features)))
        for first in range(0, max(1, len(frame)), rows):
            part = frame.iloc[first : first + rows]
            yield part, self.matrix(part)

    def _used(self, frame: pd.DataFrame) -> list[Column]:
        """The columns that have a place in the matrix; refuses a table that lacks one."""
        used = [column for column in self.columns if column.features]
        lacking = [column.name for column in used if column.name not in frame.columns]
        if lacking:
            raise UsageError(
                f"a table must have the columns the model was trained on, but {listed(lacking)} "
                f"{'is missing: add it' if len(lacking) == 1 else 'are missing: add them'}"
            )
        return used

    def gaps(self, matrix: Floats) -> Bools:
        """(n, columns that are used), where the matrix has no value, be it one number or many."""
        wide = [len(column.features) for column in self.columns if column.features]
        missing: Bools = np.isnan(matrix[:, np.cumsum([0, *wide])[:-1]])
        return missing

    def unread(self, frame: pd.DataFrame, matrix: Floats) -> dict[str, int]:
        """How many values of which column count as missing in the matrix, although they are not."""
        frame = named_by_text(frame)
        lost = {
            column.name: int((frame[column.name].notna().to_numpy() & gaps).sum())
            for column, gaps in zip(self._used(frame), self.gaps(matrix).T, strict=True)
        }
        return {name: count for name, count in lost.items() if count}

    def check_numbers(self, frame: pd.DataFrame) -> None:
        """Refuse a new table in which no value of a column of numbers, or durations, is one."""
        frame = named_by_text(frame)
        for column in self._used(frame):
            given = frame[column.name].dropna()
            kind, infinite = column.kind, column.kind is ColumnKind.NUMBER and is_plain(given)
            if kind not in MUST_BE_READ or given.empty or infinite:
                continue
            if np.isnan(column.read(given)).all():
                raise UsageError(
                    f"a column of {kind}s must hold {kind}s in a new table too, but none of "
                    f"'{column.name}' can be read as one, such as '{given.iloc[0]}': write them as "
                    "in the table of the fit, or leave them empty where they are not known"
                )

    def to_list(self) -> list[dict[str, Any]]:
        """Plain values, for JSON."""
        return [_plain_values(column) for column in self.columns]

    @classmethod
    def from_list(cls, given: Sequence[dict[str, Any]]) -> "Schema":
        """The schema that `to_list` has described."""
        columns = tuple(
            Column(
                str(each["name"]),
                ColumnKind(each["kind"]),
                tuple(str(category) for category in each["categories"]),
                str(each["date_format"]),
                str(each.get("decimal", "")),
                _parts_of(each),
                _words_of(each),
            )
            for each in given
        )
        unknown = {column.date_format for column in columns} - {"", *dates.FORMATS}
        if unknown:
            raise ValueError(f"a schema has no dates written as {sorted(unknown)}")
        if any(not {*column.date_parts} <= {*dates.PARTS} for column in columns):
            raise ValueError(f"the parts of a date are among {dates.PARTS}")
        if any(column.decimal not in ("", *MARKS) for column in columns):
            raise ValueError(f"the mark of fractions is one of {MARKS}")
        return cls(columns)


def counted_kinds(counts: Mapping[ColumnKind, int]) -> str:
    """How many columns there are of which kinds, for people."""
    return ", ".join(
        f"{counts[kind]:,} {plural if counts[kind] > 1 else singular}"
        for kind, (singular, plural) in NAMES.items()
        if counts.get(kind)
    )


def _plain_values(column: Column) -> dict[str, Any]:
    """Of a column, for JSON.

    Parts of dates are named only where they are not those of before, and words where there are
    some: what is made of these values tells tables apart, and those that were remembered are to be
    known again.
    """
    plain = asdict(column)
    if column.date_parts in ((), dates.FIRST_PARTS):
        del plain["date_parts"]
    if not column.words:
        del plain["words"]
    return plain


def _parts_of(plain: Mapping[str, Any]) -> tuple[str, ...]:
    """The parts of the dates of a column that `_plain_values` has described."""
    is_date = plain["kind"] == ColumnKind.DATE
    return tuple(plain.get("date_parts", dates.FIRST_PARTS if is_date else ()))


def _words_of(plain: Mapping[str, Any]) -> tuple[str, ...]:
    """The words of a column that `_plain_values` has described; refuses what cannot be words."""
    words = plain.get("words", [])
    are_texts = isinstance(words, list | tuple) and all(isinstance(word, str) for word in words)
    if not are_texts or len(set(words)) < len(words):
        raise ValueError("the words of a text are different texts")
    return tuple(words)


def named_by_text(frame: pd.DataFrame) -> pd.DataFrame:
    """The table with texts as the names of its columns; refuses those of the same name."""
    names = [str(name) for name in frame.columns]
    twice = sorted(name for name, times in Counter(names).items() if times > 1)
    if twice:
        raise UsageError(
            f"the columns of a table must have different names, but got {listed(twice)} more "
            "than once: rename them"
        )
    return frame.set_axis(names, axis=1)


def _column(name: str, given: "pd.Series[Any]", table: TableMark) -> Column:
    if is_plain(given):
        return Column(name, _kind_of_numbers(given.to_numpy()))
    present = hashable(given.dropna())
    if pd.api.types.is_float_dtype(present.dtype):
        present = present[np.isfinite(present.to_numpy(dtype=np.float64))]
    distinct = present.nunique()
    if distinct < 2:
        return Column(name, ColumnKind.CONSTANT if distinct else ColumnKind.EMPTY)
    if isinstance(present.dtype, pd.CategoricalDtype):
        return _category(name, present)
    kind = _typed_kind(present, complete=len(present) == len(given))
    if kind is ColumnKind.DATE:
        return _date(name)
    return Column(name, kind) if kind is not None else _of_texts(name, present, distinct, table)


def _with_words(columns: tuple[Column, ...], frame: pd.DataFrame) -> tuple[Column, ...]:
    """The columns, those of texts with the words that repeat in them, where there are any."""
    texts = [column for column in columns if column.kind is ColumnKind.TEXT]
    if not texts:
        return columns
    most = most_words(len(frame), len(texts))
    words = {text.name: telling_words(frame[text.name].dropna(), most) for text in texts}
    return tuple(
        replace(column, kind=ColumnKind.WORDS, words=words[column.name])
        if words.get(column.name)
        else column
        for column in columns
    )


def _kind_of_numbers(values: NDArray[Any]) -> ColumnKind:
    """The kind of a column of plain numbers, of which a wide table may have thousands."""
    present = values[np.isfinite(values)]
    if not len(present):
        return ColumnKind.EMPTY
    if present.min() == present.max():
        return ColumnKind.CONSTANT
    counts = len(present) == len(values) and _counts(present)
    return ColumnKind.COUNTER if counts else ColumnKind.NUMBER


def _typed_kind(present: "pd.Series[Any]", *, complete: bool) -> ColumnKind | None:
    """What the type of a column says about it; None for texts."""
    if pd.api.types.is_bool_dtype(present.dtype):
        return ColumnKind.BOOLEAN
    if pd.api.types.is_numeric_dtype(present.dtype):
        counts = complete and _counts(present.to_numpy())
        return ColumnKind.COUNTER if counts else ColumnKind.NUMBER
    if is_duration(present):
        return ColumnKind.DURATION
    return ColumnKind.DATE if dates.is_date(present) else None


def _of_texts(name: str, present: "pd.Series[Any]", distinct: int, table: TableMark) -> Column:
    if np.isfinite(read_numbers(present)).all():
        return Column(name, ColumnKind.NUMBER)
    if np.isfinite(truths(present)).all():
        return Column(name, ColumnKind.BOOLEAN)
    if date_format := dates.date_format(present):
        return _date(name, date_format)
    if are_written_durations(present):
        return Column(name, ColumnKind.DURATION)
    if mark := decimal_mark(present, table):
        return Column(name, ColumnKind.NUMBER, decimal=mark)
    return _of_words(name, present, distinct)


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
