"""Rows of exact values: one bit pattern for equal values, hashes, and the comparison of rows."""

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foretune._base.arrays import Bools, Floats

ROWS_AT_ONCE = 1 << 16
"""The number of rows that are worked on at once, so that temporary arrays stay small."""


def clean_values(values: Floats) -> Floats:
    """Return a copy in which -0.0 and every NaN has one bit pattern: equal rows, equal bytes."""
    given = np.asarray(values, dtype=np.float64)
    clean = np.empty(given.shape)
    for part in parts(len(given)):
        np.add(given[part], 0.0, out=clean[part])
        clean[part][np.isnan(clean[part])] = np.nan
    return clean


def row_keys(values: Floats) -> NDArray[np.void]:
    """Return (n,) sortable byte strings of clean rows (n, H)."""
    return values.view(np.dtype((np.void, values.itemsize * values.shape[1])))[:, 0]


def row_hashes(values: Floats) -> NDArray[np.uint64]:
    """Return (n,) hashes of the bits of clean rows (n, H)."""
    hashes = np.empty(len(values), dtype=np.uint64)
    for part in parts(len(values)):
        bits = values[part].view(np.uint64)
        # Small whole numbers differ only in their highest bits. A product carries bits up.
        mixed = (bits ^ (bits >> np.uint64(29))) * _factors(values.shape[1])
        hashes[part] = (mixed ^ (mixed >> np.uint64(32))).sum(axis=1, dtype=np.uint64)
    return hashes


@cache
def _factors(columns: int) -> NDArray[np.uint64]:
    """Return (columns,) large odd numbers."""
    drawn = np.random.default_rng(0).integers(2**63, size=columns, dtype=np.uint64)
    return freeze(drawn | np.uint64(1))


def find_rows(
    values: Floats, hashes: NDArray[np.uint64], others: Floats, their_hashes: NDArray[np.uint64]
) -> Bools:
    """Return (n,), True where a row of `values` is also one of `others`."""
    found = np.zeros(len(values), dtype=bool)
    # Equal rows have equal hashes. The few rows whose hashes meet are compared completely.
    rows = np.flatnonzero(_is_among(hashes, their_hashes))
    if len(rows):
        known = set(row_keys(others[_is_among(their_hashes, hashes)]).tolist())
        found[rows] = [key in known for key in row_keys(values[rows]).tolist()]
    return found


def _is_among(hashes: NDArray[np.uint64], others: NDArray[np.uint64]) -> Bools:
    """Return (n,), True where a hash is one of the others. Only the shorter list is sorted."""
    if len(others) > len(hashes):
        others = others[_is_in_order(others, np.sort(hashes))]
    return _is_in_order(hashes, np.sort(others))


def _is_in_order(hashes: NDArray[np.uint64], ordered: NDArray[np.uint64]) -> Bools:
    """Return (n,), True where a hash is in the ordered list."""
    if not len(ordered):
        return np.zeros(len(hashes), dtype=bool)
    places = np.minimum(np.searchsorted(ordered, hashes), len(ordered) - 1)
    return np.asarray(ordered[places] == hashes)


def is_unique(numbers: NDArray[Any]) -> bool:
    """Return whether no number occurs twice."""
    ascending = np.sort(numbers)
    return not (ascending[1:] == ascending[:-1]).any()


def unique_rows(values: Floats) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return the first of each group of equal rows, and (n,) the group of each row."""
    first, index = same_rows(row_hashes(values))
    repeated = len(first) < len(values)
    if repeated and not all(
        equal_rows(values[part], values[first[index[part]]]).all() for part in parts(len(values))
    ):
        return same_keys(row_keys(values))  # Two different rows have one hash.
    return first, index


def same_rows(hashes: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return the first row with each hash, ascending, and (n,) which of these each row is."""
    # Sorting without positions is several times faster, and is usually enough.
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


def same_keys(keys: NDArray[np.void]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return what `same_rows` returns, by exact keys instead of hashes."""
    _, some, inverse = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(some)
    rank = np.empty(len(order), dtype=np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    return some[order], rank[inverse.reshape(-1)]


def equal_rows(one: Floats, other: Floats) -> Bools:
    """Return (n,), True where rows of clean values are equal. NaN equals NaN."""
    same = (one == other) | (np.isnan(one) & np.isnan(other))
    equal: Bools = same.all(axis=1)
    return equal


def freeze(array: NDArray[Any]) -> NDArray[Any]:
    """Make an array read-only, and return it."""
    array.flags.writeable = False
    return array


def parts(n: int, size: int = ROWS_AT_ONCE) -> Iterator[slice]:
    """Yield slices of at most `size` rows that cover n rows."""
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))
