"""Infer which hyperparameter decides when another one is active."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import NoneType
from typing import Any, TypeAlias

import numpy as np
from ConfigSpace import (
    EqualsCondition,
    InCondition,
)
from numpy.typing import NDArray

from foretune._base.arrays import Bools
from foretune.space.definition import Draft
from foretune.space.parameters import choice_key
from foretune.stores.files.cell_columns import ColumnCells, as_list
from foretune.stores.files.plain_values import Scalar, sort_distinct
from foretune.stores.files.range_inference import has_many_numbers

Column: TypeAlias = Sequence[Any] | ColumnCells
"""One value a configuration; None or NaN where the hyperparameter is missing."""
MOST_PARENT_VALUES = 30
DISCRETE = (bool, int, str, NoneType, np.bool_, np.integer)
"""The types of values that can decide when other hyperparameters are active."""


@dataclass(frozen=True)
class Activity:
    """A hyperparameter is active exactly where `parent` takes one of `values`."""

    parent: str
    values: tuple[Scalar, ...]


def explain_columns(
    columns: Mapping[str, ColumnCells], told: Mapping[str, Bools]
) -> tuple[dict[str, Bools], dict[str, Activity]]:
    """Return where each hyperparameter has a value, (n,) each, and what explains its gaps.

    A None is a gap if another hyperparameter explains it. Otherwise it is a value if the
    configurations name it.
    """
    present = {name: column.present for name, column in columns.items()}
    explained = explain_missing(columns, present)
    # Columns of many numbers come second, because a range cannot hold None: the None of another
    # column may explain their gaps.
    for numbers_too in (False, True):
        with_none = {
            name: where
            for name, where in told.items()
            if name not in explained
            and (where & ~present[name]).any()
            and (numbers_too or not has_many_numbers(columns[name]))
        }
        if with_none:
            present |= with_none
            explained = explain_missing(columns, present)
    return present, explained


def find_unexplained_gaps(
    columns: Mapping[str, ColumnCells], told: Mapping[str, Bools]
) -> list[str]:
    """Return the hyperparameters that are missing in some rows where no other one explains it.

    told: as `infer_space` takes it.
    """
    present, explained = explain_columns(columns, told)
    return [name for name in columns if name not in explained and not present[name].all()]


def explain_missing(
    columns: Mapping[str, Column], present: Mapping[str, Bools] | None = None
) -> dict[str, Activity]:
    """Return, for each hyperparameter with missing values, the one that decides when it is active.

    A hyperparameter without an explanation is left out. If there are several explanations, the one
    that is itself missing least often wins. This leads to the root of nested choices.

    present: (n,) each, where a column has a value. Without it, every None is a gap.
    """
    cells = {name: ColumnCells.of(column) for name, column in columns.items()}
    if present is None:
        present = {name: column.present for name, column in cells.items()}
    if all(here.all() for here in present.values()):
        return {}
    parents = [name for name in cells if _may_be_parent(cells[name], present[name])]
    parents.sort(key=lambda name: -int(present[name].sum()))
    codes = {name: _encode_column(cells[name], present[name]) for name in parents}
    explained = {}
    for name, active in present.items():
        if active.all():
            continue
        for parent in parents:
            if present[parent].sum() <= active.sum():
                continue
            values = _activating_values(codes[parent], active)
            if values is not None:
                explained[name] = Activity(parent, values)
                break
    return explained


def _may_be_parent(column: ColumnCells, present: Bools) -> bool:
    """Return whether a hyperparameter has few values that can be listed. A float has not."""
    kinds = column.kinds | ({NoneType} if (present & ~column.present).any() else set())
    allowed = (*DISCRETE, float) if kinds & {bool, str, NoneType} else DISCRETE
    if not all(issubclass(kind, allowed) for kind in kinds):
        return False
    if len(column.different) > MOST_PARENT_VALUES and column.in_numbers:
        return False
    return 2 <= len(sort_distinct(column.different)) + (NoneType in kinds) <= MOST_PARENT_VALUES


def _encode_column(column: ColumnCells, present: Bools) -> tuple[list[Scalar], NDArray[np.int64]]:
    """Return the different values, and each row's position among them (-1 where missing)."""
    here = column.encode()
    assert here.codes is not None
    none = [None] if (present & ~column.present).any() else []
    values = sort_distinct([*as_list(here.values), *none])
    position = {choice_key(value): index for index, value in enumerate(values)}
    moved = [position[choice_key(value)] for value in as_list(here.values)]
    codes = np.array([*moved, position.get(choice_key(None), -1)])[here.codes]
    return values, np.where(present, codes, -1)


def _activating_values(
    coded: tuple[list[Scalar], NDArray[np.int64]], active: Bools
) -> tuple[Scalar, ...] | None:
    """Return the parent's values at which a hyperparameter is active; None if others decide."""
    values, codes = coded
    on, off = _codes_in(codes[active]), _codes_in(codes[~active])
    if on & off or -1 in on:
        return None
    return tuple(values[code] for code in sorted(on))


def _codes_in(codes: NDArray[np.int64]) -> set[int]:
    """Return the different codes; -1 is one of them."""
    return set((np.flatnonzero(np.bincount(codes + 1)) - 1).tolist())


def add_conditions(space: Draft, activities: Mapping[str, Activity]) -> None:
    """Add to `space` the conditions that say when its hyperparameters are active."""
    for name, activity in activities.items():
        child, parent = space[name], space[activity.parent]
        if len(activity.values) == 1:
            space.add(EqualsCondition(child, parent, activity.values[0]))
        else:
            space.add(InCondition(child, parent, list(activity.values)))
