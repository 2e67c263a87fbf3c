"""Any table of evaluations: CSV or Parquet, one evaluation a row."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from foretune.errors import ExperienceError
from foretune.experience import Direction, Experience
from foretune.experience.importers.archive import existing
from foretune.experience.importers.inference import infer_space
from foretune.experience.importers.tables import need_columns, read_table
from foretune.progress import SILENT, Progress
from foretune.space import Space


def read(
    source: Path | str,
    *,
    task: str,
    values: Mapping[str, Direction | str],
    space: Path | str | None = None,
    config_column: str | None = None,
    status: str | None = None,
    seconds: str | None = None,
    progress: Progress = SILENT,
) -> Experience:
    """The evaluations in the rows of the CSV (also packed) or Parquet file `source`.

    task: the column that names the task.
    values: the metrics' columns, each with "min" or "max".
    space: a JSON file of the search space; without it the space is inferred from the values.
    config_column: the column that holds whole configurations as JSON objects. Without it each
        hyperparameter has a column of its name; without `space` too, every column that has no
        other meaning is taken for a hyperparameter.
    status, seconds: columns with the outcome (DONE, FAILED, TIMEOUT) and the run time.
    """
    if not values:
        raise ExperienceError("a table needs at least one metric, but no value column was named")
    metrics = {column: _direction(column, given) for column, given in values.items()}
    progress.start("reading the table", None)
    frame = read_table(source)
    named = [task, *metrics, *(c for c in (config_column, status, seconds) if c is not None)]
    need_columns(frame, named, source)
    if space is not None:
        known = _space_of(space)
    else:
        frame, known = _with_inferred_space(frame, named, config_column, source)
        config_column = None
    experience = Experience.from_frame(
        known,
        frame,
        task=task,
        metrics=metrics,
        config_column=config_column,
        status=status,
        seconds=seconds,
    )
    progress.stop()
    return experience


def _direction(column: str, given: Direction | str) -> Direction:
    try:
        return Direction(given)
    except ValueError:
        raise ExperienceError(
            f"a metric must be minimised or maximised, but '{column}' got '{given}': "
            "write min or max"
        ) from None


def _space_of(path: Path | str) -> Space:
    return Space.from_json(existing(path).read_text(encoding="utf-8"))


def _with_inferred_space(
    frame: pd.DataFrame,
    named: list[str],
    config_column: str | None,
    source: Path | str,
) -> tuple[pd.DataFrame, Space]:
    """The frame with one column a hyperparameter, and the space of these columns."""
    if config_column is not None:
        columns = _columns_of_json(frame[config_column].tolist(), config_column)
    else:
        columns = {str(c): _cells(frame[c]) for c in frame.columns if c not in named}
    taken = [name for name in columns if name in named]
    if taken:
        raise ExperienceError(
            f"a hyperparameter may not bear the name of another column, but '{taken[0]}' is "
            "both: rename that column"
        )
    space = Space.of(infer_space(columns, Path(source).name.split(".")[0]))
    expanded = pd.DataFrame(columns, index=frame.index, dtype=object)
    return pd.concat([frame[named], expanded], axis=1), space


def _columns_of_json(cells: list[Any], column: str) -> dict[str, list[Any]]:
    """One column a hyperparameter, None where a configuration does not name it."""
    configs = [_config(cell, row, column) for row, cell in enumerate(cells)]
    names = dict.fromkeys(name for config in configs for name in config)
    return {name: [config.get(name) for config in configs] for name in names}


def _config(cell: Any, row: int, column: str) -> dict[str, Any]:
    try:
        config = json.loads(cell)
    except (TypeError, ValueError):
        config = None
    if not isinstance(config, dict):
        raise ExperienceError(
            f"the column '{column}' must hold JSON objects, but row {row} holds {cell!r}"
        )
    return config


def _cells(column: "pd.Series[Any]") -> list[Any]:
    """The cells as Python values, None where empty.

    A column of integers with gaps comes out of CSV as floats; it is turned back.
    """
    present = column.dropna()
    gaps = len(present) < len(column)
    if gaps and pd.api.types.is_float_dtype(column.dtype) and (present % 1 == 0).all():
        present = present.astype("int64")
    filled = dict(zip(present.index, present.tolist(), strict=True))
    return [filled.get(row) for row in column.index]
