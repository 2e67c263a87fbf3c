"""From columns or matrices to a checked experience."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from foretune._base.arrays import Bools, Floats, Ints
from foretune._base.names import check_writable, quote_names, suggestion
from foretune.errors import ExperienceError
from foretune.experience.annotations import Notes, annotate, check_starts, reindex_starts
from foretune.experience.experience import Experience, Metric, Status
from foretune.space import Encoded, Space


@dataclass(frozen=True, slots=True)
class EvaluationColumns:
    """N evaluations as they come, in any order."""

    task_index: ArrayLike
    config_index: ArrayLike
    values: ArrayLike
    """(N, number of metrics), or (N,) for one metric."""
    status: ArrayLike | None = None
    seconds: ArrayLike | None = None
    fidelity: ArrayLike | None = None


def from_columns(
    space: Space,
    metrics: Sequence[Metric],
    tasks: Sequence[str],
    configs: Encoded,
    columns: EvaluationColumns,
    notes: Notes,
) -> Experience:
    """The one way into an `Experience`: check, merge equal configurations, sort by task."""
    n = np.size(columns.task_index)
    if n == 0:
        raise ExperienceError(
            "an experience needs at least one evaluation, but the table is empty: "
            "check the source and the columns that were chosen"
        )
    _check_names("metric", [metric.name for metric in metrics])
    _check_names("task", tasks)
    if configs.space != space:
        raise ExperienceError(
            "configurations must be encoded in the experience's own space, but they come from "
            "another one: encode them with this space"
        )
    task_index = _index(columns.task_index, len(tasks), "task", n)
    config_index = _index(columns.config_index, len(configs), "configuration", n)
    values = _values(columns.values, n, len(metrics))
    status = _status(columns.status, values)
    check_metrics_have_values(metrics, values, status)
    table, moved = unique_configs(configs)
    built = Experience(
        space=space,
        metrics=tuple(metrics),
        tasks=tuple(tasks),
        configs=table,
        task_index=task_index,
        config_index=config_index if table is configs else moved[config_index],
        values=values,
        status=status,
        seconds=_numbers(columns.seconds, n, "seconds"),
        fidelity=None if columns.fidelity is None else _numbers(columns.fidelity, n, "fidelity"),
    )
    starts = check_starts(notes.starts, tasks, len(configs))
    return annotate(_sort_rows(built), replace(notes, starts=reindex_starts(starts, moved)))


def copy_arrays(experience: Experience) -> Experience:
    """The same evaluations in arrays of their own, which nobody else can change."""
    fidelity = experience.fidelity
    return replace(
        experience,
        task_index=experience.task_index.copy(),
        config_index=experience.config_index.copy(),
        values=experience.values.copy(),
        status=experience.status.copy(),
        seconds=experience.seconds.copy(),
        fidelity=None if fidelity is None else fidelity.copy(),
    )


def columns_of_matrices(
    metrics: Sequence[Metric],
    matrices: Mapping[str, NDArray[np.floating[Any]]],
    shape: tuple[int, int],
    *,
    seconds: NDArray[np.floating[Any]] | None,
    failed: Bools | None,
) -> EvaluationColumns:
    """The recorded entries of (tasks, configurations) matrices, task by task.

    Filled one task at a time into arrays of the final size, so that no temporary array is as
    large as a matrix.
    """
    layers = [_matrix(matrices, metric.name, shape) for metric in metrics]
    for name, extra in (("seconds", seconds), ("failed", failed)):
        if extra is not None:
            _check_shape(name, extra, shape)
    recorded = _has_record(layers, shape, failed)
    counts = np.count_nonzero(recorded, axis=1)
    n = int(counts.sum())
    task_index = np.repeat(np.arange(shape[0], dtype=np.int32), counts)
    config_index = np.empty(n, dtype=np.int32)
    values = np.empty((n, len(layers)))
    status = np.zeros(n, dtype=np.int8)
    took = None if seconds is None else np.empty(n, dtype=np.float32)
    end = 0
    for task, count in enumerate(counts):
        rows = slice(end, end := end + int(count))
        picked = np.flatnonzero(recorded[task])
        config_index[rows] = picked
        for column, layer in enumerate(layers):
            values[rows, column] = layer[task, picked]
        if took is not None and seconds is not None:
            took[rows] = seconds[task, picked]
        if failed is not None:
            status[rows] = np.where(failed[task, picked], Status.FAILED, Status.DONE)
    return EvaluationColumns(task_index, config_index, values, status, took)


def unique_configs(configs: Encoded) -> tuple[Encoded, NDArray[np.int32]]:
    """Each configuration once, in the order of first occurrence, and where each row went.

    Where all rows differ, `configs` itself comes back.
    """
    first, index = configs.unique()
    if len(first) == len(configs):
        return configs, index
    return configs.take(first), index


def compact(experience: Experience) -> Experience:
    """Without the configurations that no evaluation and no initial design has."""
    used = np.zeros(len(experience.configs), dtype=np.bool_)
    used[experience.config_index] = True
    for designs in experience.starts.values():
        for indices in designs.values():
            used[list(indices)] = True
    if used.all():
        return experience
    moved = np.cumsum(used, dtype=np.int32) - np.int32(1)
    return replace(
        experience,
        configs=experience.configs.take(np.flatnonzero(used)),
        config_index=moved[experience.config_index],
        starts=reindex_starts(experience.starts, moved),
    )


def take_rows(experience: Experience, rows: Ints) -> Experience:
    """The evaluations at `rows`, which must be ascending by task."""
    fidelity = experience.fidelity
    return replace(
        experience,
        task_index=experience.task_index[rows],
        config_index=experience.config_index[rows],
        values=experience.values[rows],
        status=experience.status[rows],
        seconds=experience.seconds[rows],
        fidelity=None if fidelity is None else fidelity[rows],
    )


def select_metrics(experience: Experience, names: Sequence[str]) -> Experience:
    """Only the metrics `names`, without the rows that measured none of them."""
    known = [metric.name for metric in experience.metrics]
    for name in names:
        if name not in known:
            raise ExperienceError(
                f"a metric must be one of the recorded ones, but got '{name}': "
                f"{suggestion(name, known)}"
            )
    _check_names("metric", names)
    picked = [known.index(name) for name in names]
    metrics = tuple(experience.metrics[i] for i in picked)
    values = experience.values[:, picked]
    check_metrics_have_values(metrics, values, experience.status)
    ended_well = experience.status == Status.DONE
    unmeasured = ended_well & ~np.isfinite(values).any(axis=1)
    chosen = replace(experience, metrics=metrics, values=values)
    return take_rows(chosen, np.flatnonzero(~unmeasured)) if unmeasured.any() else chosen


def check_metrics_have_values(
    metrics: Sequence[Metric], values: Floats, status: NDArray[np.int8]
) -> None:
    """Refuse a metric that no successful evaluation has measured."""
    ended_well = status == Status.DONE
    for column, metric in enumerate(metrics):
        if not np.any(np.isfinite(values[:, column]) & ended_well):
            raise ExperienceError(
                f"a metric needs at least one finite value of a successful evaluation, but "
                f"'{metric.name}' has none in {len(values)} rows: check its column or leave it out"
            )


def _sort_rows(experience: Experience) -> Experience:
    index = experience.task_index
    if np.all(index[1:] >= index[:-1]):
        return experience
    return take_rows(experience, np.argsort(index, kind="stable"))


def _check_names(kind: str, names: Sequence[str]) -> None:
    if len(names) == 0:
        raise ExperienceError(f"an experience needs at least one {kind}, but got none: name one")
    seen: set[str] = set()
    for name in names:
        if not isinstance(name, str) or not name:
            raise ExperienceError(
                f"the name of a {kind} must be a text that is not empty, but got {name!r}: "
                "give it a name"
            )
        check_writable(kind, name)
        if name in seen:
            raise ExperienceError(
                f"the names of {kind}s must differ, but '{name}' comes twice: rename one of them"
            )
        seen.add(name)


def _index(index: ArrayLike, size: int, what: str, n: int) -> NDArray[np.int32]:
    array = np.asarray(index)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ExperienceError(
            f"the {what} of each evaluation must be given as a list of whole numbers, but got an "
            f"array of type {array.dtype} and shape {array.shape}: pass positions"
        )
    _check_length(f"{what} index", array, n)
    low, high = array.min(), array.max()
    if low < 0 or high >= size:
        wrong = low if low < 0 else high
        raise ExperienceError(
            f"the {what} index must lie between 0 and {size - 1}, but got {wrong}: "
            f"check the list of {what}s"
        )
    return array.astype(np.int32, copy=False)


def _values(values: ArrayLike, n: int, width: int) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim == 1:
        array = array[:, None]
    if array.shape != (n, width):
        raise ExperienceError(
            f"values must have one row an evaluation and one column a metric, {(n, width)}, "
            f"but got the shape {array.shape}: pass them so"
        )
    return array


def _status(status: ArrayLike | None, values: Floats) -> NDArray[np.int8]:
    measured = np.isfinite(values).any(axis=1)
    if status is None:
        given = np.zeros(len(values), dtype=np.int8)
    else:
        array = np.asarray(status)
        _check_length("status", array, len(values))
        known = np.isin(array, [int(each) for each in Status])
        if not known.all():
            raise ExperienceError(
                "a status must be 0 (done), 1 (failed) or 2 (timeout), "
                f"but got {array[~known][0]!r}: use foretune.experience.Status"
            )
        given = array.astype(np.int8, copy=False)
    unmeasured = (given == Status.DONE) & ~measured
    return np.where(unmeasured, np.int8(Status.FAILED), given) if unmeasured.any() else given


def _numbers(numbers: ArrayLike | None, n: int, name: str) -> NDArray[np.float32]:
    if numbers is None:
        return np.full(n, np.nan, dtype=np.float32)
    array = np.asarray(numbers, dtype=np.float32)
    _check_length(name, array, n)
    return array


def _check_length(name: str, array: NDArray[Any], n: int) -> None:
    if array.shape != (n,):
        raise ExperienceError(
            f"{name} must have one entry an evaluation, {n} in all, "
            f"but got the shape {array.shape}: pass one a row"
        )


def _has_record(
    layers: Sequence[NDArray[np.floating[Any]]], shape: tuple[int, int], failed: Bools | None
) -> Bools:
    """(tasks, configurations), True where any metric has a value or the evaluation failed."""
    recorded = np.zeros(shape, dtype=np.bool_) if failed is None else failed.astype(np.bool_)
    for layer in layers:
        for task in range(shape[0]):
            recorded[task] |= ~np.isnan(layer[task])
    return recorded


def _matrix(
    matrices: Mapping[str, NDArray[np.floating[Any]]], name: str, shape: tuple[int, int]
) -> NDArray[np.floating[Any]]:
    if name not in matrices:
        raise ExperienceError(
            f"each metric needs a matrix, but '{name}' has none among "
            f"{quote_names(list(matrices))}: add it"
        )
    _check_shape(name, matrices[name], shape)
    return matrices[name]


def _check_shape(name: str, matrix: NDArray[Any], shape: tuple[int, int]) -> None:
    if matrix.shape != shape:
        raise ExperienceError(
            f"the matrix '{name}' must have one row a task and one column a configuration, "
            f"{shape}, but got {matrix.shape}: transpose or cut it"
        )
