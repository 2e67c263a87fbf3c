"""Checks of the columns and the notes from which an experience is built."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from foretune._base.arrays import Floats
from foretune._base.names import check_writable, quote_names, suggestion
from foretune.errors import ExperienceError
from foretune.experience.curves import CurveColumns
from foretune.experience.data import AnyExperience, MetaFeatures, Splits, Starts
from foretune.experience.trial import FINAL_STATUSES, Metric, Status

SPLIT_PARTS = ("train", "validation", "test")


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


@dataclass(frozen=True, slots=True)
class Notes:
    """Everything that an experience holds beside the evaluations."""

    meta_features: MetaFeatures
    splits: Splits
    starts: Starts


def annotate(experience: AnyExperience, notes: Notes) -> AnyExperience:
    """Return the experience with these notes; refuse notes on tasks that it does not have."""
    return replace(
        experience,
        meta_features=_check_meta_features(notes.meta_features, experience.tasks),
        splits=_check_splits(notes.splits, experience.tasks),
        starts=check_starts(notes.starts, experience.tasks, len(experience.configs)),
    )


def _check_tasks(kind: str, names: Sequence[str], tasks: Sequence[str], field: str) -> None:
    known = frozenset(tasks)
    for name in names:
        if name not in known:
            raise ExperienceError(
                f"{kind} must name recorded tasks, but got '{name}': {suggestion(name, tasks)}",
                rule="unknown-task",
                field=field,
                value=name,
            )


def _check_meta_features(given: MetaFeatures, tasks: Sequence[str]) -> MetaFeatures:
    _check_tasks("meta-features", list(given), tasks, "meta_features")
    return {
        task: {name: _meta_feature(task, name, value) for name, value in features.items()}
        for task, features in given.items()
    }


def _meta_feature(task: str, name: str, given: Any) -> float:
    try:
        value = float(given)
    except (TypeError, ValueError, OverflowError):
        value = math.inf
    if math.isinf(value):
        raise ExperienceError(
            "a meta-feature must be a finite number, or NaN if it is unknown, but "
            f"'{name}' of task '{task}' is {given!r:.80}: replace it",
            rule="not-a-meta-feature",
            field=name,
            value=given,
        )
    return value


def _check_splits(given: Splits, tasks: Sequence[str]) -> Splits:
    for name, parts in given.items():
        for part in parts:
            if part not in SPLIT_PARTS:
                raise ExperienceError(
                    f"the parts of a split are {quote_names(SPLIT_PARTS)}, but split '{name}' has "
                    f"'{part}': rename it",
                    rule="unknown-split-part",
                    field=name,
                    value=part,
                )
        members = [task for part in parts.values() for task in part]
        _check_tasks(f"the split '{name}'", members, tasks, name)
        if len(set(members)) < len(members):
            twice = next(task for task in members if members.count(task) > 1)
            raise ExperienceError(
                f"a split holds a task once, but '{name}' has '{twice}' twice: remove one",
                rule="repeated-task",
                field=name,
                value=twice,
            )
    return {
        name: {part: tuple(parts.get(part, ())) for part in SPLIT_PARTS}
        for name, parts in given.items()
    }


def check_starts(given: Starts, tasks: Sequence[str], size: int) -> Starts:
    """Return the initial designs; refuse unknown tasks and indices of configurations."""
    _check_tasks("initial designs", list(given), tasks, "starts")
    for task, designs in given.items():
        for name, indices in designs.items():
            wrong = [index for index in indices if not 0 <= index < size]
            if wrong:
                raise ExperienceError(
                    f"an initial design holds configuration indices between 0 and {size - 1}, but "
                    f"design '{name}' of task '{task}' has {wrong[0]}: check the list",
                    rule="index-outside",
                    field=name,
                    value=wrong[0],
                )
    return {
        task: {name: tuple(int(index) for index in of) for name, of in designs.items()}
        for task, designs in given.items()
    }


def reindex_starts(starts: Starts, moved: NDArray[np.int32]) -> Starts:
    """Return the initial designs after configuration i went to row `moved[i]`."""
    return {
        task: {name: tuple(int(moved[i]) for i in of) for name, of in designs.items()}
        for task, designs in starts.items()
    }
