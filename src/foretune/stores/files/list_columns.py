"""Columns in which each cell is a list of numbers, such as the values of a learning curve."""

import json
import re
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray

from foretune._base.arrays import Bools, Floats
from foretune.errors import ExperienceError
from foretune.experience.curves import gather_points
from foretune.stores.files.cell_columns import ColumnCells, as_list

PYTHON_WORDS = {"nan": "NaN", "inf": "Infinity", "None": "null"}
_PYTHON_WORD = re.compile(r"\b(nan|inf|None)\b")


@dataclass(frozen=True, eq=False)
class ListColumn:
    """The lists of n cells, one after the other. An empty cell is an empty list."""

    offsets: NDArray[np.int64]
    """(n + 1,): the list of cell i begins at `offsets[i]` and ends before `offsets[i + 1]`."""
    numbers: Floats
    """(P,), NaN where a list has no number."""

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> NDArray[np.int64]:
        """(n,), the length of each list."""
        return np.diff(self.offsets)

    @property
    def last(self) -> Floats:
        """(n,), the last number of each list; NaN if the list is empty."""
        ends = np.full(len(self), np.nan)
        filled = self.lengths > 0
        ends[filled] = self.numbers[self.offsets[1:][filled] - 1]
        return ends

    def take(self, rows: ArrayLike) -> "ListColumn":
        """Return the lists of these rows, given as a mask or as positions."""
        offsets, points = gather_points(self.offsets, rows)
        return ListColumn(offsets, self.numbers[points])

    @staticmethod
    def of_lengths(lengths: ArrayLike, numbers: Floats) -> "ListColumn":
        """Return lists of these lengths. Their numbers stand one after the other in `numbers`."""
        ends = np.cumsum(np.asarray(lengths, dtype=np.int64))
        return ListColumn(np.concatenate([[0], ends]), numbers)


class ListBuilder:
    """Collects the cells of one list column of a Parquet file, a part at a time."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lengths: list[NDArray[np.int64]] = []
        self._numbers: list[Floats] = []

    def add(self, column: pa.Array) -> None:
        """Add the lists of an Arrow array. Null is an empty list."""
        kind = column.type.value_type
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_null(kind)):
            raise _not_numbers(self._name, f"of the type {kind}")
        lengths = pc.fill_null(pc.list_value_length(column), 0)
        self._lengths.append(lengths.to_numpy(zero_copy_only=False).astype(np.int64))
        numbers = pc.list_flatten(column).cast(pa.float64(), safe=False)
        self._numbers.append(numbers.to_numpy(zero_copy_only=False))

    def finish(self) -> ListColumn:
        """Return all lists and forget the parts."""
        nothing = np.array([], dtype=np.float64)
        found = ListColumn.of_lengths(
            np.concatenate([nothing, *self._lengths]), np.concatenate([nothing, *self._numbers])
        )
        self._lengths, self._numbers = [], []
        return found


def is_list_type(kind: pa.DataType) -> bool:
    """Return whether the cells of an Arrow column are lists."""
    types = pa.types
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def holds_json_lists(column: ColumnCells) -> bool:
    """Return whether the cells of a CSV column are texts and the first one is a list."""
    first = next(iter(column.values), None) if not column.in_numbers else None
    return isinstance(first, str) and first.lstrip().startswith("[")


def read_json_lists(column: ColumnCells, name: str) -> ListColumn:
    """Read the lists of a CSV column. Each different text is read once."""
    lists = [*(_parse(text, name) for text in as_list(column.values)), np.array([])]
    different = ListColumn.of_lengths([len(each) for each in lists], np.concatenate(lists))
    codes = column.encode().codes
    assert codes is not None
    return different.take(np.where(codes < 0, len(lists) - 1, codes))


def check_same_lengths(first: str, columns: dict[str, ListColumn]) -> None:
    """Refuse rows whose lists differ in length. `first` is the column to compare with."""
    lengths = columns[first].lengths
    for name, column in columns.items():
        differs: Bools = column.lengths != lengths
        if differs.any():
            row = int(np.flatnonzero(differs)[0])
            raise ExperienceError(
                f"the lists of one row must have the same length, but in row {row + 1} '{first}' "
                f"has {lengths[row]} numbers and '{name}' has {column.lengths[row]}: write one "
                "number for each step, NaN where nothing was measured",
                rule="curve-length",
                field=name,
                value=int(column.lengths[row]),
            )


def _parse(text: object, name: str) -> Floats:
    """Read one list, in JSON or as Python writes it."""
    try:
        return _numbers_in(str(text))
    except (ValueError, TypeError, RecursionError):
        pass
    try:
        return _numbers_in(_PYTHON_WORD.sub(lambda word: PYTHON_WORDS[word[0]], str(text)))
    except (ValueError, TypeError, RecursionError):
        shown = str(text)
        raise _not_numbers(name, shown if len(shown) <= 40 else f"{shown[:40]}...") from None


def _numbers_in(text: str) -> Floats:
    found = json.loads(text)
    if not isinstance(found, list) or any(isinstance(each, str | bool | list) for each in found):
        raise ValueError
    return np.array(found, dtype=np.float64)


def _not_numbers(name: str, found: str) -> ExperienceError:
    return ExperienceError(
        f"the lists of column '{name}' must hold numbers, but got {found}: write [0.5, 0.25], with "
        "NaN or null where nothing was measured",
        rule="not-a-number",
        field=name,
        value=found,
    )
