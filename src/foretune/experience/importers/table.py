"""Any table of evaluations: CSV or Parquet, one evaluation a row."""

import json
import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from foretune.errors import ExperienceError, ForetuneWarning
from foretune.experience import Experience
from foretune.experience.importers.archive import existing
from foretune.experience.importers.inference import explain_missing, infer_space
from foretune.experience.importers.registry import TableColumns, direction_of
from foretune.experience.importers.tables import WORDS, need_columns, read_table, with_words
from foretune.progress import SILENT, Progress
from foretune.space import Space
from foretune.space.parameters import LARGEST_EXACT_INT

UNNAMED = re.compile(r"Unnamed: \d+")
"""What pandas calls a column without a name."""


def read(source: Path | str, *, columns: TableColumns, progress: Progress = SILENT) -> Experience:
    """The evaluations in the rows of the CSV (also packed) or Parquet file `source`.

    Where `columns` names neither a space nor a column of configurations, every column that has no
    other meaning is taken for a hyperparameter. In CSV the words None and null are a gap where the
    space, or another column, explains it or where the column holds numbers; else they are a choice.
    """
    if columns.task is None or not columns.values:
        raise ExperienceError(
            "a table needs a column that names the task and at least one metric, but "
            f"{'no task' if columns.task is None else 'no value'} column was named"
        )
    metrics = {column: direction_of(column, given) for column, given in columns.values.items()}
    _check_meanings(columns)
    frame = read_table(source, progress, texts=[columns.task])
    optional = (columns.config_column, columns.status, columns.seconds)
    named = [columns.task, *metrics, *(name for name in optional if name is not None)]
    need_columns(frame, named, source)
    config_column = columns.config_column
    if columns.space is not None:
        space = Space.from_json(
            existing(columns.space).read_text(encoding="utf-8", errors="replace")
        )
        frame = with_words(frame, source, _with_word_choices(space, frame))
    else:
        frame, space = _with_inferred_space(frame, named, config_column, source)
        config_column = None
    return Experience.from_frame(
        space,
        frame,
        task=columns.task,
        metrics=metrics,
        config_column=config_column,
        status=columns.status,
        seconds=columns.seconds,
    )


def _check_meanings(columns: TableColumns) -> None:
    """Refuse a column that is named for two things."""
    named = [
        ("the task", columns.task),
        *(("a metric", column) for column in columns.values),
        ("the configuration", columns.config_column),
        ("the outcome", columns.status),
        ("the run time", columns.seconds),
    ]
    meanings: dict[str, str] = {}
    for meaning, column in named:
        if column in meanings:
            raise ExperienceError(
                f"a column has one meaning, but '{column}' was named as {meanings[column]} and as "
                f"{meaning}: name another, or copy the column under another name"
            )
        if column is not None:
            meanings[column] = meaning


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
        meant = [c for c in frame.columns if c not in named and not _is_no_column(frame, c)]
        columns = {str(c): _cells(frame[c]) for c in meant}
        doubtful = _texts_with_unexplained_gaps(columns)
        worded = with_words(frame, source, doubtful)
        columns |= {name: _cells(worded[name]) for name in doubtful}
    taken = [name for name in columns if name in named]
    if taken:
        raise ExperienceError(
            f"a hyperparameter may not bear the name of another column, but '{taken[0]}' is "
            "both: rename that column"
        )
    space = Space.of(infer_space(columns, Path(source).name.split(".")[0]))
    expanded = pd.DataFrame(columns, index=frame.index, dtype=object)
    return pd.concat([frame[named], expanded], axis=1), space


def _is_no_column(frame: pd.DataFrame, name: str) -> bool:
    """Whether a column without a name is empty, or numbers the rows as pandas writes it first."""
    if not UNNAMED.fullmatch(name):
        return False
    if name == frame.columns[0] and pd.api.types.is_integer_dtype(frame[name].dtype):
        warnings.warn(
            "the first column has no name and holds whole numbers: it is taken for the numbers of "
            "the rows and left out; give it a name if it is a hyperparameter",
            ForetuneWarning,
            stacklevel=2,
        )
        return True
    return bool(frame[name].isna().all())


def _with_word_choices(space: Space, frame: pd.DataFrame) -> list[str]:
    """The columns of hyperparameters that are never missing and have a choice called None or null.

    Where one may be inactive, these words may mean just that.
    """
    conditional = {condition.child.name for condition in space.config_space.conditions}
    return [
        parameter.name
        for parameter in space.parameters
        if parameter.name in frame
        and parameter.name not in conditional
        and any(word in parameter.choices for word in WORDS)
    ]


def _texts_with_unexplained_gaps(columns: Mapping[str, list[Any]]) -> list[str]:
    """The columns of texts (or of nothing at all) whose gaps no other column explains."""
    explained = {name for name, where in explain_missing(columns).items() if where.values}
    return [
        name
        for name, cells in columns.items()
        if name not in explained
        and None in cells
        and all(cell is None or isinstance(cell, str) for cell in cells)
    ]


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
    filled = column.notna().to_numpy()
    present = column[filled]
    if not filled.all() and pd.api.types.is_float_dtype(column.dtype) and _all_whole(present):
        present = present.astype("int64")
    cells = np.full(len(column), None, dtype=object)
    cells[filled] = present.to_numpy(dtype=object)
    listed: list[Any] = cells.tolist()
    return listed


def _all_whole(numbers: "pd.Series[Any]") -> bool:
    return bool((numbers % 1 == 0).all() and (numbers.abs() <= LARGEST_EXACT_INT).all())
