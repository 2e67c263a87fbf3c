"""Own experience grows: the same pipeline on the same table is one evaluation, the newest."""

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from foretune.arrays import Bools, Ints
from foretune.experience import Experience, Metric, Status
from foretune.experience.build import take_rows

MARK = "@"
"""Between the name of a table and the fingerprint of its content."""
FINGERPRINT_DIGITS = 16
_FINGERPRINT = re.compile(rf"{MARK}[0-9a-f]{{{FINGERPRINT_DIGITS}}}\Z")
"""Nothing else after the mark is one: `credit@2023` and `adult@2023` are different tables."""


def identity(task: str) -> str:
    """What makes two tasks the same: the fingerprint of their content, or else their name."""
    found = _FINGERPRINT.search(task)
    return task if found is None else found.group()


def plain_name(task: str) -> str:
    """The name of a task without the fingerprint of its content."""
    return _FINGERPRINT.sub("", task)


def joined(first: Experience, second: Experience) -> Experience:
    """The evaluations of both; of a task and configuration that both have, the newer one's.

    Metrics of either are kept. A task that was renamed keeps its first name.
    """
    metrics = tuple({m.name: m for m in (*first.metrics, *second.metrics)}.values())
    second = _renamed(second, {identity(task): task for task in first.tasks})
    merged = _measured(first, metrics).merge(_measured(second, metrics))
    return _newest(merged)


def _measured(experience: Experience, metrics: Sequence[Metric]) -> Experience:
    """The same rows with a column for each of `metrics`, NaN where it was not measured."""
    names = [metric.name for metric in experience.metrics]
    values = np.full((len(experience), len(metrics)), np.nan)
    for column, metric in enumerate(metrics):
        if metric.name in names:
            values[:, column] = experience.values[:, names.index(metric.name)]
    return replace(experience, metrics=tuple(metrics), values=values, splits={}, starts={})


def _renamed(experience: Experience, known: dict[str, str]) -> Experience:
    names = {task: known.get(identity(task), task) for task in experience.tasks}
    features = {names[task]: of for task, of in experience.meta_features.items()}
    tasks = tuple(names[task] for task in experience.tasks)
    return replace(experience, tasks=tasks, meta_features=features)


def _newest(experience: Experience) -> Experience:
    """Each task and configuration once, with the newest value of every metric.

    Rows of one task are in the order they were recorded. A success counts more than a failure.
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
    """(size,): the last row of each group that counts, or -1."""
    last = np.full(size, -1, dtype=np.int64)
    rows = np.flatnonzero(counts)
    np.maximum.at(last, group[rows], rows)
    return last
