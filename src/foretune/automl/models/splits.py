"""Which rows a pipeline learns from and which it is scored on."""

from typing import TypeAlias

import numpy as np

from foretune.arrays import Floats, Ints
from foretune.automl.tables.arrangement import Arranged
from foretune.automl.tables.datasets import Table

HELD_OUT = 1 / 3
FIRST_SCORED = 1 / 2
"""Of rows in order, those before this share are only learnt from where parts of the rest are
scored one after the other: a model of much fewer rows would say little about the final one."""

Splits: TypeAlias = list[tuple[Ints, Ints]]
"""(rows to learn from, rows to score on) of each model."""


def cross_validation(table: Table, folds: int, seed: int) -> Splits:
    """Every row is scored once; of rows in order, the later half, by what came before them."""
    if _kind(table) is Arranged.IN_ORDER:
        return later_rows(_values(table), first=FIRST_SCORED, parts=folds)
    part = _dealt(table, folds, seed)
    return [_by_part(part, each) for each in np.unique(part)]


def hold_out(table: Table, seed: int) -> Splits:
    """A third of the rows is scored once; of rows in order, the last third."""
    if _kind(table) is Arranged.IN_ORDER:
        return later_rows(_values(table), first=1.0 - HELD_OUT, parts=1)
    part = _dealt(table, round(1 / HELD_OUT), seed)
    if _kind(table) is not Arranged.TOGETHER:
        return [_by_part(part, 0)]
    # Parts of rows that belong together may differ much in size.
    away = np.abs(np.bincount(part) - HELD_OUT * len(part))
    return [_by_part(part, int(np.argmin(away)))]


def later_rows(order: Floats, *, first: float, parts: int) -> Splits:
    """The rows after a share `first` of them in so many parts, each scored by what came before it.

    order: (n,), when a row comes; those that come at once are never divided. Where nothing begins
    so late, what comes last of all is scored.
    """
    before = np.searchsorted(np.sort(order), order)
    begin = min(max(1, round(first * len(order))), int(before.max()))
    begins = np.linspace(begin, len(order), parts, endpoint=False).round()
    part = np.searchsorted(begins, before, side="right") - 1
    scored = [np.flatnonzero(part == each) for each in range(parts)]
    return [(np.flatnonzero(order < order[held].min()), held) for held in scored if len(held)]


def dealt_together(groups: Ints, y: Floats, parts: int, rng: np.random.Generator) -> Ints:
    """(n,), the part of each row, one for all rows of a group.

    Groups of much the same size are dealt in the order of their mean target, the largest first,
    each to the smallest part so far: parts are as even as can be in both.
    """
    sizes = np.bincount(groups)
    means = np.bincount(groups, weights=y) / sizes
    shuffled = rng.permutation(len(sizes))
    order = np.lexsort((means[shuffled], -np.floor(np.log2(sizes[shuffled]))))
    part_of = np.empty(len(sizes), dtype=np.int64)
    rows = np.zeros(parts)
    for group in shuffled[order]:
        part_of[group] = np.argmin(rows)
        rows[part_of[group]] += sizes[group]
    dealt: Ints = part_of[groups]
    return dealt


def _dealt(table: Table, parts: int, seed: int) -> Ints:
    """(n,), the part of each row; each class, or range of the target, is spread evenly."""
    rng = np.random.default_rng(seed)
    if _kind(table) is Arranged.TOGETHER:
        _, groups = np.unique(_values(table), return_inverse=True)
        return dealt_together(groups, table.y, parts, rng)
    order = rng.permutation(len(table))
    # Sorting by the target and dealing the rows out like cards stratifies both kinds of tasks.
    order = order[np.argsort(table.y[order], kind="stable")]
    part = np.empty(len(table), dtype=np.int64)
    part[order] = np.arange(len(table)) % parts
    return part


def _by_part(part: Ints, scored: int) -> tuple[Ints, Ints]:
    return np.flatnonzero(part != scored), np.flatnonzero(part == scored)


def _kind(table: Table) -> Arranged | None:
    return None if table.arrangement is None else table.arrangement.kind


def _values(table: Table) -> Floats:
    if table.arrangement is None:
        raise ValueError("the rows of the table have no arrangement")
    return table.arrangement.values
