"""Rows that do not count alike: a policy that was in force for a month, a person asked for many."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from foretune.arrays import Floats, Ints
from foretune.automl.tables.cells import read_numbers
from foretune.automl.tables.written_numbers import TableMark, decimal_mark
from foretune.errors import UsageError


@dataclass(frozen=True, eq=False, slots=True)
class Weighting:
    """How much rows count, in learning and in scores."""

    column: str
    """What it was taken from, for people."""
    values: Floats
    """(n,), positive, 1 on average over the table: what penalties and least weights of leaves go by
    must not depend on the unit.
    """

    @classmethod
    def of(cls, column: str, given: "pd.Series[Any]", mark: TableMark) -> "Weighting":
        """By positive numbers; mark: how the table writes numbers that can be read in two ways."""
        values = weights_in(column, given, mark)
        return cls(column, values / values.mean())

    def rows(self, index: Ints) -> "Weighting":
        """Of some of the rows."""
        return replace(self, values=self.values[index])


def weights_in(column: str, given: "pd.Series[Any]", mark: TableMark) -> Floats:
    """(n,), finite numbers of at least 0; refuses others, and where all are 0."""
    text = pd.api.types.infer_dtype(given, skipna=True) == "string"
    values = read_numbers(given, decimal_mark(given.dropna(), mark) if text else "")
    wrong = ~(np.isfinite(values) & (values >= 0.0))
    if wrong.any():
        raise UsageError(
            f"weights must be finite numbers of at least 0, but {wrong.sum():,} of {len(values):,} "
            f"rows have something else in '{column}', such as '{given[wrong].iloc[0]}': mend them "
            "or leave those rows out"
        )
    if not values.any():
        raise UsageError(
            f"some weights must be above zero, but '{column}' is 0 in all rows: choose another "
            "column"
        )
    return values
