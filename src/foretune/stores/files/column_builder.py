"""A builder for a column that is read a part at a time."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from foretune.space.parameters import LARGEST_EXACT_INT
from foretune.stores.files.cell_columns import ColumnCells, add_values, as_list, smallest

NUMBERS, TRUTHS, OTHERS = "numbers", "truth values", "others"


class ColumnBuilder:
    """Collects the cells of one column."""

    def __init__(self) -> None:
        self.kinds: set[str] = set()
        """What the column holds so far: NUMBERS, TRUTHS, OTHERS."""
        self._parts: list[NDArray[Any]] = []
        """Arrays of numbers, or of codes of `_values`. Empty cells are NaN, or -1."""
        self._in_codes: list[bool] = []
        self._seen: dict[Any, int] = {}
        self._values: list[Any] = []

    def add(self, column: "pd.Series[Any]") -> None:
        """Add cells as pandas reads them."""
        kind = column.dtype
        if isinstance(kind, np.dtype) and kind.kind in "if":
            wide = np.float64 if kind.kind == "f" else np.int64
            self._add_numbers(column.to_numpy(dtype=wide))
        else:
            self._add_codes(column)

    def add_list(self, cells: Sequence[Any]) -> None:
        """Add cells that are Python values."""
        types = set(map(type, cells))
        if types == {float}:
            self._add_numbers(np.array(cells, dtype=np.float64))
        else:
            self._add(add_values(cells, self._seen, self._values), in_codes=True)

    def finish(self, *, whole: bool) -> ColumnCells:
        """Return all cells.

        whole: whether a column of whole numbers and gaps holds integers. CSV and Parquet files give
            such a column as floats.
        """
        if any(self._in_codes):
            return self._finish_codes()
        numbers = _join_parts(self._parts)
        cells = ColumnCells.of_numbers(numbers)
        if not (whole and numbers.dtype.kind == "f") or cells.present.all():
            return cells
        cells = cells.encode()
        if not _all_whole(cells.values):
            return cells
        return ColumnCells(cells.values.astype(np.int64), cells.codes)

    def _add_numbers(self, numbers: NDArray[Any]) -> None:
        if numbers.dtype.kind == "i" or not np.isnan(numbers).all():
            self.kinds.add(NUMBERS)
        self._add(numbers, in_codes=False)

    def _add_codes(self, column: "pd.Series[Any]") -> None:
        old = len(self._values)
        if isinstance(column.dtype, pd.StringDtype):
            codes, texts = pd.factorize(column)
            moved = add_values(texts.tolist(), self._seen, self._values)
            self._add(np.append(moved, np.int32(-1))[codes], in_codes=True)
        else:
            cells = column.astype(object).tolist()
            self._add(add_values(cells, self._seen, self._values), in_codes=True)
        types = set(map(type, self._values[old:]))
        self.kinds |= {TRUTHS if kind in (bool, np.bool_) else OTHERS for kind in types}

    def _add(self, part: NDArray[Any], *, in_codes: bool) -> None:
        self._parts.append(part)
        self._in_codes.append(in_codes)

    def _finish_codes(self) -> ColumnCells:
        """Return all cells with codes. Numbers become values like any others."""
        parts = [
            part if coded else add_values(as_list(part), self._seen, self._values)
            for part, coded in zip(self._parts, self._in_codes, strict=True)
        ]
        return ColumnCells(self._values, smallest(_join_parts(parts), len(self._values)))


def _join_parts(parts: list[NDArray[Any]]) -> NDArray[Any]:
    """Join the parts and empty the list, so that memory holds them twice only for a moment."""
    if len(parts) == 1:
        return parts.pop()
    kind = np.result_type(*{part.dtype for part in parts})
    joined = np.empty(sum(map(len, parts)), dtype=kind)
    end = len(joined)
    while parts:
        part = parts.pop()
        joined[end - len(part) : end] = part
        end -= len(part)
    return joined


def _all_whole(numbers: NDArray[Any]) -> bool:
    return bool((numbers % 1 == 0).all() and (np.abs(numbers) <= LARGEST_EXACT_INT).all())
