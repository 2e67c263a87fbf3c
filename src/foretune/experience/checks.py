"""Checks of the columns from which an experience is built."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from foretune._base.arrays import Floats
from foretune._base.names import check_writable
from foretune.errors import ExperienceError
from foretune.experience.curves import CurveColumns
from foretune.experience.evaluation import FINAL_STATUSES, Metric, Status


def check_names(kind: str, names: Sequence[str]) -> None:
    """Refuse names that are missing, empty, repeated, or that no file can hold.

    kind: `"metric"` or `"task"`.
    """
    if len(names) == 0:
        raise ExperienceError(
            f"an experience needs at least one {kind}, but got none: name one",
            rule="no-names",
            field=kind,
        )
    seen: set[str] = set()
    for name in names:
        if not isinstance(name, str) or not name:
            raise ExperienceError(
                f"the name of a {kind} must be a text that is not empty, but got {name!r}: "
                "give it a name",
                rule="not-a-name",
                field=kind,
                value=name,
            )
        check_writable(kind, name)
        if name in seen:
            raise ExperienceError(
                f"the names of {kind}s must differ, but '{name}' comes twice: rename one of them",
                rule="repeated-name",
                field=kind,
                value=name,
            )
        seen.add(name)


def check_metrics_have_values(
    metrics: Sequence[Metric], values: Floats, status: NDArray[np.int8]
) -> None:
    """Refuse a metric that no successful evaluation has measured."""
    ended_well = status == Status.DONE
    for column, metric in enumerate(metrics):
        if not np.any(np.isfinite(values[:, column]) & ended_well):
            raise ExperienceError(
                f"a metric needs at least one finite value of a successful evaluation, but "
                f"'{metric.name}' has none in {len(values)} rows: check its column or leave it out",
                rule="metric-without-values",
                field=metric.name,
            )


def read_index(index: ArrayLike, size: int, kind: str, n: int) -> NDArray[np.int32]:
    """Return n positions in a list of `size` tasks or configurations."""
    array = np.asarray(index)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ExperienceError(
            f"the {kind} of each evaluation must be given as a list of whole numbers, but got an "
            f"array of type {array.dtype} and shape {array.shape}: pass positions",
            rule="not-an-index",
            field=kind,
            value=index,
        )
    _check_length(f"{kind} index", array, n)
    low, high = array.min(), array.max()
    if low < 0 or high >= size:
        wrong = low if low < 0 else high
        raise ExperienceError(
            f"the {kind} index must lie between 0 and {size - 1}, but got {wrong}: "
            f"check the list of {kind}s",
            rule="index-outside",
            field=kind,
            value=int(wrong),
        )
    return array.astype(np.int32, copy=False)


def read_values(values: ArrayLike, n: int, width: int) -> Floats:
    """Return a matrix (n, width) of metric values."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim == 1:
        array = array[:, None]
    if array.shape != (n, width):
        raise ExperienceError(
            f"values must have one row for each evaluation and one column for each metric, "
            f"{(n, width)}, but got the shape {array.shape}: pass an array of that shape",
            rule="wrong-shape",
            field="values",
            value=array.shape,
        )
    return array


def read_status(status: ArrayLike | None, values: Floats) -> NDArray[np.int8]:
    """Return the status of each row; a row without any value has failed."""
    measured = np.isfinite(values).any(axis=1)
    if status is None:
        given = np.zeros(len(values), dtype=np.int8)
    else:
        array = np.asarray(status)
        _check_length("status", array, len(values))
        known = np.isin(array, [int(each) for each in FINAL_STATUSES])
        if not known.all():
            raise ExperienceError(
                "a status must be 0 (done), 1 (failed), 2 (timeout) or 3 (stopped), "
                f"but got {array[~known][0]!r}: use foretune.experience.Status",
                rule="unknown-status",
                field="status",
                value=array[~known][0],
            )
        given = array.astype(np.int8, copy=False)
    unmeasured = (given == Status.DONE) & ~measured
    return np.where(unmeasured, np.int8(Status.FAILED), given) if unmeasured.any() else given


def read_numbers(numbers: ArrayLike | None, n: int, name: str) -> NDArray[np.float32]:
    """Return n numbers; they are all NaN if none are given."""
    if numbers is None:
        return np.full(n, np.nan, dtype=np.float32)
    array = np.asarray(numbers, dtype=np.float32)
    _check_length(name, array, n)
    return array


def check_curves(curves: CurveColumns, n: int, width: int) -> CurveColumns | None:
    """Return the curves of n evaluations of `width` metrics; None if there is no point."""
    if len(curves) != n or curves.values.shape[1] != width:
        raise ExperienceError(
            f"curves must be given for each of the {n} evaluations and each of the {width} "
            f"metrics, but got {len(curves)} and {curves.values.shape[1]}: pass one a row",
            rule="wrong-shape",
            field="curves",
            value=(len(curves), curves.values.shape[1]),
        )
    return curves if len(curves.steps) else None


def _check_length(name: str, array: NDArray[Any], n: int) -> None:
    if array.shape != (n,):
        raise ExperienceError(
            f"{name} must have one entry for each evaluation, {n} in all, "
            f"but got the shape {array.shape}: pass one a row",
            rule="wrong-shape",
            field=name,
            value=array.shape,
        )
