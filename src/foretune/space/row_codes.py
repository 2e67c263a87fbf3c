"""Millions of configurations in columns that hold each value once, read in parts."""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from foretune._base.arrays import Floats
from foretune.errors import SpaceError
from foretune.space import configspace_reader
from foretune.space.parameters import Parameter
from foretune.space.rows import clean_values, equal_rows, parts, row_hashes, same_keys, same_rows
from foretune.space.space import Encoded, Space

ROWS_AT_ONCE = 1 << 17
CHECKING_THREADS = 2


class Coded(Protocol):
    """The n cells of one column, as different values and codes."""

    @property
    def values(self) -> Any:
        """The different values in the order of their first cells: a list or an array."""

    @property
    def codes(self) -> NDArray[Any] | None:
        """(n,), the position of each cell's value, -1 if empty; None if cell i has value i."""


@dataclass(frozen=True)
class Configs:
    """Each configuration once, and the number of the configuration of each row."""

    table: Encoded
    index: NDArray[np.int32]


def encode_columns(
    space: Space,
    columns: Mapping[str, Coded],
    n: int,
    *,
    drop_inactive: bool = False,
    empty_is_none: bool = True,
    step: Callable[[int], object] = lambda _: None,
) -> Configs:
    """Encode n rows as `Space.from_columns` does, and return each configuration once.

    This needs memory for the different configurations, and for a few numbers of each row.

    empty_is_none: whether an empty cell means None if this is one of the choices.
    step: called with the number of rows that were read since the last call.
    """
    unknown = set(columns) - set(space.names)
    if unknown:
        configspace_reader.read_columns(
            space.parameters, {name: [] for name in columns}, 0
        )  # refuses them
    numbers = {
        p.name: _Numbers.of(p, columns[p.name], n, empty_is_none)
        for p in space.parameters
        if p.name in columns
    }
    rows = _Rows(space, numbers, n, drop_inactive)
    hashes = np.empty(n, dtype=np.uint64)
    for part in parts(n, ROWS_AT_ONCE):
        hashes[part] = row_hashes(rows.read(part))
        step(part.stop - part.start)
    first, index = same_rows(hashes)
    del hashes
    table = np.empty((len(first), len(space)))
    for part in parts(len(first), ROWS_AT_ONCE):
        table[part] = rows.read(first[part])
    if len(first) < n and not _all_equal(rows, table, first, index):
        # Two configurations have one hash, so all rows are compared completely.
        return _compare_rows(space, rows)
    return Configs(Encoded.of_rows(space, table), index)


def encode_values(space: Space, values: Floats) -> Encoded:
    """Encode `values` (n, H) as `Space.from_values` does; they must not be used afterwards."""

    def check(part: slice) -> None:
        values[part] = space.from_values(values[part]).values

    # NumPy releases the lock of the interpreter, so the threads run in parallel.
    with ThreadPoolExecutor(CHECKING_THREADS) as threads:
        list(threads.map(check, parts(len(values), ROWS_AT_ONCE)))
    return Encoded.of_rows(space, values)


@dataclass(frozen=True)
class _Numbers:
    """The numbers of the cells of one column."""

    numbers: Floats
    """The numbers of its values; the last one stands for an empty cell."""
    codes: NDArray[Any] | None

    @classmethod
    def of(cls, parameter: Parameter, column: Coded, n: int, empty_is_none: bool) -> "_Numbers":
        empty = np.nan
        if empty_is_none and any(choice is None for choice in parameter.choices):
            empty = parameter.number_of(None)
        numbers = _read_values(parameter, column, n)
        if column.codes is None:
            if np.isnan(empty):  # empty cells are NaN already, and a copy would take memory
                return cls(numbers, None)
            return cls(np.where(np.isnan(numbers), empty, numbers), None)
        return cls(np.append(numbers, empty), column.codes)

    def at(self, rows: Any) -> Floats:
        """Return the numbers of some rows."""
        numbers: Floats = self.numbers[rows if self.codes is None else self.codes[rows]]
        return numbers


def _read_values(parameter: Parameter, column: Coded, n: int) -> Floats:
    if parameter.is_number and isinstance(column.values, np.ndarray):
        numbers = column.values.astype(np.float64, copy=False)
        try:
            configspace_reader.check_range(parameter, numbers)
        except SpaceError:
            _refuse(parameter, column, n)
            raise
        return numbers
    values = list(column.values.tolist() if hasattr(column.values, "tolist") else column.values)
    if column.codes is None:  # an array in which NaN is an empty cell
        values = [None if value != value else value for value in values]  # noqa: PLR0124
    try:
        return configspace_reader.read_column(parameter, values)
    except SpaceError:
        _refuse(parameter, column, n)
        raise


def _refuse(parameter: Parameter, column: Coded, n: int) -> None:
    """Refuse the first illegal value, and name its row."""
    values = column.values.tolist() if hasattr(column.values, "tolist") else column.values
    for position, value in enumerate(values):
        if column.codes is None and value != value:  # noqa: PLR0124
            continue  # an empty cell
        row = position if column.codes is None else int(np.argmax(column.codes == position))
        configspace_reader.check_value(parameter, value, row, n)


@dataclass(frozen=True)
class _Rows:
    """The rows of a table, which are encoded on demand."""

    space: Space
    columns: dict[str, _Numbers]
    n: int
    drop_inactive: bool

    def read(self, rows: Any) -> Floats:
        """Return (number of rows, H) checked values.

        rows: a slice, or positions.
        """
        parameters, rules = self.space.parameters, self.space.rules
        size = rows.stop - rows.start if isinstance(rows, slice) else len(rows)
        values = np.full((size, len(parameters)), np.nan)
        for column, parameter in enumerate(parameters):
            if parameter.name in self.columns:
                values[:, column] = self.columns[parameter.name].at(rows)
        where = (rows.start, self.n) if isinstance(rows, slice) else (0, self.n)
        checked = configspace_reader.check_activity(
            parameters, rules, values, fill=False, drop=self.drop_inactive, where=where
        )
        configspace_reader.check_forbidden(parameters, rules, checked, where=where)
        return clean_values(checked)


def _all_equal(
    rows: _Rows, table: Floats, first: NDArray[np.int64], index: NDArray[np.int32]
) -> bool:
    """Return whether each row equals the row of the table with its hash."""
    again = np.ones(rows.n, dtype=np.bool_)
    again[first] = False
    repeats = np.flatnonzero(again)
    return all(
        equal_rows(rows.read(repeats[part]), table[index[repeats[part]]]).all()
        for part in parts(len(repeats), ROWS_AT_ONCE)
    )


def _compare_rows(space: Space, rows: _Rows) -> Configs:
    configs = Encoded(space, rows.read(slice(0, rows.n)))
    first, index = same_keys(configs.keys())
    return Configs(configs.take(first), index)
