"""Parts of an experience: some rows, some tasks, some metrics."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foretune._base.arrays import Ints
from foretune._base.names import quote_names, suggestion
from foretune.errors import ExperienceError
from foretune.experience.checks import check_metrics_have_values, check_names, reindex_starts
from foretune.experience.curves import CurveColumns
from foretune.experience.data import AnyExperience, Splits
from foretune.experience.trial import Status


def take_rows(experience: AnyExperience, rows: Ints) -> AnyExperience:
    """Return the evaluations at `rows`, which must be ascending by task."""
    curves = None if experience.curves is None else experience.curves.take(rows)
    return replace(map_columns(experience, lambda column: column[rows]), curves=curves)


def take_tasks(experience: AnyExperience, tasks: Iterable[str]) -> AnyExperience:
    """Return the evaluations of these tasks, which keep their order."""
    wanted = {experience.position(name) for name in tasks}
    return _take_positions(experience, sorted(wanted))


def drop_tasks(experience: AnyExperience, tasks: Iterable[str]) -> AnyExperience:
    """Return the evaluations of all other tasks."""
    unwanted = {experience.position(name) for name in tasks}
    left = [position for position in range(len(experience.tasks)) if position not in unwanted]
    return _take_positions(experience, left)


def select_metrics(experience: AnyExperience, names: Sequence[str]) -> AnyExperience:
    """Return only the metrics `names`, without the rows that measured none of them."""
    known = [metric.name for metric in experience.metrics]
    for name in names:
        if name not in known:
            raise ExperienceError(
                f"a metric must be one of the recorded ones, but got '{name}': "
                f"{suggestion(name, known)}",
                rule="unknown-metric",
                field="metric",
                value=name,
            )
    check_names("metric", names)
    picked = [known.index(name) for name in names]
    metrics = tuple(experience.metrics[i] for i in picked)
    values = experience.values[:, picked]
    check_metrics_have_values(metrics, values, experience.status)
    ended_well = experience.status == Status.DONE
    unmeasured = ended_well & ~np.isfinite(values).any(axis=1)
    curves = None if experience.curves is None else experience.curves.with_metrics(picked)
    chosen = replace(experience, metrics=metrics, values=values, curves=curves)
    return take_rows(chosen, np.flatnonzero(~unmeasured)) if unmeasured.any() else chosen


def compact(experience: AnyExperience) -> AnyExperience:
    """Drop the configurations that neither an evaluation nor an initial design has."""
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


def map_columns(
    experience: AnyExperience, change: Callable[[NDArray[Any]], NDArray[Any]]
) -> AnyExperience:
    """Apply one function to every column of the evaluations."""
    fidelity = experience.fidelity
    return replace(
        experience,
        task_index=change(experience.task_index),
        config_index=change(experience.config_index),
        values=change(experience.values),
        status=change(experience.status),
        seconds=change(experience.seconds),
        fidelity=None if fidelity is None else change(fidelity),
    )


def _take_positions(experience: AnyExperience, positions: list[int]) -> AnyExperience:
    counts = np.diff(experience.bounds)[positions]
    if counts.sum() == 0:
        raise ExperienceError(
            "a selection of tasks must hold at least one evaluation, but it is empty: "
            f"choose among {quote_names(experience.tasks)}",
            rule="empty-selection",
            field="tasks",
        )
    tasks = tuple(experience.tasks[position] for position in positions)
    rows = [experience.rows(name) for name in tasks]
    # Slices need no list of all row numbers, which would be as long as the longest column.
    left = map_columns(experience, lambda column: np.concatenate([column[row] for row in rows]))
    kept = set(tasks)
    curves = experience.curves
    if curves is not None:
        curves = CurveColumns.concat([curves.take(row) for row in rows])
    return replace(
        left,
        curves=curves,
        tasks=tasks,
        task_index=np.repeat(np.arange(len(tasks), dtype=np.int32), counts),
        meta_features={name: of for name, of in left.meta_features.items() if name in kept},
        splits=_restrict_splits(left.splits, kept),
        starts={name: of for name, of in left.starts.items() if name in kept},
    )


def _restrict_splits(splits: Splits, tasks: set[str]) -> Splits:
    """Keep only `tasks` in the splits, and only the splits that still name one."""
    left = {
        name: {part: tuple(t for t in of if t in tasks) for part, of in parts.items()}
        for name, parts in splits.items()
    }
    return {name: parts for name, parts in left.items() if any(parts.values())}
