"""Rows of a table that failed. Some trials end before they have drawn a whole configuration."""

import warnings
from collections.abc import Mapping

import numpy as np

from foretune._base.arrays import Bools
from foretune._base.names import quote_names
from foretune.errors import ForetuneWarning
from foretune.space.parameters import choice_key
from foretune.stores.files.cell_columns import ColumnCells
from foretune.stores.files.condition_inference import Activity, explain_columns
from foretune.stores.files.dropped_rows import TOLD_IN_PART, say_left_out


def drop_failure_columns(cells: dict[str, ColumnCells], done: Bools) -> dict[str, ColumnCells]:
    """Drop the columns that only failures fill, such as the text of an exception."""
    reasons = [name for name in cells if not cells[name].present[done].any()]
    if not reasons or not done.any():
        return cells
    warnings.warn(
        ForetuneWarning(
            f"{quote_names(reasons)}: only rows that failed have a value, so it is left out",
            rule="only-failures",
            value=tuple(reasons),
        ),
        stacklevel=3,
    )
    return {name: column for name, column in cells.items() if name not in reasons}


def find_whole_rows(
    cells: Mapping[str, ColumnCells], told: Mapping[str, Bools], done: Bools, tasks: ColumnCells
) -> Bools:
    """Return (n,), False for rows that failed without all of their hyperparameters; warn of these.

    told: (n,) each, where the row names a hyperparameter that may be None.
    tasks: the task of each row, for the warning.
    """
    if not done.any() or all(column.present[~done].all() for column in cells.values()):
        return np.ones(len(done), dtype=np.bool_)
    whole = find_whole_configs(cells, told, done)
    say_left_out("rows", TOLD_IN_PART, tasks.take(~whole).tolist(), stacklevel=5)
    return whole


def find_whole_configs(
    cells: Mapping[str, ColumnCells], told: Mapping[str, Bools], done: Bools
) -> Bools:
    """Return (n,), False for evaluations that failed before all hyperparameters were recorded.

    The evaluations that succeeded show what belongs to a whole configuration.

    told: (n,) each, where a hyperparameter is named as None, and perhaps where it has a value.
    """
    named = {name: column.present | told.get(name, False) for name, column in cells.items()}
    patterns = np.packbits(np.column_stack([*named.values(), np.zeros_like(done)]), axis=1)
    _, pattern = np.unique(
        patterns.view(np.dtype((np.void, patterns.shape[1])))[:, 0], return_inverse=True
    )
    whole = np.bincount(pattern[done], minlength=pattern.max() + 1) > 0
    return done | (whole[pattern] & _fit_conditions(cells, named, done))


def _fit_conditions(
    cells: Mapping[str, ColumnCells], named: Mapping[str, Bools], done: Bools
) -> Bools:
    """Return (n,), whether a row has just the hyperparameters that are active in successes."""
    succeeded = {name: column.take(done) for name, column in cells.items()}
    # A column that no successful row fills explains nothing.
    succeeded = {name: column for name, column in succeeded.items() if column.present.any()}
    with_none = {name: named[name][done] for name in succeeded}
    fits = np.ones(len(done), dtype=np.bool_)
    for name, activity in explain_columns(succeeded, with_none)[1].items():
        present = cells[name].present
        active = _active(cells[activity.parent], activity, present, done)
        fits &= np.where(active, named[name], ~present)
    return fits


def _active(parent: ColumnCells, activity: Activity, present: Bools, done: Bools) -> Bools:
    """Return (n,), where a hyperparameter is active, given the values of the one that decides it.

    If no row with some value succeeded, the rows that failed show what is active there.

    present: (n,), where the hyperparameter has a value.
    """
    own = parent.encode().with_none()
    assert own.codes is not None
    size = len(own.values)
    seen = np.bincount(own.codes[done], minlength=size) > 0
    filled = np.bincount(own.codes[present], minlength=size) > 0
    keys = set(map(choice_key, activity.values))
    active = np.array([choice_key(value) in keys for value in own.values]) | (filled & ~seen)
    here: Bools = active[own.codes]
    return here
