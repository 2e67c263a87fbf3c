"""A batch of configurations in columns, and its two numeric faces."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from foretune._base.arrays import Bools, Floats
from foretune.errors import SpaceError
from foretune.space.parameters import Kind, Parameter

if TYPE_CHECKING:
    from foretune.space.space import Space

INACTIVE_NUMBER = 0.5
"""In the unit cube an inactive number lies in the middle: as far as can be from both ends."""
INACTIVE_CODE = -1.0
ROWS_AT_ONCE = 1 << 16
"""So many rows are worked on at once, that what lies between costs little memory."""


@dataclass(frozen=True, eq=False)
class Encoded:
    """n configurations of one space; immutable.

    Made by a `Space` (`encode`, `sample`, ...), which vouches that every row is legal.
    """

    space: "Space"
    values: Floats
    """(n, H), exact: numbers as they are, choices by index, NaN where inactive."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", _frozen(clean_values(self.values)))

    @staticmethod
    def of_rows(space: "Space", values: Floats) -> "Encoded":
        """Rows that come from other batches of the space: their bit patterns need no second look.

        values: (n, H), in the memory order of rows. It must never change.
        """
        encoded = object.__new__(Encoded)
        object.__setattr__(encoded, "space", space)
        object.__setattr__(encoded, "values", _frozen(values))
        return encoded

    def __reduce__(self) -> tuple[Any, ...]:
        return Encoded, (self.space, self.values)

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.dicts())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Encoded):
            return NotImplemented
        return self.space == other.space and np.array_equal(
            self.values, other.values, equal_nan=True
        )

    __hash__ = None  # type: ignore[assignment]

    @cached_property
    def active(self) -> Bools:
        """(n, H), True where a hyperparameter is active."""
        return _frozen(~np.isnan(self.values))

    @cached_property
    def x(self) -> Floats:
        """(n, W), the unit cube: logs honoured, categoricals one-hot, ordinals by rank.

        An inactive number is 0.5, an inactive categorical all zeros.
        """
        x = np.empty((len(self), self.space.width))
        for column, parameter in enumerate(self.space.parameters):
            x[:, parameter.columns] = _unit_columns(parameter, self.values[:, column])
        return _frozen(x)

    @cached_property
    def codes(self) -> Floats:
        """(n, H), one column a hyperparameter in [0, 1], and -1 where inactive."""
        units = [p.to_unit(self.values[:, i]) for i, p in enumerate(self.space.parameters)]
        codes = np.column_stack(units) if units else np.empty_like(self.values)
        return _frozen(np.where(self.active, codes, INACTIVE_CODE))

    def take(self, index: ArrayLike) -> "Encoded":
        """The rows at `index`: integers (or one), or a mask."""
        rows = np.atleast_1d(index)
        return Encoded.of_rows(self.space, self.values[rows if len(rows) else []])

    @staticmethod
    def concat(parts: Sequence["Encoded"]) -> "Encoded":
        """All rows of `parts`, which must be of one space."""
        if not parts:
            raise SpaceError("concat needs at least one batch, but got none: pass one or more")
        space = parts[0].space
        if any(part.space is not space and part.space != space for part in parts):
            raise SpaceError(
                "only batches of one space can be joined, but these are of different ones: "
                "re-express them with Space.adopt first"
            )
        return Encoded.of_rows(space, np.concatenate([part.values for part in parts]))

    def dicts(self) -> list[dict[str, Any]]:
        """The configurations as dicts that hold only what is active, in the order of the space."""
        rows: list[dict[str, Any]] = [{} for _ in range(len(self))]
        for column, parameter in enumerate(self.space.parameters):
            active = np.flatnonzero(self.active[:, column])
            name = parameter.name
            objects = _objects(parameter, self.values[active, column])
            for row, value in zip(active.tolist(), objects, strict=True):
                rows[row][name] = value
        return rows

    def pack(self) -> dict[str, NDArray[Any]]:
        """Arrays without NaN, as files of arrays need them; `Space.unpacked` reads them."""
        return {"values": np.nan_to_num(self.values), "active": self.active}

    def keys(self) -> NDArray[np.void]:
        """(n,) sortable byte strings, equal exactly where the configurations are equal."""
        return _row_keys(self.values)

    def unique(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """The first row of each configuration, ascending, and (n,) which of these each row is."""
        first, index = same_rows(row_hashes(self.values))
        if len(first) == len(self) or self._each_equals(first[index]):
            return first, index
        # Two configurations have one hash.
        _, some, inverse = np.unique(self.keys(), return_index=True, return_inverse=True)
        order = np.argsort(some)
        rank = np.empty(len(order), dtype=np.int32)
        rank[order] = np.arange(len(order), dtype=np.int32)
        return some[order], rank[inverse.reshape(-1)]

    def _each_equals(self, others: NDArray[np.int64]) -> bool:
        """Whether each row is equal to the one of the batch that `others` (n,) names."""
        return all(
            equal_rows(self.values[part], self.values[others[part]]).all()
            for part in _parts(len(self))
        )

    def isin(self, other: "Encoded") -> Bools:
        """(n,), True where a configuration also occurs in `other`."""
        found = np.zeros(len(self), dtype=bool)
        # Equal rows have equal hashes. The few rows whose hashes meet are compared as a whole.
        rows = np.flatnonzero(_is_among(self.hashes, other.hashes))
        if len(rows):
            others = other.values[_is_among(other.hashes, self.hashes)]
            known = set(_row_keys(others).tolist())
            found[rows] = [key in known for key in _row_keys(self.values[rows]).tolist()]
        return found

    @cached_property
    def hashes(self) -> NDArray[np.uint64]:
        """(n,), equal for equal configurations, and hardly ever for others."""
        return _frozen(row_hashes(self.values))

    def first_occurrences(self) -> NDArray[np.intp]:
        """Ascending indices of the rows that repeat no earlier row."""
        _, first = np.unique(self.keys(), return_index=True)
        return np.sort(first)


def row_hashes(values: Floats) -> NDArray[np.uint64]:
    """(n,), one hash for the bits of each row of values (n, H)."""
    hashes = np.empty(len(values), dtype=np.uint64)
    for part in _parts(len(values)):
        bits = values[part].view(np.uint64)
        # Small whole numbers differ in their highest bits alone, and a product carries bits
        # upwards.
        mixed = (bits ^ (bits >> np.uint64(29))) * _factors(values.shape[1])
        hashes[part] = (mixed ^ (mixed >> np.uint64(32))).sum(axis=1, dtype=np.uint64)
    return hashes


@cache
def _factors(columns: int) -> NDArray[np.uint64]:
    """(columns,), large odd numbers."""
    drawn = np.random.default_rng(0).integers(2**63, size=columns, dtype=np.uint64)
    return _frozen(drawn | np.uint64(1))


def _is_among(hashes: NDArray[np.uint64], others: NDArray[np.uint64]) -> Bools:
    """(n,), True where a hash is one of the others. Only a short list is sorted."""
    if len(others) > len(hashes):
        others = others[_is_in_order(others, np.sort(hashes))]
    return _is_in_order(hashes, np.sort(others))


def _is_in_order(hashes: NDArray[np.uint64], ordered: NDArray[np.uint64]) -> Bools:
    """(n,), True where a hash is in the ordered list."""
    if not len(ordered):
        return np.zeros(len(hashes), dtype=bool)
    places = np.minimum(np.searchsorted(ordered, hashes), len(ordered) - 1)
    return np.asarray(ordered[places] == hashes)


def _row_keys(values: Floats) -> NDArray[np.void]:
    """(n,) sortable byte strings of the rows of values (n, H)."""
    return values.view(np.dtype((np.void, values.itemsize * values.shape[1])))[:, 0]


def _unit_columns(parameter: Parameter, values: Floats) -> Floats:
    """(n, width) of one hyperparameter in the unit cube."""
    if parameter.kind is Kind.CONSTANT:
        return np.empty((len(values), 0))
    if parameter.kind is Kind.CATEGORICAL:
        one_hot: Floats = np.equal(values[:, None], np.arange(len(parameter.choices))) * 1.0
        return one_hot
    unit = parameter.to_unit(values)
    return np.where(np.isnan(unit), INACTIVE_NUMBER, unit)[:, None]


def nearest_values(parameters: Sequence[Parameter], x: Floats) -> Floats:
    """(n, H) of the nearest value to each point of the unit cube, as if all were active."""
    values = np.zeros((len(x), len(parameters)))
    for column, parameter in enumerate(parameters):
        if parameter.kind is Kind.CATEGORICAL:
            values[:, column] = np.argmax(x[:, parameter.columns], axis=1)
        elif parameter.kind is not Kind.CONSTANT:
            values[:, column] = parameter.from_unit(x[:, parameter.columns.start])
    return values


def _objects(parameter: Parameter, values: Floats) -> list[Any]:
    """Values as the Python objects that a user knows."""
    if parameter.kind is Kind.FLOAT:
        return list(values.tolist())
    whole = values.astype(np.int64).tolist()
    if parameter.kind is Kind.INT:
        return list(whole)
    choices = parameter.choices
    return [choices[index] for index in whole]


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    array.flags.writeable = False
    return array


def _parts(n: int) -> Iterator[slice]:
    for start in range(0, n, ROWS_AT_ONCE):
        yield slice(start, min(start + ROWS_AT_ONCE, n))


def clean_values(values: Floats) -> Floats:
    """A copy in which -0.0 and the many NaNs have one bit pattern each: equal rows, equal bytes."""
    given = np.asarray(values, dtype=np.float64)
    clean = np.empty(given.shape)
    for part in _parts(len(given)):
        np.add(given[part], 0.0, out=clean[part])
        clean[part][np.isnan(clean[part])] = np.nan
    return clean


def is_unique(numbers: NDArray[Any]) -> bool:
    """Whether no number occurs twice."""
    ascending = np.sort(numbers)
    return not (ascending[1:] == ascending[:-1]).any()


def same_rows(hashes: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The first row with each hash, ascending, and (n,) which of these each row is."""
    # Sorting without positions is several times faster, and mostly enough.
    if is_unique(hashes):
        return np.arange(len(hashes)), np.arange(len(hashes), dtype=np.int32)
    order = np.argsort(hashes)
    ascending = hashes[order]
    begins = np.ones(len(hashes), dtype=np.bool_)
    np.not_equal(ascending[1:], ascending[:-1], out=begins[1:])
    first = np.minimum.reduceat(order, np.flatnonzero(begins))
    by_first = np.argsort(first)
    rank = np.empty(len(first), dtype=np.int32)
    rank[by_first] = np.arange(len(first), dtype=np.int32)
    index = np.empty(len(hashes), dtype=np.int32)
    index[order] = rank[np.cumsum(begins) - 1]
    return first[by_first], index


def equal_rows(one: Floats, other: Floats) -> Bools:
    """(n,), where rows of clean values are equal, NaN and NaN among them."""
    same = (one == other) | (np.isnan(one) & np.isnan(other))
    equal: Bools = same.all(axis=1)
    return equal
