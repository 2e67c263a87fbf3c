"""Rows of a table that failed: some trials end before they have drawn a whole configuration."""

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from foretune.arrays import Bools
from foretune.errors import ForetuneWarning
from foretune.experience import Status
from foretune.experience.importers.inference import present_mask
from foretune.experience.importers.left_out import TOLD_IN_PART, say_left_out
from foretune.experience.importers.registry import TableColumns
from foretune.experience.importers.runs import Run, told_in_full
from foretune.experience.naming import listed


def succeeded(frame: pd.DataFrame, columns: TableColumns) -> Bools:
    """(n,), where an evaluation was measured and did not fail."""
    numbers = frame[list(columns.values)].apply(pd.to_numeric, errors="coerce")
    done: Bools = np.isfinite(numbers.to_numpy(dtype=np.float64, na_value=np.nan)).any(axis=1)
    return done if columns.status is None else done & (frame[columns.status] == Status.DONE.name)


def without_reasons(cells: dict[str, list[Any]], done: Bools) -> dict[str, list[Any]]:
    """The columns without those that only failures fill, such as the text of an exception."""
    reasons = [name for name in cells if not present_mask(cells[name])[done].any()]
    if not reasons or not done.any():
        return cells
    warnings.warn(
        f"{listed(reasons)}: only rows that failed have a value, so it is left out",
        ForetuneWarning,
        stacklevel=3,
    )
    return {name: column for name, column in cells.items() if name not in reasons}


def rows_told_in_full(
    frame: pd.DataFrame,
    cells: Mapping[str, list[Any]],
    told: Mapping[str, Bools],
    columns: TableColumns,
) -> Bools:
    """(n,), False for rows that failed without all of their hyperparameters, of which it warns.

    told: (n,) each, where a hyperparameter that may be None is named.
    """
    done = succeeded(frame, columns)
    named = {name: present_mask(column) for name, column in cells.items()}
    whole = np.ones(len(frame), dtype=np.bool_)
    if not done.any() or all(where[~done].all() for where in named.values()):
        return whole
    nothing = {name: told[name] & ~named[name] for name in cells if name in told}
    runs = [
        Run(
            "",
            {name: cells[name][row] for name in cells if named[name][row]},
            {},
            nothing=[name for name in nothing if nothing[name][row]],
        )
        for row in range(len(frame))
    ]
    whole = np.array(told_in_full(runs, done.tolist()))
    lost = frame[columns.task][~whole].astype(str).tolist()
    say_left_out("rows", TOLD_IN_PART, lost, stacklevel=5)
    return whole
