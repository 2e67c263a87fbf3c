"""Divides rows into those that a pipeline learns from and those that it is scored on."""

import numpy as np

from foretune._base.arrays import Floats, Ints
from foretune.automl.metrics import differ
from foretune.errors import UsageError
from foretune.tables import FIRST_SCORED, RowStructureKind, Splits, Table, split_later_rows

HELD_OUT = 1 / 3


def cross_validation(table: Table, folds: int, seed: int) -> Splits:
    """Return splits that score every row once, or only the later half if rows are in order.

    Rows in order are scored by models of earlier rows.
    """
    if _kind(table) is RowStructureKind.IN_ORDER:
        return _learnable(split_later_rows(_values(table), first=FIRST_SCORED, parts=folds), table)
    part = _dealt(table, folds, seed)
    return _learnable([_by_part(part, each) for each in np.unique(part)], table)


def hold_out(table: Table, seed: int) -> Splits:
    """Return a split that scores a third of the rows: the last third if rows are in order."""
    if _kind(table) is RowStructureKind.IN_ORDER:
        return _learnable(split_later_rows(_values(table), first=1.0 - HELD_OUT, parts=1), table)
    part = _dealt(table, round(1 / HELD_OUT), seed)
    if _kind(table) is not RowStructureKind.TOGETHER:
        return [_by_part(part, 0)]
    # Parts of rows that belong together may have very different sizes.
    away = np.abs(np.bincount(part) - HELD_OUT * len(part))
    return _learnable([_by_part(part, int(np.argmin(away)))], table)


def dealt_together(groups: Ints, y: Floats, parts: int, rng: np.random.Generator) -> Ints:
    """Return the part (n,) of each row; all rows of a group are in one part.

    The largest groups come first, and groups of similar size go in the order of their mean target,
    each to the smallest part so far. This makes parts even in size and target.
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


def _learnable(splits: Splits, table: Table) -> Splits:
    """Leave out splits whose rows to learn from all have one target, which most pipelines refuse.

    Early rows or rows of other groups may be like this; rows that are dealt at random are not.
    """
    by = table.arrangement
    usable = [(learn, held) for learn, held in splits if by is None or differ(table.y[learn])]
    if by is not None and not differ(table.y):
        raise UsageError(
            "rows to learn from must differ in their target, but all have the same one: choose "
            "another target, or add rows with other values of it",
            rule="one-target",
        )
    if by is not None and not usable:
        those = "that come first" if by.kind is RowStructureKind.IN_ORDER else "of other groups"
        raise UsageError(
            f"rows to learn from must differ in their target, but by '{by.column}' those {those} "
            "all have the same one: choose another column, or leave it out",
            rule="one-target",
            field=by.column,
            value=those,
        )
    return usable


def _dealt(table: Table, parts: int, seed: int) -> Ints:
    """Return the part (n,) of each row; each class, or range of the target, is spread evenly."""
    rng = np.random.default_rng(seed)
    if _kind(table) is RowStructureKind.TOGETHER:
        _, groups = np.unique(_values(table), return_inverse=True)
        return dealt_together(groups, table.y, parts, rng)
    order = rng.permutation(len(table))
    # Sorting by the target and dealing rows out like cards stratifies both kinds of tasks.
    order = order[np.argsort(table.y[order], kind="stable")]
    part = np.empty(len(table), dtype=np.int64)
    part[order] = np.arange(len(table)) % parts
    return part


def _by_part(part: Ints, scored: int) -> tuple[Ints, Ints]:
    return np.flatnonzero(part != scored), np.flatnonzero(part == scored)


def _kind(table: Table) -> RowStructureKind | None:
    return None if table.arrangement is None else table.arrangement.kind


def _values(table: Table) -> Floats:
    if table.arrangement is None:
        raise ValueError("the rows of the table have no arrangement")
    return table.arrangement.values
