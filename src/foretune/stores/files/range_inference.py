"""Infer the range of a number from its values, and whether it is logarithmic."""

import math
import numbers
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any

import numpy as np
from ConfigSpace import (
    Constant,
    UniformFloatHyperparameter,
    UniformIntegerHyperparameter,
)
from numpy.typing import NDArray

from foretune._base.arrays import Floats
from foretune.errors import ExperienceError
from foretune.stores.files.cell_columns import ColumnCells, as_list

LEAST_RATIO_FOR_LOG = 10.0
MOST_GRID_VALUES = 30
SIGNIFICANT_DIGITS = 4
DECIMAL_PLACES = 13
LARGEST_BOUND = 1e290
"""ConfigSpace turns larger bounds into infinity when it rounds them."""
LOOKED_AT = 1 << 16
"""How many numbers are worked on at once."""


def infer_range(
    name: str, cells: ColumnCells, *, whole: bool
) -> UniformIntegerHyperparameter | UniformFloatHyperparameter | Constant:
    """Return the smallest range that holds the numbers, or a constant if they are all equal."""
    values = np.asarray(cells.values, dtype=np.float64)
    low, high = float(values.min()), float(values.max())
    if not math.isfinite(high - low):
        raise ExperienceError(
            f"a hyperparameter must be finite, but '{name}' is not in every row: write a number "
            f"for infinity, leave these rows out, or leave it out (--ignore '{name}')",
            rule="infinite-value",
            field=name,
        )
    if low == high:
        return Constant(name, int(low) if whole else low)
    if max(-low, high) > LARGEST_BOUND:
        raise ExperienceError(
            f"numbers must lie within ±{LARGEST_BOUND:g}, but those of '{name}' do not: leave out "
            "the rows with larger ones, or write their logarithm",
            rule="number-too-large",
            field=name,
        )
    log = looks_logarithmic(values, None if cells.codes is None else cells.counts())
    if whole:
        return UniformIntegerHyperparameter(name, int(low), int(high), log=log)
    lower, upper = round_outwards(low, ROUND_FLOOR), round_outwards(high, ROUND_CEILING)
    if log and lower <= 0:
        raise ExperienceError(
            f"the bounds of a range are rounded to {DECIMAL_PLACES} decimal places, and must then "
            f"be positive on a log scale, but '{name}' has [{low!r}, {high!r}]: write the exponent "
            f"of 10 instead, or leave it out (--ignore '{name}')",
            rule="rounded-to-zero",
            field=name,
            value=(low, high),
        )
    return UniformFloatHyperparameter(name, lower, upper, log=log)


def round_outwards(bound: float, direction: str) -> float:
    """Return a bound with few digits. It is easy to read, and ConfigSpace does not change it.

    ConfigSpace rounds bounds to 13 decimal places, which could leave out the observed extreme.
    """
    exact = Decimal(repr(bound))
    last_digit = max(exact.adjusted() - SIGNIFICANT_DIGITS + 1, -DECIMAL_PLACES)
    return float(exact.quantize(Decimal(1).scaleb(last_digit), rounding=direction))


def looks_logarithmic(values: Floats, counts: NDArray[np.int64] | None = None) -> bool:
    """Return whether positive values lie more evenly on a logarithmic scale than on a linear one.

    A few different values are a grid, which is judged by its steps. Many values are a sample, which
    is judged by how often each occurs. If the largest value is less than ten times the smallest,
    the scale is linear: the two scales hardly differ there.

    counts: how often each value occurs; once if it is not given.
    """
    order = np.argsort(values) if counts is not None else slice(None)
    ascending = np.sort(values)
    if ascending[0] <= 0 or ascending[-1] < LEAST_RATIO_FOR_LOG * ascending[0]:
        return False
    steps = np.unique(ascending) if counts is None else ascending
    if len(steps) <= MOST_GRID_VALUES:
        ascending, counts = steps, None
    elif counts is not None:
        counts = counts[order]
    return _unevenness(np.log(ascending), counts) <= _unevenness(ascending, counts)


def _unevenness(ascending: Floats, counts: NDArray[np.int64] | None) -> float:
    """Return the mean distance of the values, scaled to [0, 1], from evenly spaced ones.

    counts: how often each value occurs; once if it is not given.
    """
    low, width = ascending[0], ascending[-1] - ascending[0]
    n = len(ascending) if counts is None else int(counts.sum())
    total, first = 0.0, 0
    for start in range(0, len(ascending), LOOKED_AT):
        part = (ascending[start : start + LOOKED_AT] - low) / width
        if counts is not None:
            part = np.repeat(part, counts[start : start + LOOKED_AT])
        even = np.arange(first, first := first + len(part)) / (n - 1)
        total += float(np.abs(part - even).sum())
    return total / n


MOST_CHOSEN_NUMBERS = 10
"""At most this many different numbers beside None count as choices."""


def has_many_numbers(cells: ColumnCells) -> bool:
    """Return whether there are too many different numbers for choices without an order."""
    if cells.in_numbers and len(np.unique(cells.values[:LOOKED_AT])) > MOST_CHOSEN_NUMBERS + 1:
        return True  # one of these may be NaN
    return len(different_numbers(cells)) > MOST_CHOSEN_NUMBERS


def looks_like_range(cells: ColumnCells) -> bool:
    """Return whether there are many different numbers with fractions, as drawn from a range."""
    if not has_many_numbers(cells):
        return False
    if cells.in_numbers:
        return bool((cells.values[~np.isnan(cells.values)] % 1 != 0).any())
    return not all(float(each).is_integer() for each in different_numbers(cells))


def different_numbers(cells: ColumnCells) -> set[Any]:
    """Return the different numbers among values."""
    return {value for value in as_list(cells.different) if isinstance(value, numbers.Real)}
