"""Rows that must not be split at random.

Rows of one patient are alike, and tomorrow is unknown today. A score on rows drawn at random would
promise too much.
"""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from foretune._base.arrays import Bools, Floats, Ints
from foretune.errors import UsageError
from foretune.tables import dates
from foretune.tables.cells import hashable, is_plain, read_durations, read_numbers, text_of
from foretune.tables.column_inference import ColumnFacts, inspect_columns
from foretune.tables.columns import ColumnKind
from foretune.tables.missing_values import ColumnReading
from foretune.tables.number_formats import TableMark

FIRST_SCORED = 1 / 2
"""If rows are in order, those before this share are only learnt from. A model of far fewer rows
would say little about the final one."""

Splits: TypeAlias = list[tuple[Ints, Ints]]
"""(rows to learn from, rows to score on) of each model."""


class RowStructureKind(StrEnum):
    """The meaning of the values of rows."""

    TOGETHER = "together"
    """Rows with equal values belong together. A model is scored on groups that it has not seen."""
    IN_ORDER = "in order"
    """Rows follow each other. A model is scored on rows later than those it has seen."""


@dataclass(frozen=True, eq=False, slots=True)
class RowStructure:
    """How rows belong together, or follow each other."""

    kind: RowStructureKind
    column: str
    """The name of the column, for people."""
    values: Floats
    """(n,), whole numbers from 0: the group of a row, or its time."""

    @classmethod
    def together(cls, column: str, given: "pd.Series[Any]") -> "RowStructure":
        """Make groups of rows with equal values. A row without a value is a group of its own."""
        codes, names = pd.factorize(hashable(given))
        lacking = codes < 0
        values = codes.astype(np.float64)
        values[lacking] = len(names) + np.arange(lacking.sum())
        if len(names) == 0 or len(np.unique(values)) < 2:
            held = "is the same in all of them" if len(names) else "holds no value"
            raise UsageError(
                f"rows that are kept together must form at least two groups, but '{column}' "
                f"{held}: choose another column",
                rule="too-few-groups",
                field=column,
            )
        return cls(RowStructureKind.TOGETHER, column, values)

    @classmethod
    def in_order(
        cls, column: str, given: "pd.Series[Any]", mark: TableMark, known: Bools | None = None
    ) -> "RowStructure":
        """Order rows by numbers or dates.

        mark: how the table writes numbers that can be read in two ways.
        known: (n,), which rows are meant, if not all. The others help to read dates such as 3/4.
        """
        places = _places(column, given, mark)
        places = places if known is None else places[known]
        lacking = np.isnan(places)
        if lacking.any():
            raise UsageError(
                f"rows that follow each other need a place each, but {lacking.sum():,} of "
                f"{len(places):,} have none in '{column}': fill them in or leave those rows out",
                rule="row-without-place",
                field=column,
                value=int(lacking.sum()),
            )
        different, values = np.unique(places, return_inverse=True)
        if len(different) < 2:
            raise UsageError(
                f"rows that follow each other must differ in their place, but '{column}' is the "
                "same in all of them: choose another column",
                rule="one-place-for-all-rows",
                field=column,
            )
        return cls(RowStructureKind.IN_ORDER, column, values.astype(np.float64))

    def __len__(self) -> int:
        return len(self.values)

    @property
    def groups(self) -> int:
        """How many different values there are."""
        return len(np.unique(self.values))

    def rows(self, index: Ints) -> "RowStructure":
        """Return the structure of some of the rows."""
        return replace(self, values=self.values[index])


def split_later_rows(order: Floats, *, first: float, parts: int) -> Splits:
    """Divide the rows after a share `first` into parts; all rows before a part predict it.

    order: (n,), the time of a row. Rows of one time stay together. If no time begins that late, the
        last time is scored.
    """
    before = np.searchsorted(np.sort(order), order)
    begin = min(max(1, round(first * len(order))), int(before.max()))
    begins = np.linspace(begin, len(order), parts, endpoint=False).round()
    part = np.searchsorted(begins, before, side="right") - 1
    scored = [np.flatnonzero(part == each) for each in range(parts)]
    return [(np.flatnonzero(order < order[held].min()), held) for held in scored if len(held)]


def _places(name: str, given: "pd.Series[Any]", mark: TableMark) -> Floats:
    """Return (n,), numbers in the order of the rows; NaN for a row without a value."""
    if isinstance(given.dtype, pd.CategoricalDtype):
        given = given.astype(
            object
        )  # Types that save memory do not matter: the values are numbers or dates.
    [inspected] = inspect_columns(given.to_frame(name), mark)
    column = inspected.column
    if column.gaps:
        raise _no_places(name, column.gaps[0])
    if column.kind is ColumnKind.DATE:
        read = dates.read_dates(given, column.date_format)
        return dates.date_parts(read, ("days",))[:, 0]
    if column.kind is ColumnKind.DURATION:
        return read_durations(given)
    if column.kind in (ColumnKind.NUMBER, ColumnKind.COUNTER) or is_plain(given):
        return read_numbers(given, column.decimal)
    if column.kind in (ColumnKind.CONSTANT, ColumnKind.EMPTY):
        return np.where(given.isna(), np.nan, 0.0)
    raise _no_places(name, _odd_one(given))


def _no_places(name: str, odd: str) -> UsageError:
    return UsageError(
        f"rows follow each other by numbers or dates, but '{name}' holds values such as '{odd}': "
        "choose another column, or write dates as 2024-12-31",
        rule="order-by-numbers-or-dates",
        field=name,
        value=odd,
    )


def _odd_one(given: "pd.Series[Any]") -> str:
    """Return a value that is no number or date, read in the way that leaves the fewest of them."""
    facts = ColumnFacts(given.dropna().map(text_of))
    others = ColumnReading.of(facts.distinct, facts.counts).others
    return str((facts.distinct if others.empty else others).iloc[0])
