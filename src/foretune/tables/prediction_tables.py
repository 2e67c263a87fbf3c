"""How a new table writes numbers, compared with the table of the fit."""

import pandas as pd

from foretune._base.names import quote_names
from foretune.tables.cells import sample_rows
from foretune.tables.columns import Column, ColumnKind
from foretune.tables.number_formats import find_doubtful_points, name_units, units_in
from foretune.tables.remarks import points_notes
from foretune.tables.schema import Schema

LOOKED_AT = 10_000
"""At most this many rows, from all over a table, show how it writes numbers."""


def with_commas(schema: Schema, frame: pd.DataFrame) -> set[str]:
    """Return the columns of numbers that may have decimal commas in a new table.

    If no column had one at the fit, these are all columns. Otherwise, a column that had points then
    has points again.
    """
    found = schema.with_marks_of(sample_rows(frame, LOOKED_AT)).columns
    columns = [column for column in found if column.name in frame.columns]
    commas = {column.name for column in columns if column.decimal == ","}
    if not commas or any(column.decimal == "," for column in schema.columns):
        return commas
    return {column.name for column in columns if column.kind is ColumnKind.NUMBER}


class NumberFormatCheck:
    """Notes how a new table writes numbers, part by part."""

    def __init__(self, schema: Schema) -> None:
        self._columns = [each for each in schema.columns if each.kind is ColumnKind.NUMBER]
        self._marks: dict[str, set[str]] = {column.name: set() for column in self._columns}
        self._units: dict[str, set[str]] = {}
        """The units of each column of numbers so far."""
        self._in_doubt: set[str] = set()

    def add(self, part: pd.DataFrame, schema: Schema) -> None:
        """Note how a part, as `schema` reads it, writes numbers."""
        for column in schema.columns:
            if column.name not in self._marks:
                continue
            self._marks[column.name].add(column.decimal)
            if column.name in part.columns and part[column.name].notna().any():
                units = units_in(part[column.name]) if column.decimal else set()
                self._units.setdefault(column.name, set()).update(units)
        self._in_doubt.update(find_doubtful_points(part))

    def notes(self) -> list[str]:
        """Return sentences for people."""
        return [
            *self._other_marks(),
            *self._several_units(),
            *self._other_units(),
            *self._points(),
        ]

    def _other_marks(self) -> list[str]:
        """Return a sentence about numbers that are written differently than at the fit."""
        other, apart = [], []
        for column in self._columns:
            marks = self._marks[column.name]
            if any((column.decimal == ",") != (mark == ",") for mark in marks):
                other.append(column.name)
            elif not column.decimal and "." in marks and not self._units.get(column.name):
                apart.append(column.name)
        said = {
            "Read with another decimal mark than the table of the fit": other,
            "Read as numbers with separated thousands, unlike in the table of the fit": apart,
        }
        return [f"{what}: {quote_names(names)}." for what, names in said.items() if names]

    def _several_units(self) -> list[str]:
        several = [
            f"'{name}' ({name_units(units)})"
            for name, units in self._units.items()
            if len(units) > 1
        ]
        if not several:
            return []
        return [
            f"Read as numbers, although their units differ: {', '.join(several)}. Convert them to "
            "the unit of the table of the fit."
        ]

    def _other_units(self) -> list[str]:
        other = []
        for column in self._columns:
            came, fitted = self._units.get(column.name), _unit_at_fit(column)
            if came is None or fitted is None or len(came) > 1 or came == {*fitted}:
                continue
            other.append(
                f"'{column.name}' ({name_units(fitted) or 'none'} there, "
                f"{name_units(came) or 'none'} here)"
            )
        if not other:
            return []
        return [
            "Read as numbers, although the table of the fit has another unit: "
            f"{', '.join(other)}. Convert them to that unit."
        ]

    def _points(self) -> list[str]:
        if not any("," in marks for marks in self._marks.values()):
            return []
        return points_notes([each.name for each in self._columns if each.name in self._in_doubt])


def _unit_at_fit(column: Column) -> str | None:
    """Return the unit of a column at the fit; plain numbers have none."""
    return column.unit if column.decimal else ""
