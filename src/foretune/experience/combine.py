"""Appending evaluations to an experience, and merging two experiences."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foretune._base.names import quote_names, suggestion
from foretune.errors import ExperienceError
from foretune.experience.build import EvaluationColumns, from_columns, unique_configs
from foretune.experience.checks import Notes, reindex_starts
from foretune.experience.curves import CurveColumns, stack_curves
from foretune.experience.data import AnyExperience, ExperienceData, Splits
from foretune.experience.selection import take_rows
from foretune.experience.trial import Evaluation, Metric, status_of
from foretune.space import Encoded

ALL = slice(None)


def append(experience: AnyExperience, evaluations: Iterable[Evaluation]) -> AnyExperience:
    """Return `experience` followed by `evaluations`; a repeated measurement is a new row."""
    added = _check_evaluations(evaluations)
    if not added:
        return experience
    tasks = _union(experience.tasks, [each.task for each in added])
    positions = {name: position for position, name in enumerate(tasks)}
    names = [metric.name for metric in experience.metrics]
    encoded = experience.space.encode([each.config for each in added])
    before = replace(experience, tasks=tasks, configs=Encoded.concat([experience.configs, encoded]))
    after = replace(
        before,
        task_index=np.array([positions[each.task] for each in added], dtype=np.int32),
        config_index=np.arange(len(added), dtype=np.int32) + np.int32(len(experience.configs)),
        values=np.array([_values_of(each, experience.metrics) for each in added]),
        status=np.array([status_of(each.status) for each in added], dtype=np.int8),
        seconds=_numbers("seconds", [each.seconds for each in added]),
        fidelity=_fidelity_of(added),
        curves=stack_curves([each.curve for each in added], names),
    )
    return _concatenate(before, after, _notes_of(experience))


def merge(first: AnyExperience, second: ExperienceData) -> AnyExperience:
    """Return the rows of `first`, then the rows of `second` that `first` does not hold.

    Each space may have hyperparameters and choices that the other lacks: see `Space.union`.
    """
    order = _metric_order(first.metrics, second.metrics)
    space = first.space if first.space == second.space else first.space.union(second.space)
    table, moved = unique_configs(
        Encoded.concat([space.adopt(first.configs), space.adopt(second.configs)])
    )
    moved_first, moved_second = np.split(moved, [len(first.configs)])
    tasks = _union(first.tasks, second.tasks)
    ours = _reindex(first, tasks, table, moved_first)
    theirs = _reindex(
        replace(
            second,
            metrics=first.metrics,
            values=second.values[:, order],
            curves=None if second.curves is None else second.curves.with_metrics(order),
        ),
        tasks,
        table,
        moved_second,
    )
    held = np.zeros(len(second), dtype=np.bool_)
    # One task at a time: the keys of millions of rows would take much memory.
    for name in set(first.tasks) & set(second.tasks):
        rows = second.rows(name)
        held[rows] = np.isin(_row_keys(theirs, rows), _row_keys(ours, first.rows(name)))
    news = take_rows(theirs, np.flatnonzero(~held)) if held.any() else theirs
    return _concatenate(ours, news, _merge_annotations(ours, theirs))


def _reindex(
    experience: AnyExperience, tasks: tuple[str, ...], table: Encoded, moved: NDArray[np.int32]
) -> AnyExperience:
    """Return the same rows, with indices into a larger list of tasks and configurations.

    moved: the row of `table` that holds each configuration of the experience.
    """
    positions = {name: position for position, name in enumerate(tasks)}
    moved_task = np.array([positions[name] for name in experience.tasks], dtype=np.int32)
    return replace(
        experience,
        space=table.space,
        tasks=tasks,
        configs=table,
        task_index=moved_task[experience.task_index],
        config_index=moved[experience.config_index],
        starts=reindex_starts(experience.starts, moved),
    )


def _concatenate(first: AnyExperience, second: ExperienceData, notes: Notes) -> AnyExperience:
    """Return the rows of both, which share space, metrics, tasks and configurations."""
    fidelity = None
    if first.fidelity is not None or second.fidelity is not None:
        fidelity = np.concatenate([_fidelity(first, ALL), _fidelity(second, ALL)])
    columns = EvaluationColumns(
        task_index=np.concatenate([first.task_index, second.task_index]),
        config_index=np.concatenate([first.config_index, second.config_index]),
        values=np.concatenate([first.values, second.values]),
        status=np.concatenate([first.status, second.status]),
        seconds=np.concatenate([first.seconds, second.seconds]),
        fidelity=fidelity,
        curves=_concatenate_curves(first, second),
    )
    return from_columns(
        type(first), first.space, first.metrics, first.tasks, first.configs, columns, notes
    )


def _concatenate_curves(first: ExperienceData, second: ExperienceData) -> CurveColumns | None:
    if first.curves is None and second.curves is None:
        return None
    width = len(first.metrics)
    parts = [each.curves or CurveColumns.empty(len(each), width) for each in (first, second)]
    return CurveColumns.concat(parts)


def _row_keys(experience: ExperienceData, rows: slice) -> NDArray[Any]:
    """Return (n,) byte strings, equal exactly where configuration, status, fidelity and values are.

    The duration does not distinguish evaluations.
    """
    parts = np.column_stack(
        [
            experience.config_index[rows],
            experience.status[rows],
            _fidelity(experience, rows),
            experience.values[rows],
        ]
    ).astype(np.float64)
    # -0.0 and NaN get one bit pattern each.
    parts = np.ascontiguousarray(np.where(np.isnan(parts), np.nan, parts + 0.0))
    return parts.view(np.dtype((np.void, parts.itemsize * parts.shape[1])))[:, 0]


def _fidelity(experience: ExperienceData, rows: slice) -> NDArray[np.float32]:
    if experience.fidelity is None:
        return np.full(len(experience.status[rows]), np.nan, dtype=np.float32)
    return experience.fidelity[rows]


def _check_evaluations(evaluations: Any) -> list[Evaluation]:
    given = list(evaluations) if isinstance(evaluations, Iterable) else None
    if given is None or not all(isinstance(each, Evaluation) for each in given):
        raise ExperienceError(
            f"append takes a list of Evaluation, but got {evaluations!r}: "
            "write append([Evaluation(task, config, values)])",
            rule="not-evaluations",
            field="evaluations",
            value=evaluations,
        )
    return given


def _values_of(evaluation: Evaluation, metrics: Sequence[Metric]) -> list[float]:
    known = [metric.name for metric in metrics]
    if not isinstance(evaluation.values, Mapping):
        raise ExperienceError(
            f"the values of an evaluation must be a dict, but got {evaluation.values!r}: "
            f"write values={{'{known[0]}': number}}",
            rule="not-a-mapping",
            field="values",
            value=evaluation.values,
        )
    for name in evaluation.values:
        if name not in known:
            raise ExperienceError(
                f"an evaluation reports metrics of the experience, but got '{name}': "
                f"{suggestion(name, known)}",
                rule="unknown-metric",
                field="metric",
                value=name,
            )
    return [_number(name, evaluation.values.get(name, np.nan)) for name in known]


def _number(name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise ExperienceError(
            f"a measured value must be a number that fits a float, but '{name}' is "
            f"{value!r:.80}: give a number, or leave it out where it was not measured",
            rule="not-a-number",
            field=name,
            value=value,
        ) from error


def _numbers(name: str, numbers: Sequence[float | None]) -> NDArray[np.float32]:
    given = [np.nan if x is None else _number(name, x) for x in numbers]
    with np.errstate(over="ignore"):  # numbers beyond a short float become infinite
        return np.array(given, dtype=np.float32)


def _fidelity_of(evaluations: Sequence[Evaluation]) -> NDArray[np.float32] | None:
    if all(each.fidelity is None for each in evaluations):
        return None
    return _numbers("fidelity", [each.fidelity for each in evaluations])


def _metric_order(ours: Sequence[Metric], theirs: Sequence[Metric]) -> list[int]:
    """Return the position of each of our metrics among theirs."""
    names = [metric.name for metric in theirs]
    if sorted(names) != sorted(metric.name for metric in ours):
        raise ExperienceError(
            "experiences that are merged must have the same metrics, but got "
            f"{quote_names([metric.name for metric in ours])} and {quote_names(names)}: "
            "choose common ones with Experience.with_metrics",
            rule="different-metrics",
            field="metrics",
            value=names,
        )
    order = [names.index(metric.name) for metric in ours]
    for metric, position in zip(ours, order, strict=True):
        if metric.direction is not theirs[position].direction:
            raise ExperienceError(
                "experiences that are merged must agree on directions, but metric "
                f"'{metric.name}' is '{metric.direction}' in one and "
                f"'{theirs[position].direction}' in the other: import one of them again",
                rule="different-directions",
                field=metric.name,
            )
    return order


def _union(first: Sequence[str], second: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys([*first, *second]))


def _notes_of(experience: ExperienceData) -> Notes:
    return Notes(experience.meta_features, experience.splits, experience.starts)


def _merge_annotations(first: ExperienceData, second: ExperienceData) -> Notes:
    """Return the notes of both. If they disagree about a task, those of `first` win."""
    features = {
        task: {**second.meta_features.get(task, {}), **first.meta_features.get(task, {})}
        for task in _union(list(first.meta_features), second.meta_features)
    }
    starts = {
        task: {**second.starts.get(task, {}), **first.starts.get(task, {})}
        for task in _union(list(first.starts), second.starts)
    }
    return Notes(features, _merge_splits(first.splits, second.splits), starts)


def _merge_splits(first: Splits, second: Splits) -> Splits:
    for name in first:
        if name in second and dict(first[name]) != dict(second[name]):
            raise ExperienceError(
                f"experiences that are merged must agree on their splits, but '{name}' differs: "
                "rename it with Experience.with_splits",
                rule="different-splits",
                field=name,
            )
    return {**second, **first}
