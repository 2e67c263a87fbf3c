"""Building a checked experience from columns or matrices."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from foretune._base.arrays import Bools
from foretune._base.names import quote_names
from foretune.errors import ExperienceError
from foretune.experience.checks import (
    Notes,
    annotate,
    check_curves,
    check_metrics_have_values,
    check_names,
    check_starts,
    read_index,
    read_numbers,
    read_status,
    read_values,
    reindex_starts,
)
from foretune.experience.curves import CurveColumns
from foretune.experience.data import AnyExperience
from foretune.experience.selection import map_columns, take_rows
from foretune.experience.trial import Metric, Status
from foretune.space import Encoded, Space


@dataclass(frozen=True, slots=True)
class EvaluationColumns:
    """The columns of N evaluations, in any order."""

    task_index: ArrayLike
    config_index: ArrayLike
    values: ArrayLike
    """(N, number of metrics), or (N,) for one metric."""
    status: ArrayLike | None = None
    seconds: ArrayLike | None = None
    fidelity: ArrayLike | None = None
    curves: CurveColumns | None = None


def from_columns(
    kind: type[AnyExperience],
    space: Space,
    metrics: Sequence[Metric],
    tasks: Sequence[str],
    configs: Encoded,
    columns: EvaluationColumns,
    notes: Notes,
) -> AnyExperience:
    """Build an experience: check the columns, merge equal configurations, sort rows by task.

    Every experience is built here.
    """
    n = np.size(columns.task_index)
    if n == 0:
        raise ExperienceError(
            "an experience needs at least one evaluation, but the table is empty: "
            "check the source and the columns that were chosen",
            rule="no-evaluations",
        )
    check_names("metric", [metric.name for metric in metrics])
    check_names("task", tasks)
    if configs.space != space:
        raise ExperienceError(
            "configurations must be encoded in the experience's own space, but they come from "
            "another one: encode them with this space",
            rule="another-space",
            field="configs",
        )
    task_index = read_index(columns.task_index, len(tasks), "task", n)
    config_index = read_index(columns.config_index, len(configs), "configuration", n)
    values = read_values(columns.values, n, len(metrics))
    status = read_status(columns.status, values)
    check_metrics_have_values(metrics, values, status)
    table, moved = unique_configs(configs)
    built = kind(
        space=space,
        metrics=tuple(metrics),
        tasks=tuple(tasks),
        configs=table,
        task_index=task_index,
        config_index=config_index if table is configs else moved[config_index],
        values=values,
        status=status,
        seconds=read_numbers(columns.seconds, n, "seconds"),
        fidelity=None
        if columns.fidelity is None
        else read_numbers(columns.fidelity, n, "fidelity"),
        curves=None if columns.curves is None else check_curves(columns.curves, n, len(metrics)),
    )
    starts = check_starts(notes.starts, tasks, len(configs))
    return annotate(_sort_rows(built), replace(notes, starts=reindex_starts(starts, moved)))


def copy_columns(experience: AnyExperience) -> AnyExperience:
    """Return the same evaluations in arrays of their own, which nobody else can change."""
    return map_columns(experience, np.copy)


def columns_of_matrices(
    metrics: Sequence[Metric],
    matrices: Mapping[str, NDArray[np.floating[Any]]],
    shape: tuple[int, int],
    *,
    seconds: NDArray[np.floating[Any]] | None,
    failed: Bools | None,
) -> EvaluationColumns:
    """Return the recorded entries of (tasks, configurations) matrices, task by task.

    Arrays of the final size are filled one task at a time, so that no temporary array is as
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
    """Return each configuration once, in the order of first occurrence, and the place of each row.

    If all rows differ, `configs` itself is returned.
    """
    first, index = configs.unique()
    if len(first) == len(configs):
        return configs, index
    return configs.take(first), index


def _sort_rows(experience: AnyExperience) -> AnyExperience:
    index = experience.task_index
    if np.all(index[1:] >= index[:-1]):
        return experience
    return take_rows(experience, np.argsort(index, kind="stable"))


def _has_record(
    layers: Sequence[NDArray[np.floating[Any]]], shape: tuple[int, int], failed: Bools | None
) -> Bools:
    """Return (tasks, configurations), True where a metric has a value or the evaluation failed."""
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
            f"{quote_names(list(matrices))}: add it",
            rule="matrix-missing",
            field=name,
        )
    _check_shape(name, matrices[name], shape)
    return matrices[name]


def _check_shape(name: str, matrix: NDArray[Any], shape: tuple[int, int]) -> None:
    if matrix.shape != shape:
        raise ExperienceError(
            f"the matrix '{name}' must have one row for each task and one column for each "
            f"configuration, {shape}, but got {matrix.shape}: transpose or cut it",
            rule="wrong-shape",
            field=name,
            value=matrix.shape,
        )
