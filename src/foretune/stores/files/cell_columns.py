"""The cells of one column. Each different value is held once, so a row costs a small number."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from foretune._base.arrays import Bools

Rows: TypeAlias = NDArray[Any]
"""A mask of rows, or their positions."""
MANY_DIFFERENT = 0.5
"""Numbers are kept cell by cell if more than this share of the first ones differ."""
LOOKED_AT = 1 << 16
"""How many numbers are looked at to find this out."""


@dataclass(frozen=True, eq=False)
class ColumnCells:
    """The n cells of a column.

    Values are different from each other unless `codes` is None.
    """

    values: Any
    """The values in the order of their first cells: a list, or an array of float64 or int64."""
    codes: NDArray[Any] | None
    """(n,), the position in `values` of each cell, -1 if it is empty.

    None if cell i has value i. An empty cell is then NaN."""

    @classmethod
    def of(cls, column: "Sequence[Any] | ColumnCells") -> "ColumnCells":
        """Make a column of the cells of a list. None and NaN are empty."""
        if isinstance(column, ColumnCells):
            return column
        codes = np.empty(len(column), dtype=np.int32)
        seen: dict[Any, int] = {}
        values: list[Any] = []
        for row, cell in enumerate(column):
            codes[row] = _code_of(cell, seen, values)
        return cls(values, smallest(codes, len(values)))

    @classmethod
    def of_numbers(cls, numbers: NDArray[Any]) -> "ColumnCells":
        """Make a column of an array of float64 or int64. NaN is empty."""
        start = numbers[:LOOKED_AT]
        if len(np.unique(start)) > MANY_DIFFERENT * len(start):
            return cls(numbers, None)
        codes, values = pd.factorize(numbers)
        return cls(values, smallest(codes, len(values)))

    @classmethod
    def gaps(cls, n: int) -> "ColumnCells":
        """Make a column of n empty cells."""
        return cls([], np.full(n, -1, dtype=np.int8))

    def __len__(self) -> int:
        return len(self.values) if self.codes is None else len(self.codes)

    @cached_property
    def present(self) -> Bools:
        """(n,), True where a cell has a value."""
        if self.codes is not None:
            return self.codes >= 0
        here: Bools = ~np.isnan(self.values)
        return here

    @property
    def in_numbers(self) -> bool:
        """Whether the values are numbers in an array."""
        return isinstance(self.values, np.ndarray)

    def encode(self) -> "ColumnCells":
        """Return the same cells with codes, and each value once."""
        if self.codes is not None:
            return self
        codes, values = pd.factorize(self.values)
        return ColumnCells(values, smallest(codes, len(values)))

    @cached_property
    def different(self) -> Any:
        """The different values in the order of their first cells: a list, or an array."""
        return self.encode().values

    @property
    def kinds(self) -> set[type]:
        """The types of the values."""
        if not self.in_numbers:
            return set(map(type, self.values))
        some = self.present.any()
        return {int if self.values.dtype.kind == "i" else float} if some else set()

    def at(self, index: int) -> Any:
        """Return the value of one cell, None if it is empty."""
        if not self.present[index]:
            return None
        value = self.values[index if self.codes is None else self.codes[index]]
        return value.item() if isinstance(value, np.generic) else value

    def take(self, rows: Rows) -> "ColumnCells":
        """Return the cells of some rows, without the values that none of them has."""
        if self.codes is None:
            return ColumnCells(self.values[rows], None)
        return _prune(self.values, self.codes[rows])

    def with_none(self, rows: Bools | None = None) -> "ColumnCells":
        """Return the same cells with None in place of all gaps, or of those in `rows`."""
        gaps = ~self.present if rows is None else rows & ~self.present
        if not gaps.any():
            return self
        own = self.encode()
        assert own.codes is not None
        codes = np.where(gaps, len(own.values), own.codes)
        return ColumnCells([*as_list(own.values), None], smallest(codes, len(own.values) + 1))

    def fill(self, other: "ColumnCells") -> "ColumnCells":
        """Return the same cells with the cells of `other` in place of gaps."""
        own = self.encode()
        codes, theirs = own.codes, other.encode().codes
        assert codes is not None
        assert theirs is not None
        moved = np.where(theirs < 0, -1, theirs.astype(np.int64) + len(own.values))
        joined = [*as_list(own.values), *as_list(other.values)]
        return ColumnCells(joined, np.where(codes < 0, moved, codes)).map_values(
            lambda value: value
        )

    def without(self, rows: Bools) -> "ColumnCells":
        """Return the same cells, empty where `rows` is True."""
        own = self.encode()
        assert own.codes is not None
        return _prune(own.values, np.where(rows, -1, own.codes))

    def map_values(self, function: Callable[[Any], Any]) -> "ColumnCells":
        """Return the cells with `function` applied to each value. None and NaN make empty cells."""
        return self.replace([function(value) for value in as_list(self.different)])

    def replace(self, others: Sequence[Any]) -> "ColumnCells":
        """Return the cells with the values `others` in place of the values `different`."""
        codes = self.encode().codes
        assert codes is not None
        seen: dict[Any, int] = {}
        values: list[Any] = []
        moved = add_values(others, seen, values)
        return ColumnCells(values, smallest(np.append(moved, np.int32(-1))[codes], len(values)))

    def counts(self) -> NDArray[np.int64]:
        """Return how many cells have each of the values `different`."""
        codes = self.encode().codes
        assert codes is not None
        return np.bincount(codes[codes >= 0], minlength=len(self.different))

    def where(self, wanted: Callable[[Any], bool]) -> Bools:
        """Return (n,), True where `wanted` accepts the value of the cell."""
        own = self.encode()
        assert own.codes is not None
        here: Bools = np.array([*map(wanted, as_list(own.values)), False], np.bool_)[own.codes]
        return here

    def tolist(self) -> list[Any]:
        """Return the cells as a list, None where empty."""
        own = self.encode()
        assert own.codes is not None
        values = [*as_list(own.values), None]
        return [values[code] for code in own.codes.tolist()]


def as_list(values: Any) -> list[Any]:
    """Return values as Python objects instead of NumPy's."""
    listed: list[Any] = values.tolist() if isinstance(values, np.ndarray) else list(values)
    return listed


def smallest(codes: NDArray[Any], size: int) -> NDArray[Any]:
    """Return codes below `size` (and -1) in the type that takes the least memory."""
    kinds = (np.int8, np.int16, np.int32)
    kind = next((kind for kind in kinds if size <= np.iinfo(kind).max), np.int64)
    return codes.astype(kind, copy=False)


def is_missing(value: object) -> bool:
    """Return whether a cell is empty: None or NaN."""
    # NaN is the one number that differs from itself. Asking for its type would cost far more.
    return value is None or (value != value) is True  # noqa: PLR0124


def add_values(given: Iterable[Any], seen: dict[Any, int], values: list[Any]) -> NDArray[np.int32]:
    """Return the codes of these values, and add new values to `seen` and `values`."""
    return np.array([_code_of(value, seen, values) for value in given], dtype=np.int32)


def _code_of(value: Any, seen: dict[Any, int], values: list[Any]) -> int:
    """Return the position of a value. True and 1 are different, and so are two equal lists."""
    if is_missing(value) or value is pd.NA or value is pd.NaT:
        return -1
    try:
        code = seen.setdefault((type(value), value), len(values))
    except TypeError:  # it cannot be hashed
        code = len(values)
    if code == len(values):
        values.append(value)
    return code


def _prune(values: Any, codes: NDArray[Any]) -> ColumnCells:
    """Return the cells without unused values; the others stay in the order of their first cells."""
    used = np.bincount(codes[codes >= 0], minlength=len(values)) > 0
    present = codes[codes >= 0]
    first = np.full(len(values), len(codes), dtype=np.int64)
    np.minimum.at(first, present, np.arange(len(present)))
    order = np.argsort(first, kind="stable")[: np.count_nonzero(used)]
    moved = np.full(len(values) + 1, -1, dtype=np.int64)
    moved[order] = np.arange(len(order))
    kept = values[order] if isinstance(values, np.ndarray) else [values[i] for i in order.tolist()]
    return ColumnCells(kept, smallest(moved[codes], len(order)))
