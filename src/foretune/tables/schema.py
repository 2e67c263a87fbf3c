"""The columns of a table, and the one matrix of numbers made of them.

Every later step works on that matrix. Numbers stay as they are, categories become codes, and NaN is
a missing value. Texts become the words that repeat in them. Columns that cannot help are left out:
constant and empty ones, row numbers, texts without such words.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from foretune._base.arrays import Bools, Floats
from foretune._base.names import quote_names
from foretune._base.progress import SILENT, Progress, track
from foretune.errors import UsageError
from foretune.tables import dates
from foretune.tables.cells import is_plain
from foretune.tables.column_inference import NO_DEADLINES, Deadlines, inspect_columns
from foretune.tables.columns import MUST_BE_READ, Column, ColumnKind
from foretune.tables.number_formats import MARKS, UNITS, table_mark
from foretune.tables.vocabulary import MOST_CELLS


@dataclass(frozen=True, slots=True)
class Schema:
    """The columns of a table, in their order."""

    columns: tuple[Column, ...]

    def with_marks_of(self, frame: pd.DataFrame) -> "Schema":
        """Return the same columns with the decimal marks of a new table.

        A model trained on 1.234,5 may meet 1234.5, and the other way round.
        """
        frame = as_table(frame)
        table = table_mark(frame)
        return Schema(
            tuple(
                column.with_marks_of(frame[column.name], table)
                if column.name in frame.columns
                else column
                for column in self.columns
            )
        )

    def extend(self, *others: Column) -> "Schema":
        """Return the same columns, and others after them."""
        return Schema((*self.columns, *others))

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the columns of the matrix."""
        return tuple(feature for column in self.columns for feature in column.features)

    @property
    def places(self) -> dict[str, slice]:
        """For each column that is used, its columns of the matrix."""
        used = [column for column in self.columns if column.features]
        ends = np.cumsum([len(column.features) for column in used]).tolist()
        return {
            column.name: slice(begin, end)
            for column, begin, end in zip(used, [0, *ends], ends, strict=False)
        }

    @property
    def texts(self) -> dict[str, Bools]:
        """For each column of texts, which columns of the matrix, (d,), are its words."""
        names = np.array([column.name for column in self.columns for _ in column.features])
        texts = [column.name for column in self.columns if column.kind is ColumnKind.WORDS]
        return {name: names == name for name in texts}

    def without_words(self, names: Collection[str]) -> "Schema":
        """Return the same columns, but do not use the texts of these names."""
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
    def raw_columns(self) -> dict[str, tuple[str, ...]]:
        """The columns to be read as they are written if a file has no types, with their values.

        Otherwise they would lose their meaning: 1.234 may be 1234, and a part of a file may have
        only codes like 01 or TRUE, or only dates like 2024. Their categories are no gaps: NA may be
        the code of Namibia.
        """
        read = (ColumnKind.CATEGORY, ColumnKind.DATE, ColumnKind.WORDS)
        columns = [each for each in self.columns if each.decimal or each.kind in read]
        return {column.name: column.categories for column in columns}

    def encode(self, frame: pd.DataFrame, *, progress: Progress = SILENT) -> Floats:
        """Return (n, d) numbers of a table with these columns, in any order, and perhaps others."""
        frame = as_table(frame)
        used = self._matrix_columns(frame)
        # Columns are filled in one by one, because there may be no memory for a second matrix.
        matrix = np.empty((len(frame), len(self.features)))
        end = 0
        for column in track(used, progress, "turning columns into numbers", len(used)):
            begin, end = end, end + len(column.features)
            matrix[:, begin:end] = column.read(frame[column.name])
        return matrix

    def in_parts(
        self, frame: pd.DataFrame, *, most_cells: int | None = None
    ) -> Iterator[tuple[pd.DataFrame, Floats]]:
        """Yield some rows at a time with their matrix, because words need much memory.

        A table without rows has one part.
        """
        rows = max(1, (most_cells or MOST_CELLS) // max(1, len(self.features)))
        for first in range(0, max(1, len(frame)), rows):
            part = frame.iloc[first : first + rows]
            yield part, self.encode(part)

    def _matrix_columns(self, frame: pd.DataFrame) -> list[Column]:
        """Return the columns that the matrix holds; refuse a table that lacks one."""
        used = [column for column in self.columns if column.features]
        lacking = [column.name for column in used if column.name not in frame.columns]
        if lacking:
            raise UsageError(
                "a table must have the columns the model was trained on, but "
                f"{quote_names(lacking)} "
                f"{'is missing: add it' if len(lacking) == 1 else 'are missing: add them'}",
                rule="missing-features",
                value=lacking,
            )
        return used

    def gaps(self, matrix: Floats) -> Bools:
        """Return (n, used columns), where the matrix has no value, in one number or in many."""
        first = [of.start for of in self.places.values()]
        missing: Bools = np.isnan(matrix[:, first])
        return missing

    def count_unread(self, frame: pd.DataFrame, matrix: Floats) -> dict[str, int]:
        """Return how many values of each column count as missing although they are there."""
        frame = as_table(frame)
        lost = {
            column.name: int(column.present(frame[column.name][gaps]).sum())
            for column, gaps in zip(self._matrix_columns(frame), self.gaps(matrix).T, strict=True)
        }
        return {name: count for name, count in lost.items() if count}

    def check_numbers(self, frame: pd.DataFrame) -> None:
        """Refuse a new table if it has no readable value in a column of numbers or dates.

        The same holds for durations and booleans.
        """
        frame = as_table(frame)
        for column in self._matrix_columns(frame):
            kind, given = column.kind, frame[column.name]
            infinite = kind is ColumnKind.NUMBER and is_plain(given)
            if kind not in MUST_BE_READ or infinite or column.reads_some(given):
                continue
            present = given[column.present(given)]
            if not present.empty:
                raise UsageError(
                    f"a column of {kind}s must hold {kind}s in a new table too, but none of "
                    f"'{column.name}' can be read as one, such as '{present.iloc[0]}': write them "
                    "as in the table of the fit, or leave them empty where they are not known",
                    rule="unreadable-column",
                    field=column.name,
                    value=present.iloc[0],
                )

    def to_list(self) -> list[dict[str, Any]]:
        """Return plain values for JSON."""
        return [_plain_values(column) for column in self.columns]

    @classmethod
    def from_list(cls, given: Sequence[dict[str, Any]]) -> "Schema":
        """Return the schema that `to_list` has described."""
        columns = tuple(
            Column(
                str(each["name"]),
                ColumnKind(each["kind"]),
                tuple(str(category) for category in each["categories"]),
                str(each["date_format"]),
                str(each.get("decimal", "")),
                _parts_of(each),
                _texts_of(each, "words"),
                _texts_of(each, "gaps"),
                _unit_of(each),
            )
            for each in given
        )
        unknown = {column.date_format for column in columns} - {"", *dates.FORMATS}
        if unknown:
            raise UsageError(
                f"a schema has no dates written as {sorted(unknown)}", rule="schema-date-format"
            )
        if any(not {*column.date_parts} <= {*dates.PARTS} for column in columns):
            raise UsageError(
                f"the parts of a date are among {dates.PARTS}", rule="schema-date-parts"
            )
        if any(column.decimal not in ("", *MARKS) for column in columns):
            raise UsageError(f"the mark of fractions is one of {MARKS}", rule="schema-mark")
        return cls(columns)


def _plain_values(column: Column) -> dict[str, Any]:
    """Return a column as plain values for JSON.

    Parts of dates are named only if they differ from the first ones, a unit only if it is known,
    words and gaps only if there are any. These values are part of the fingerprint of a table, and
    tables that were remembered must be found again.
    """
    # `asdict` would copy every text, and wide tables have thousands of columns.
    plain = {field.name: getattr(column, field.name) for field in fields(column)}
    if column.date_parts in ((), dates.FIRST_PARTS):
        del plain["date_parts"]
    for texts in ("words", "gaps"):
        if not plain[texts]:
            del plain[texts]
    if column.unit is None:
        del plain["unit"]
    return plain


def _parts_of(plain: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the date parts of a column that `_plain_values` has described."""
    is_date = plain["kind"] == ColumnKind.DATE
    return tuple(plain.get("date_parts", dates.FIRST_PARTS if is_date else ()))


def _texts_of(plain: Mapping[str, Any], what: str) -> tuple[str, ...]:
    """Return the words or gaps of a column that `_plain_values` has described."""
    found = plain.get(what, [])
    are_texts = isinstance(found, list | tuple) and all(isinstance(each, str) for each in found)
    if not are_texts or len(set(found)) < len(found):
        raise UsageError(
            f"the {what} of a column are different texts", rule="schema-texts", field=what
        )
    return tuple(found)


def _unit_of(plain: Mapping[str, Any]) -> str | None:
    """Return the unit of a column that `_plain_values` has described; refuse other values."""
    unit = plain.get("unit")
    if unit is not None and not (isinstance(unit, str) and {*unit} <= {*UNITS}):
        raise UsageError(f"the unit of a column is among {UNITS}", rule="schema-unit")
    return unit


def infer_schema(
    frame: pd.DataFrame,
    *,
    progress: Progress = SILENT,
    deadlines: Deadlines = NO_DEADLINES,
) -> Schema:
    """Find out what the columns of a table are; refuse columns of the same name.

    deadlines: when to stop inspecting texts.
    """
    frame = as_table(frame)
    inspected = inspect_columns(frame, table_mark(frame), progress, deadlines=deadlines)
    return Schema(tuple(each.column for each in inspected))


def as_table(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the table with texts as names of columns; refuse repeated names.

    Lists and decimals of Arrow become objects: pandas cannot compare lists, and miscounts decimals
    beside missing values.
    """
    names = [str(name) for name in frame.columns]
    twice = sorted(name for name, times in Counter(names).items() if times > 1)
    if twice:
        raise UsageError(
            f"the columns of a table must have different names, but got {quote_names(twice)} more "
            "than once: rename them",
            rule="repeated-column-names",
            value=twice,
        )
    odd = [name for name, dtype in zip(names, frame.dtypes, strict=True) if _is_odd(dtype)]
    named = frame.set_axis(names, axis=1)
    return named.astype(dict.fromkeys(odd, object)) if odd else named


def _is_odd(dtype: Any) -> bool:
    if not isinstance(dtype, pd.ArrowDtype):
        return False
    kind = dtype.pyarrow_dtype
    return bool(pa.types.is_nested(kind) or pa.types.is_decimal(kind))
