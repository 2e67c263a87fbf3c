"""Weights of rows: a policy may have been in force for a month, a person may stand for many."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from foretune._base.arrays import Bools, Floats, Ints
from foretune.errors import UsageError
from foretune.tables.cells import read_numbers
from foretune.tables.number_formats import TableMark, decimal_mark, table_mark

MOST_TIMES = 1e30
"""The largest ratio of two weights, because some libraries compute with single precision."""


@dataclass(frozen=True, eq=False, slots=True)
class RowWeights:
    """How much rows count, in learning and in scores."""

    column: str
    """The name of the column, for people."""
    values: Floats
    """(n,), positive, with mean 1, because penalties and minimum weights of leaves must not depend
    on the unit."""
    decimal: str = ""
    """The decimal mark of the weights, if people wrote them."""

    @classmethod
    def of(cls, column: str, given: "pd.Series[Any]", mark: TableMark) -> "RowWeights":
        """Read positive numbers.

        mark: how the table writes numbers that can be read in two ways.
        """
        values = weights_in(column, given, mark)
        return cls(column, values / values.mean(), _decimal(given, mark))

    def of_test(self, frame: pd.DataFrame, known: Bools) -> Floats:
        """Return (n,), how much the `known` rows of a test table count."""
        mark = table_mark(frame, self.decimal)
        return weights_in(self.column, frame[self.column][known], mark, of=" of the test table")

    def rows(self, index: Ints) -> "RowWeights":
        """Return the weights of some of the rows."""
        return replace(self, values=self.values[index])


def weights_in(column: str, given: "pd.Series[Any]", mark: TableMark, *, of: str = "") -> Floats:
    """Read weights as (n,) numbers up to 1, so that no sum overflows; refuse anything else.

    of: the name of the table for messages, if there are several.
    """
    values = _numbers(given, mark)
    wrong = ~(np.isfinite(values) & (values >= 0.0))
    if wrong.any():
        raise UsageError(
            f"weights must be finite numbers of at least 0, but {wrong.sum():,} of {len(values):,} "
            f"rows{of} have something else in '{column}', such as '{given[wrong].iloc[0]}': "
            "correct them or leave those rows out",
            rule="weights-are-numbers",
            field=column,
            value=given[wrong].iloc[0],
        )
    if not values.any():
        raise UsageError(
            f"some weights must be above zero, but '{column}' is 0 in all rows{of}: choose another "
            "column",
            rule="weights-above-zero",
            field=column,
        )
    least, largest = values[values > 0.0].min(), values.max()
    if least < largest / MOST_TIMES:
        raise UsageError(
            f"no weight may be more than {MOST_TIMES:g} times another, but '{column}' goes from "
            f"{least:.3g} to {largest:.3g}{of}: write 0 for what hardly counts",
            rule="weights-too-far-apart",
            field=column,
            value=(least, largest),
        )
    relative: Floats = values / largest
    return relative


def _numbers(given: "pd.Series[Any]", mark: TableMark) -> Floats:
    """Return (n,), NaN where no finite number stands."""
    return read_numbers(_plain(given), _decimal(given, mark))


def _decimal(given: "pd.Series[Any]", mark: TableMark) -> str:
    plain = _plain(given)
    text = pd.api.types.infer_dtype(plain, skipna=True) == "string"
    return decimal_mark(plain.dropna(), mark) if text else ""


def _plain(given: "pd.Series[Any]") -> "pd.Series[Any]":
    """Return the values in a plain type. Types that save memory do not matter."""
    return given.astype(object) if isinstance(given.dtype, pd.CategoricalDtype) else given
