"""Reading an experience from a pandas data frame, and writing it to one."""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from foretune._base.names import suggestion
from foretune.errors import ExperienceError
from foretune.experience.build import EvaluationColumns, from_columns
from foretune.experience.checks import Notes
from foretune.experience.data import METRIC_PREFIX, AnyExperience, ExperienceData
from foretune.experience.frame_curves import curve_lists, read_curve_lists
from foretune.experience.trial import FINAL_STATUSES, Direction, Metric
from foretune.space import Encoded, Space

CONFIG = "config:"


@dataclass(frozen=True, slots=True)
class FrameColumns:
    """The names of the columns of a frame."""

    task: str
    metrics: Mapping[str, Direction]
    config: str | None = None
    status: str | None = None
    seconds: str | None = None
    fidelity: str | None = None
    curves: str | None = None
    """The prefix of the columns of lists."""


def read_frame(
    kind: type[AnyExperience], space: Space, frame: pd.DataFrame, columns: FrameColumns
) -> AnyExperience:
    """Read one evaluation from each row; tasks are in the order of their first row."""
    _check_frame(frame)
    _check_metrics(columns.metrics)
    column = _column(frame, columns.task)
    if column.isna().any():
        raise ExperienceError(
            f"every row must name its task, but column '{columns.task}' is empty in "
            f"{int(column.isna().sum())} rows: fill or drop them",
            rule="task-missing",
            field=columns.task,
        )
    codes, names = pd.factorize(column.astype(str))
    values = [
        numbers_of(frame, _find_column(frame, METRIC_PREFIX, name)) for name in columns.metrics
    ]
    given = EvaluationColumns(
        task_index=codes,
        config_index=np.arange(len(frame)),
        values=np.column_stack(values) if values else np.empty((len(frame), 0)),
        status=None if columns.status is None else _status(frame, columns.status),
        seconds=None if columns.seconds is None else numbers_of(frame, columns.seconds),
        fidelity=None if columns.fidelity is None else numbers_of(frame, columns.fidelity),
        curves=None
        if columns.curves is None
        else read_curve_lists(frame, columns.curves, columns.metrics),
    )
    metrics = [Metric(name, way) for name, way in columns.metrics.items()]
    configs = _configs(space, frame, columns)
    tasks = [str(name) for name in names]
    return from_columns(kind, space, metrics, tasks, configs, given, Notes({}, {}, {}))


def to_frame(experience: ExperienceData) -> pd.DataFrame:
    """Return one row for each evaluation.

    A metric or a hyperparameter with the name of another column gets a prefix, and `read_frame`
    finds it by this prefix.
    """
    names = np.array(experience.tasks, dtype=object)
    labels = np.array([each.name for each in FINAL_STATUSES], dtype=object)
    own = {"status": labels[experience.status], "seconds": experience.seconds}
    if experience.fidelity is not None:
        own["fidelity"] = experience.fidelity
    metrics = {
        _with_prefix(METRIC_PREFIX, metric.name, {*own, "task"}): experience.values[:, column]
        for column, metric in enumerate(experience.metrics)
    }
    parameters = [parameter.name for parameter in experience.space.parameters]
    table = pd.DataFrame(experience.configs.dicts(), columns=parameters)
    hyperparameters = {
        _with_prefix(CONFIG, name, {*own, *metrics, "task"}): table[name].to_numpy()[
            experience.config_index
        ]
        for name in parameters
    }
    columns = {"task": names[experience.task_index], **hyperparameters, **metrics, **own}
    return pd.DataFrame({**columns, **curve_lists(experience)})


def _with_prefix(prefix: str, name: str, others: Collection[str]) -> str:
    return prefix + name if name in others else name


def _find_column(frame: pd.DataFrame, prefix: str, name: str) -> str:
    """Return the column of a metric or a hyperparameter, with its prefix if it has one."""
    return prefix + name if prefix + name in frame else name


def _check_frame(frame: Any) -> None:
    if not isinstance(frame, pd.DataFrame):
        raise ExperienceError(
            f"evaluations must stand in a pandas DataFrame, but got {type(frame).__name__}: write "
            "pd.DataFrame(rows)",
            rule="not-a-frame",
            field="frame",
            value=frame,
        )


def _check_metrics(metrics: Any) -> None:
    if not isinstance(metrics, Mapping):
        raise ExperienceError(
            f"metrics must be given with their directions, but got {metrics!r}: "
            "write metrics={'accuracy': 'max'}",
            rule="not-a-mapping",
            field="metrics",
            value=metrics,
        )


def _configs(space: Space, frame: pd.DataFrame, columns: FrameColumns) -> Encoded:
    if columns.config is None:
        held = {p.name: _find_column(frame, CONFIG, p.name) for p in space.parameters}
        present = {name: _column(frame, held[name]) for name in held if held[name] in frame}
        return space.from_columns(present, len(frame))
    return space.encode(
        [_parse_config(text, columns.config) for text in _column(frame, columns.config)]
    )


def _parse_config(text: Any, name: str) -> dict[str, Any]:
    try:
        config = json.loads(text)
    except (TypeError, ValueError):
        config = None
    if not isinstance(config, dict):
        raise ExperienceError(
            f"column '{name}' must hold one JSON object in each row, but got {text!r}: "
            'write configurations as {"name": value}',
            rule="not-a-config",
            field=name,
            value=text,
        )
    return config


def _column(frame: pd.DataFrame, name: str) -> "pd.Series[Any]":
    if name not in frame:
        known = [str(column) for column in frame.columns]
        raise ExperienceError(
            f"a named column must be in the table, but '{name}' is not: {suggestion(name, known)}",
            rule="unknown-column",
            field=name,
        )
    column = frame[name]
    if isinstance(column, pd.DataFrame):
        raise ExperienceError(
            f"a column must be the only one with its name, but {column.shape[1]} are "
            f"called '{name}': rename or drop the others",
            rule="repeated-column",
            field=name,
        )
    return column


def numbers_of(frame: pd.DataFrame, name: str) -> NDArray[np.float64]:
    """Return the numbers, or the seconds of durations, in a column."""
    column = _column(frame, name)
    if pd.api.types.is_timedelta64_dtype(column.dtype):
        column = column.dt.total_seconds()  # the unit of the numbers depends on their origin
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        raise ExperienceError(
            f"column '{name}' must hold numbers, but got points in time such as {column.iloc[0]}: "
            "name another, or the durations between them",
            rule="not-a-number",
            field=name,
        )
    numbers = pd.to_numeric(column, errors="coerce")
    wrong = column[numbers.isna() & column.notna()]
    if len(wrong):
        raise ExperienceError(
            f"column '{name}' must hold numbers, but got {wrong.iloc[0]!r}: correct or empty it",
            rule="not-a-number",
            field=name,
            value=wrong.iloc[0],
        )
    return numbers.to_numpy(dtype=np.float64, na_value=np.nan)


def _status(frame: pd.DataFrame, name: str) -> NDArray[np.int8]:
    """Read status numbers, or their names in any case."""
    known: dict[str, int] = {}
    for each in FINAL_STATUSES:
        known |= {each.name: each.value, str(each.value): each.value}
    column = _column(frame, name)
    # pandas may read 0 as 0.0 if the column has a gap.
    texts = column.astype(str).str.strip().str.upper().str.removesuffix(".0")
    found = texts.map(known)
    if found.isna().any():
        raise ExperienceError(
            f"column '{name}' must hold one of {', '.join(each.name for each in FINAL_STATUSES)}, "
            f"but got {column[found.isna()].iloc[0]!r}: rename it",
            rule="unknown-status",
            field=name,
            value=column[found.isna()].iloc[0],
        )
    return found.to_numpy().astype(np.int8)
