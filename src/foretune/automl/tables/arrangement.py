"""Rows that must not be dealt out at random.

Several rows of one patient are alike, and tomorrow is not known today: a score on rows that were
drawn at random would promise too much of both.
"""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np
import pandas as pd

from foretune.arrays import Floats, Ints
from foretune.automl.tables import dates
from foretune.automl.tables.cells import hashable, read_durations
from foretune.automl.tables.columns import ColumnKind
from foretune.automl.tables.inference import inferred_columns
from foretune.automl.tables.written_numbers import TableMark
from foretune.errors import UsageError


class Arranged(StrEnum):
    """What the values of rows say about them."""

    TOGETHER = "together"
    """Rows of one value belong together: a model that is scored on one has seen none of them."""
    IN_ORDER = "in order"
    """Rows follow each other: a model is scored on rows that come after those it has seen."""


@dataclass(frozen=True, eq=False, slots=True)
class Arrangement:
    """How rows belong together, or follow each other."""

    kind: Arranged
    column: str
    """What it was taken from, for people."""
    values: Floats
    """(n,), whole numbers from 0: which group a row belongs to, or when it comes."""

    @classmethod
    def together(cls, column: str, given: "pd.Series[Any]") -> "Arrangement":
        """By groups; rows without a value are each a group of their own."""
        codes, names = pd.factorize(hashable(given))
        lacking = codes < 0
        values = codes.astype(np.float64)
        values[lacking] = len(names) + np.arange(lacking.sum())
        if len(np.unique(values)) < 2:
            raise UsageError(
                f"rows that are kept together must form at least two groups, but '{column}' is the "
                "same in all of them: choose another column"
            )
        return cls(Arranged.TOGETHER, column, values)

    @classmethod
    def in_order(cls, column: str, given: "pd.Series[Any]", mark: TableMark) -> "Arrangement":
        """By numbers or dates; mark: how the table writes numbers that can be read in two ways."""
        places = _places(column, given, mark)
        lacking = np.isnan(places)
        if lacking.any():
            raise UsageError(
                f"rows that follow each other need a place each, but {lacking.sum():,} of "
                f"{len(places):,} have none in '{column}': fill them in or leave those rows out"
            )
        different, values = np.unique(places, return_inverse=True)
        if len(different) < 2:
            raise UsageError(
                f"rows that follow each other must differ in their place, but '{column}' is the "
                "same in all of them: choose another column"
            )
        return cls(Arranged.IN_ORDER, column, values.astype(np.float64))

    def __len__(self) -> int:
        return len(self.values)

    @property
    def groups(self) -> int:
        """How many different values there are."""
        return len(np.unique(self.values))

    def rows(self, index: Ints) -> "Arrangement":
        """Of some of the rows."""
        return replace(self, values=self.values[index])


def _places(name: str, given: "pd.Series[Any]", mark: TableMark) -> Floats:
    """(n,), a number that grows with the place of a row; NaN where it has none."""
    [column] = inferred_columns(given.to_frame(name), mark)
    if column.kind is ColumnKind.DATE:
        read = dates.read_dates(given, column.date_format)
        return dates.date_parts(read, ("days",))[:, 0]
    if column.kind is ColumnKind.DURATION:
        return read_durations(given)
    if column.kind in (ColumnKind.CONSTANT, ColumnKind.EMPTY):
        return np.where(given.isna(), np.nan, 0.0)
    if column.kind in (ColumnKind.NUMBER, ColumnKind.COUNTER):
        return replace(column, kind=ColumnKind.NUMBER).read(given)[:, 0]
    raise UsageError(
        f"rows follow each other by numbers or dates, but '{name}' holds {column.kind} values"
        f"{_such_as(given)}: choose another column, or write it as 2024-12-31"
    )


def _such_as(given: "pd.Series[Any]") -> str:
    present = given.dropna()
    return "" if present.empty else f" such as '{present.iloc[0]}'"
