"""The facts about one column. Each is found out when it is first asked for, and then kept."""

from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from foretune._base.arrays import Ints
from foretune.tables.cells import hashable, is_usable
from foretune.tables.missing_values import ColumnReading, signs_in


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
