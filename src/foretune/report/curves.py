"""The course of a search, compared with what random search is expected to find."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from foretune._base.arrays import Floats, Ints
from foretune.experience import Direction
from foretune.numerics.objectives import pareto_front

LOG_ABOVE = 50.0
"""Losses that differ by more than this factor are shown on a logarithmic axis."""


def random_search_curve(values: Sequence[float] | Floats, n: int, direction: Direction) -> Floats:
    """Return (n,), the expected best of 1, 2, ..., n draws with replacement from `values`.

    NaN stands for a failed trial, which counts as the worst value. If no value is finite, the
    result is empty.
    """
    given = np.asarray(values, dtype=np.float64)
    finite = given[np.isfinite(given)]
    if finite.size == 0:
        return np.empty(0)
    sign = 1.0 if direction is Direction.MIN else -1.0
    losses = np.sort(np.where(np.isfinite(given), sign * given, (sign * finite).max()))
    # All of k draws lie at or beyond the i-th smallest with probability ((size - i) / size)^k.
    reach = np.arange(losses.size, 0, -1) / losses.size
    steps = np.diff(losses, prepend=0.0)
    powers = np.empty(n)
    survival = np.ones(losses.size)
    for k in range(n):
        survival = survival * reach
        powers[k] = survival @ steps
    return np.asarray(sign * powers)


def trials_needed(
    expected: Sequence[float] | Floats, value: float, better: Direction
) -> int | None:
    """Return after how many trials an expected curve is as good as `value`; None if it never is."""
    curve = np.asarray(expected, dtype=np.float64)
    reached = curve <= value if better is Direction.MIN else curve >= value
    return int(np.argmax(reached)) + 1 if reached.any() else None


@dataclass(frozen=True, slots=True)
class Range:
    """The part of an axis that is shown."""

    low: float
    high: float
    log: bool
    beyond: int
    """How many values are worse than the shown ones."""


def visible_range(values: Floats, direction: Direction, also: Sequence[float] = ()) -> Range:
    """Return the range from the best value to the worst one worth showing.

    Extremely bad values would flatten all others. Shown are values within Tukey's fence and those
    in `also`. NaN is ignored.
    """
    sign = 1.0 if direction is Direction.MIN else -1.0
    losses = sign * values[np.isfinite(values)]
    if losses.size == 0:
        return Range(0.0, 1.0, False, 0)
    first, third = np.quantile(losses, (0.25, 0.75))
    fence = third + 1.5 * (third - first) if third > first else np.inf
    kept = np.concatenate([losses[losses <= fence], sign * np.asarray(also, dtype=np.float64)])
    best, worst = float(kept.min()), float(kept.max())
    beyond = int((losses > worst).sum())
    if best == worst:
        worst += abs(best) * 0.01 or 1.0
    if sign > 0 and best > 0 and worst / best > LOG_ABOVE:
        return Range(best / 1.15, worst * 1.15, True, beyond)
    room = 0.06 * (worst - best)
    ends = sign * (best - room), sign * (worst + room)
    return Range(min(ends), max(ends), False, beyond)


def unbeaten(losses: Floats) -> Ints:
    """Return the rows of losses (n, L) that no other row beats in all, by their first loss.

    Rows with NaN are never among them. Of equal rows, the first one is.
    """
    front = np.flatnonzero(pareto_front(losses))
    return front[np.unique(losses[front], axis=0, return_index=True)[1]]
