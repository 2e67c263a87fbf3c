"""The course of a search, and what random search would have found in its place."""

from collections.abc import Sequence

import numpy as np

from foretune.arrays import Floats
from foretune.experience import Direction


def expected_best(values: Sequence[float] | Floats, n: int, direction: Direction) -> Floats:
    """(n,): the expected best of 1, 2, ..., n draws with replacement from `values`.

    NaN stands for a failed trial, which counts as the worst value there is. Empty where no value
    is finite.
    """
    given = np.asarray(values, dtype=np.float64)
    finite = given[np.isfinite(given)]
    if finite.size == 0:
        return np.empty(0)
    sign = 1.0 if direction is Direction.MIN else -1.0
    losses = np.sort(np.where(np.isfinite(given), sign * given, (sign * finite).max()))
    # Of k draws, all lie at or beyond the i-th smallest with probability ((size - i) / size)^k.
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
    """After how many trials an expected curve is as good as `value`; None where it never is."""
    curve = np.asarray(expected, dtype=np.float64)
    reached = curve <= value if better is Direction.MIN else curve >= value
    return int(np.argmax(reached)) + 1 if reached.any() else None
