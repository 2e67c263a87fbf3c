"""Distributions of scipy.stats in the short notation of spaces."""

from typing import Any, TypeAlias

from foretune.errors import SpaceError

Range: TypeAlias = tuple[Any, ...]
"""(low, high) or (low, high, "log"), as in `foretune.space.notation`."""

UNIFORM, INTEGER = "uniform", "randint"
LOGARITHMIC = ("loguniform", "reciprocal")
"""Two names for one distribution."""


def is_distribution(value: Any) -> bool:
    """Return whether values can be drawn from an object, as scikit-learn decides it."""
    return hasattr(value, "rvs")


def range_of(name: str, distribution: Any) -> Range:
    """Return the range of a distribution that is uniform on a linear or a logarithmic scale."""
    family = getattr(getattr(distribution, "dist", None), "name", type(distribution).__name__)
    if family == UNIFORM:
        low, high = distribution.support()
        return float(low), float(high)
    if family == INTEGER:
        low, high = distribution.support()
        return int(low), int(high)
    if family in LOGARITHMIC:
        low, high = distribution.support()
        return float(low), float(high), "log"
    raise SpaceError(
        f"a distribution must be uniform, loguniform or randint of scipy.stats, but '{name}' is "
        f"{family}: give the range as (low, high) or (low, high, 'log'), or a list of choices",
        rule="unknown-distribution",
        field=name,
        value=family,
    )
