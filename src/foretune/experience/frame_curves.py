"""Learning curves in a data frame: columns of lists, one list for each evaluation."""

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from foretune._base.arrays import Floats
from foretune._base.names import quote_names
from foretune.errors import ExperienceError
from foretune.experience.curves import NO_STEPS, CurveColumns, build_curves
from foretune.experience.data import METRIC_PREFIX, ExperienceData

CURVE = "curve:"
STEP, SECONDS = "step", "seconds"


def curve_lists(experience: ExperienceData) -> dict[str, list[list[float] | None]]:
    """Return the columns of the steps, of each metric and of the seconds; None without a curve.

    There are no columns if no evaluation has a curve, and no seconds if none are known.
    """
    curves = experience.curves
    if curves is None:
        return {}
    columns: dict[str, NDArray[np.floating[Any]]] = {CURVE + STEP: curves.steps}
    for place, metric in enumerate(experience.metrics):
        columns[column_of(CURVE, metric.name)] = curves.values[:, place]
    if not np.isnan(curves.seconds).all():
        columns[CURVE + SECONDS] = curves.seconds
    points = [curves.points(row) for row in range(len(curves))]
    return {
        name: [column[each].tolist() if each.stop > each.start else None for each in points]
        for name, column in columns.items()
    }


def column_of(prefix: str, metric: str) -> str:
    """Return the column with the curves of a metric."""
    return prefix + (METRIC_PREFIX + metric if metric in (STEP, SECONDS) else metric)


def read_curve_lists(frame: pd.DataFrame, prefix: str, metrics: Iterable[str]) -> CurveColumns:
    """Read the curves in the columns that begin with `prefix`.

    Without a column of steps, these are 1, 2, 3 and so on. A metric may have no column.
    """
    columns = [column_of(prefix, metric) for metric in metrics]
    known = [name for name in columns if name in frame]
    if not known:
        raise ExperienceError(
            f"curves need a column of lists for a metric, but the frame has none of "
            f"{quote_names(columns)}: give the prefix of these columns",
            rule="unknown-column",
            field="curves",
            value=prefix,
        )
    lists = {name: _lists_in(frame[name], name) for name in known}
    for name in (prefix + STEP, prefix + SECONDS):
        if name in frame:
            lists[name] = _lists_in(frame[name], name)
    lengths = [len(each) for each in lists[known[0]]]
    flat = {name: _flat(column, lengths, name, known[0]) for name, column in lists.items()}
    counted = [np.arange(1.0, length + 1) for length in lengths]
    steps = flat.get(prefix + STEP, np.concatenate([NO_STEPS, *counted]))
    unknown = np.full(len(steps), np.nan)
    values = np.column_stack([flat.get(name, unknown) for name in columns])
    return build_curves(lengths, steps, values, flat.get(prefix + SECONDS))


def _lists_in(column: "pd.Series[Any]", name: str) -> list[Floats]:
    return [_numbers_in(cell, name) for cell in column]


def _numbers_in(cell: Any, name: str) -> Floats:
    if isinstance(cell, list | tuple | np.ndarray):
        with suppress(TypeError, ValueError):
            numbers = np.array(cell, dtype=np.float64)
            if numbers.ndim == 1:
                return numbers
    elif pd.isna(cell):
        return NO_STEPS
    raise ExperienceError(
        f"a cell of column '{name}' must be a list of numbers or empty, but got {cell!r}: "
        "correct it",
        rule="not-a-list",
        field=name,
        value=cell,
    )


def _flat(column: list[Floats], lengths: list[int], name: str, first: str) -> Floats:
    for row, (numbers, length) in enumerate(zip(column, lengths, strict=True)):
        if len(numbers) != length:
            raise ExperienceError(
                f"the lists of one row must have the same length, but in row {row + 1} '{first}' "
                f"has {length} numbers and '{name}' has {len(numbers)}: give one for each step",
                rule="curve-length",
                field=name,
                value=len(numbers),
            )
    return np.concatenate([NO_STEPS, *column])
