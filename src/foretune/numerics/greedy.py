"""Few configurations that complement each other, chosen greedily from a table of losses.

L(S) is the aggregate over tasks of the best loss among S. It is monotone and, if the aggregate is
the mean, supermodular: greedy picks reach at least (1 - 1/e) of the best improvement that any set
of that size can bring.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from foretune._base.arrays import Bools, Floats, Ints
from foretune.errors import UsageError

Losses: TypeAlias = NDArray[np.floating[Any]]
"""(tasks, configurations), minimised and comparable between tasks; NaN where missing."""
Aggregate: TypeAlias = Callable[[Losses], Floats]
"""(tasks, n) -> (n,)"""

CHUNK = 1024
"""The number of configurations that are compared at once, to keep temporary arrays small."""


@dataclass(frozen=True, slots=True)
class Picks:
    """Columns of a table in the order of the picks, and L after each of them."""

    chosen: Ints
    """(k,)"""
    losses: Floats
    """(k,), not increasing."""


def mean(losses: Losses) -> Floats:
    """Return the mean over tasks."""
    averaged: Floats = losses.mean(axis=0, dtype=np.float64)
    return averaged


def percentile(losses: Losses, rank: float) -> Floats:
    """Return the value that `rank` percent of the tasks stay below."""
    ranked: Floats = np.percentile(losses, rank, axis=0)
    return ranked


def find_aggregate(name: str) -> Aggregate:
    """Return the aggregate with this name: `mean`, `median`, or a percentile such as `p90`."""
    if name == "mean":
        return mean
    if name == "median":
        return partial(percentile, rank=50.0)
    rank = name.removeprefix("p")
    if name.startswith("p") and rank.isdecimal() and 0 <= int(rank) <= 100:
        return partial(percentile, rank=float(rank))
    raise UsageError(
        "losses of tasks are aggregated by 'mean', 'median' or a percentile such as 'p90', but "
        f"got '{name}': use one of these",
        rule="unknown-aggregate",
        value=name,
    )


def missing_as_worst(losses: Losses) -> Losses:
    """Replace each NaN by the worst loss of its task, or by 0 if the task has none."""
    missing = np.isnan(losses)
    if not missing.any():
        return losses
    return np.where(missing, worst_of_each(losses)[:, None], losses)


def worst_of_each(losses: Losses) -> Losses:
    """Return (tasks,), the worst loss of each task, or 0 if the task has none."""
    worst: Losses = np.fmax.reduce(losses, axis=1)
    filled: Losses = np.where(np.isnan(worst), worst.dtype.type(0.0), worst)
    return filled


def meta_loss(losses: Losses, chosen: Sequence[int], aggregate: Aggregate = mean) -> float:
    """Return L(S) of the columns `chosen`, or the aggregate of the worst losses for no column."""
    best = worst_of_each(losses)
    for column in chosen:
        best = np.fmin(best, losses[:, column])
    return float(aggregate(best[:, None])[0])


def greedy(losses: Losses, k: int, aggregate: Aggregate = mean) -> Picks:
    """Pick k columns one by one, each the one that lowers L most.

    A missing loss counts as the worst of its task. If columns lower L equally, the one with the
    lowest mean loss comes first. With fewer than k columns, all are returned.
    """
    columns = losses.shape[1]
    best = worst_of_each(losses)
    free = np.ones(columns, dtype=bool)
    alone = _by_chunk(losses, best, mean)
    chosen, reached = [], []
    for _ in range(min(k, columns)):
        together = _by_chunk(losses, best, aggregate)
        pick = _first_of_lowest(together, alone, free)
        best = np.fmin(best, losses[:, pick])
        free[pick] = False
        chosen.append(pick)
        reached.append(together[pick])
    return Picks(np.array(chosen, dtype=np.int64), np.array(reached))


def _by_chunk(losses: Losses, best: Losses, aggregate: Aggregate) -> Floats:
    """Return L for each column together with the picks that have reached `best` (tasks,)."""
    parts = [
        aggregate(np.fmin(losses[:, start : start + CHUNK], best[:, None]))
        for start in range(0, losses.shape[1], CHUNK)
    ]
    return np.concatenate(parts)


def _first_of_lowest(together: Floats, alone: Floats, free: Bools) -> int:
    lowest = together[free].min()
    tied = np.flatnonzero(free & (together == lowest))
    return int(tied[np.argmin(alone[tied])])
