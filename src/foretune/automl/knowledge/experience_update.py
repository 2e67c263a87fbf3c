"""Adds evaluations to the user's experience; the newest one of a pipeline on a table counts."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from foretune._base.arrays import Bools, Ints
from foretune.errors import ExperienceError
from foretune.experience import Experience, Metric, Status
from foretune.experience.selection import take_rows
from foretune.tables import task_identity


class DirectionError(ExperienceError):
    """The same metric has different directions in two experiences."""


def merge_newest(first: Experience, second: Experience) -> Experience:
    """Merge the evaluations; if both have a task and configuration, the newer evaluation counts.

    The metrics of both are kept. A task that was renamed keeps its first name.
    """
    known = {metric.name: metric for metric in first.metrics}
    for metric in second.metrics:
        before = known.setdefault(metric.name, metric)
        if before != metric:
            raise DirectionError(
                "evaluations can be joined only if each metric has one direction, but "
                f"'{metric.name}' is '{before.direction}' in what is known and "
                f"'{metric.direction}' in what is added: correct the direction of the wrong one",
                rule="metric-direction",
                field=metric.name,
            )
    metrics = tuple(known.values())
    second = _unify_task_names(second, {task_identity(task): task for task in first.tasks})
    merged = _align_metrics(first, metrics).merge(_align_metrics(second, metrics))
    return _newest(merged)


def common_first(experience: Experience) -> Experience:
    """Return the same evaluations with the metrics of the most tasks first.

    If the user names no metric, the first one is used, so it must be one that most tasks have.
    """
    done = np.isfinite(experience.values) & (experience.status == Status.DONE)[:, None]
    tasks = np.array([len(np.unique(experience.task_index[rows])) for rows in done.T])
    order = np.argsort(-tasks, kind="stable")
    metrics = tuple(experience.metrics[column] for column in order)
    return replace(experience, metrics=metrics, values=experience.values[:, order])


def _align_metrics(experience: Experience, metrics: Sequence[Metric]) -> Experience:
    """Return the same rows with a column for each of `metrics`, NaN if it was not measured."""
    names = [metric.name for metric in experience.metrics]
    values = np.full((len(experience), len(metrics)), np.nan)
    for column, metric in enumerate(metrics):
        if metric.name in names:
            values[:, column] = experience.values[:, names.index(metric.name)]
    return replace(experience, metrics=tuple(metrics), values=values, splits={}, starts={})


def _unify_task_names(experience: Experience, known: dict[str, str]) -> Experience:
    names = {task: known.get(task_identity(task), task) for task in experience.tasks}
    features = {names[task]: of for task, of in experience.meta_features.items()}
    tasks = tuple(names[task] for task in experience.tasks)
    return replace(experience, tasks=tasks, meta_features=features)


def _newest(experience: Experience) -> Experience:
    """Return each task and configuration once, with the newest value of every metric.

    The rows of one task keep their order. A success counts more than a failure.
    """
    pairs = experience.task_index.astype(np.int64) * len(experience.configs)
    pairs = pairs + experience.config_index
    done = experience.status == Status.DONE
    distinct, group = np.unique(pairs, return_inverse=True)
    every = _last(group, np.ones(len(group), dtype=bool), len(distinct))
    successes = _last(group, done, len(distinct))
    rows = np.where(successes >= 0, successes, every)
    values = np.full((len(distinct), len(experience.metrics)), np.nan)
    for column in range(values.shape[1]):
        newest = _last(group, done & np.isfinite(experience.values[:, column]), len(distinct))
        known = newest >= 0
        values[known, column] = experience.values[newest[known], column]
    order = np.argsort(rows, kind="stable")
    return replace(take_rows(experience, rows[order]), values=values[order])


def _last(group: Ints, counts: Bools, size: int) -> Ints:
    """Return the last row (size,) of each group where `counts` is true, or -1."""
    last = np.full(size, -1, dtype=np.int64)
    rows = np.flatnonzero(counts)
    np.maximum.at(last, group[rows], rows)
    return last
