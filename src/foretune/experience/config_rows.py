"""Configurations in the rows of a file, if they are too many for its footer.

Each hyperparameter has a column. A configuration stands in the first row that has it, with NaN
where a hyperparameter is inactive. In all other rows the columns are null.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from foretune._base.arrays import Bools, Floats
from foretune.errors import DamagedError
from foretune.experience.data import ExperienceData

PREFIX = "config:"
_DTYPES = {"halffloat": "f2", "float": "f4", "double": "f8"}
"""NumPy's names of the types that it names in another way than Arrow."""


class ConfigRows:
    """The columns of an experience's configurations."""

    def __init__(self, experience: ExperienceData) -> None:
        self._experience = experience
        self._first = _first_rows(experience)
        self.fields = [pa.field(PREFIX + name, pa.float64()) for name in experience.space.names]

    def arrays(self, rows: slice) -> list[pa.Array]:
        """Return the columns for some rows."""
        index = self._experience.config_index[rows]
        again = self._first[index] != np.arange(rows.start, rows.stop)
        table = self._experience.configs.values
        return [
            pa.array(table[index, column], mask=again, from_pandas=False)
            for column in range(table.shape[1])
        ]


@dataclass(frozen=True)
class ConfigTable:
    """A table of configurations that is filled while a file is read."""

    values: Floats
    seen: Bools
    names: Sequence[str]

    @classmethod
    def of(cls, shape: Sequence[int], names: Sequence[str]) -> "ConfigTable":
        """Return an empty table."""
        return cls(np.full((shape[0], shape[1]), np.nan), np.zeros(shape[0], dtype=np.bool_), names)

    def put(self, index: Sequence[int] | NDArray[np.int32], values: Floats) -> None:
        """Put whole configurations in their places."""
        self.values[index] = values
        self.seen[index] = True

    def add(self, batch: pa.RecordBatch, index: NDArray[np.int32]) -> None:
        """Put the configurations of some rows in their places.

        index: the number of the configuration of each row.
        """
        columns = [batch.column(PREFIX + name) for name in self.names]
        here = _present(columns[0])
        rows = _slice_or_places(index[here], len(self.values))
        self.seen[rows] = True
        for position, cells in enumerate(columns):
            if not np.array_equal(here, _present(cells)):
                raise DamagedError("a row holds a part of a configuration", rule="partial-config")
            self.values[rows, position] = read_numbers(
                cells.drop_null() if cells.null_count else cells
            )

    def whole(self) -> Floats:
        """Return the table after all rows have been added."""
        if not self.seen.all():
            missing = int(np.count_nonzero(~self.seen))
            raise DamagedError(
                f"{missing} configurations are missing", rule="configs-missing", value=missing
            )
        return self.values


def read_numbers(column: pa.Array) -> NDArray[Any]:
    """Return the numbers of a column without gaps. `np.asarray` and `to_numpy` import pandas."""
    if column.null_count:
        raise DamagedError("a number is missing", rule="number-missing")
    # `to_pandas_dtype` would import pandas as well.
    name = str(column.type)
    numbers = np.frombuffer(column.buffers()[1], np.dtype(_DTYPES.get(name, name)))
    return numbers[column.offset : column.offset + len(column)]


def _present(column: pa.Array) -> Bools:
    """Return which rows of a column have a value."""
    bits = column.buffers()[0]
    if not column.null_count or bits is None:
        return np.ones(len(column), dtype=np.bool_)
    flags = np.unpackbits(np.frombuffer(bits, np.uint8), bitorder="little")
    return flags[column.offset : column.offset + len(column)].astype(np.bool_)


def configs_apart(experience: ExperienceData) -> list[int]:
    """Return the configurations that only initial designs have."""
    used = np.zeros(len(experience.configs), dtype=np.bool_)
    used[experience.config_index] = True
    apart: list[int] = np.flatnonzero(~used).tolist()
    return apart


def _slice_or_places(places: NDArray[np.int32], size: int) -> slice | NDArray[np.int32]:
    """Return consecutive places as a slice of an array of this size, and others as they are."""
    if not len(places):
        return places
    first, end = int(places[0]), int(places[0]) + len(places)
    is_slice = first >= 0 and end <= size and np.array_equal(places, np.arange(first, end))
    return slice(first, end) if is_slice else places


def _first_rows(experience: ExperienceData) -> NDArray[np.int32]:
    """Return the first row that has each configuration, or -1 if none has it."""
    first = np.full(len(experience.configs), -1, dtype=np.int32)
    # If several rows are written to one place, the last one stays there.
    first[experience.config_index[::-1]] = np.arange(len(experience) - 1, -1, -1, dtype=np.int32)
    return first
