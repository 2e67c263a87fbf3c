"""Any table of evaluations: CSV or Parquet, one evaluation a row."""

import json
import math
import re
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from foretune.arrays import Bools
from foretune.errors import ExperienceError, ForetuneWarning
from foretune.experience import Experience
from foretune.experience.frame import CONFIG, with_columns
from foretune.experience.importers.archive import existing
from foretune.experience.importers.doubts import say_doubts
from foretune.experience.importers.failed_rows import (
    rows_told_in_full,
    succeeded,
    without_reasons,
)
from foretune.experience.importers.inference import (
    as_choice,
    infer_space,
    is_missing,
    looks_like_range,
    present_mask,
    read_back,
    unexplained,
)
from foretune.experience.importers.literals import read_literal
from foretune.experience.importers.outcomes import ended_rows
from foretune.experience.importers.registry import TableColumns, check_ignored, direction_of
from foretune.experience.importers.tables import (
    WORDS,
    is_parquet,
    need_columns,
    read_table,
    where_words,
    with_words,
)
from foretune.experience.naming import check_writable, listed
from foretune.progress import SILENT, Progress
from foretune.space import Space
from foretune.space.parameters import LARGEST_EXACT_INT
from foretune.space.written import written_space

NO_NUMBERS = (math.inf, -math.inf)
UNNAMED = re.compile(r"Unnamed: \d+")
"""What pandas calls a column without a name."""


def read(source: Path | str, *, columns: TableColumns, progress: Progress = SILENT) -> Experience:
    """The evaluations in the rows of the CSV (also packed) or Parquet file `source`.

    Rows that have not ended are left out, and so are those that failed without all of their
    hyperparameters. Where `columns` names neither a space nor a column of
    configurations, every column that has no other meaning is taken for a hyperparameter. An empty
    cell, and in CSV the words None and null, are a gap where the space or another column explains
    it, else None, which is a choice.
    """
    if columns.task is None or not columns.values:
        raise ExperienceError(
            "a table needs a column that names the task and at least one metric, but "
            f"{'no task' if columns.task is None else 'no value'} column was named: name both, "
            "such as  --task dataset --value error:min"
        )
    metrics = {column: direction_of(column, given) for column, given in columns.values.items()}
    _check_meanings(columns)
    frame = read_table(source, progress, texts=[columns.task])
    optional = (columns.config_column, columns.status, columns.seconds, columns.fidelity)
    named = [columns.task, *metrics, *(name for name in optional if name is not None)]
    need_columns(frame, named, source)
    prefix = columns.config_prefix or ""
    if prefix:
        frame = _without_prefix(frame, named, prefix)
    if columns.status is not None:
        frame = ended_rows(frame, columns.status, columns.task)
    if columns.seconds is not None:
        frame = with_columns(frame, {columns.seconds: _in_seconds(frame[columns.seconds])})
    config_column = columns.config_column
    if columns.space is not None:
        space = written_space(existing(columns.space).read_text(encoding="utf-8", errors="replace"))
        frame = with_words(frame, source, _with_word_choices(space, frame), prefix=prefix)
        cells, told = _cells_of_the_space(space, frame, columns, source)
        frame = frame[rows_told_in_full(frame, cells, told, columns)]
        if config_column is not None:
            configs = _of_the_space(space, frame[config_column], config_column)
            frame = with_columns(frame, {config_column: np.array(configs, dtype=object)})
        else:
            frame = _without_inactive(space, _as_meant(space, frame))
    else:
        frame, space = _with_inferred_space(frame, named, columns, source)
        config_column = None
    return Experience.from_frame(
        space,
        frame,
        task=columns.task,
        metrics=metrics,
        config_column=config_column,
        status=columns.status,
        seconds=columns.seconds,
        fidelity=columns.fidelity,
    )


def _without_prefix(frame: pd.DataFrame, named: list[str], prefix: str) -> pd.DataFrame:
    """The named columns and those that begin with `prefix`, called by what follows it."""
    found = [c for c in frame.columns if c.startswith(prefix) and c not in (*named, prefix)]
    if not found:
        raise ExperienceError(
            f"the columns of hyperparameters must begin with the given prefix, '{prefix}', but the "
            f"columns are {listed([c for c in frame.columns if c not in named])}: give another "
            "prefix, or none"
        )
    called = {column: column.removeprefix(prefix) for column in found}
    _check_not_taken(called.values(), named)
    return frame[[*named, *found]].rename(columns=called)


def _check_not_taken(names: Iterable[str], named: Collection[str]) -> None:
    for name in names:
        if name in named:
            raise ExperienceError(
                f"a hyperparameter may not bear the name of another column, but '{name}' is "
                "both: rename that column"
            )


def _in_seconds(column: "pd.Series[Any]") -> "pd.Series[Any]":
    """Durations as pandas keeps or writes them, such as 0 days 00:01:30, in seconds.

    What is neither a number nor a duration stays as it is, to be refused by its name.
    """
    if pd.api.types.is_timedelta64_dtype(column.dtype):
        seconds: pd.Series[Any] = column.dt.total_seconds()
        return seconds
    if pd.api.types.is_numeric_dtype(column.dtype):
        return column
    words = column.where(pd.to_numeric(column, errors="coerce").isna()).astype(object)
    durations = pd.to_timedelta(words, errors="coerce").dt.total_seconds()
    return column.astype(object).mask(durations.notna(), durations)


def _check_meanings(columns: TableColumns) -> None:
    """Refuse a column that is named for two things."""
    named = [
        ("the task", columns.task),
        *(("a metric", column) for column in columns.values),
        ("the configuration", columns.config_column),
        ("the outcome", columns.status),
        ("the run time", columns.seconds),
        ("the fidelity", columns.fidelity),
        *(("to be ignored", column) for column in columns.ignored),
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
    frame: pd.DataFrame, named: list[str], columns: TableColumns, source: Path | str
) -> tuple[pd.DataFrame, Space]:
    """The frame with one column a hyperparameter, and the space of these columns."""
    if columns.config_column is not None:
        configs = _configs(frame[columns.config_column], columns.config_column)
        cells = _kept(_columns_of(configs), columns.ignored)
        told = _named_in(configs, cells)
    else:
        meant = [c for c in frame.columns if c not in named and not _is_no_column(frame, c)]
        read = _cells if is_parquet(source) else _cells_of_csv
        cells = _kept({str(c): read(frame[c]) for c in meant}, columns.ignored)
        say_doubts(cells, by_name=columns.config_prefix is None)
        told = _worded(cells, source, frame.index, columns.config_prefix or "")
    cells = without_reasons(cells, succeeded(frame, columns))
    whole = rows_told_in_full(frame, cells, told, columns)
    frame, cells = frame[whole], {name: list(compress(cells[name], whole)) for name in cells}
    told = {name: where[whole] for name, where in told.items() if name in cells}
    empty: list[str] = []
    if columns.config_column is None:
        empty = unexplained(cells, told)
        _check_ranges({name: cells[name] for name in empty})
        told |= {name: np.ones(len(frame), dtype=np.bool_) for name in empty}
    _check_not_taken(cells, named)
    space = Space.of(infer_space(cells, Path(source).name.split(".")[0], told=told))
    if empty:
        warnings.warn(
            f"{listed(empty)}: no other column says when a cell is empty, so None is a choice; "
            "fill the cells if something else is meant",
            ForetuneWarning,
            stacklevel=2,
        )
    expanded = pd.DataFrame(cells, index=frame.index, dtype=object)
    return pd.concat([frame[named], expanded], axis=1), space


def _kept(cells: dict[str, list[Any]], ignored: Sequence[str]) -> dict[str, list[Any]]:
    """The columns without those that are ignored or never have a value."""
    check_ignored(ignored, list(cells))
    kept = {name: column for name, column in cells.items() if name not in ignored}
    empty = [name for name, column in kept.items() if all(cell is None for cell in column)]
    if empty:
        warnings.warn(
            f"{listed(empty)}: there is no value in any row, so it is left out",
            ForetuneWarning,
            stacklevel=3,
        )
    return {name: column for name, column in kept.items() if name not in empty}


def _named_in(configs: Sequence[Mapping[str, Any]], names: Iterable[str]) -> dict[str, Bools]:
    """(n,) each, where configurations name a hyperparameter, if perhaps as None."""
    return {name: np.array([name in config for config in configs]) for name in names}


def _check_ranges(cells: Mapping[str, list[Any]]) -> None:
    """Refuse gaps in what looks like a range: a forgotten cell would make choices of it."""
    for name, column in cells.items():
        if looks_like_range(column):
            raise ExperienceError(
                f"a range of numbers has no gaps, but '{name}' is empty in {column.count(None)} of "
                f"{len(column)} rows: fill the cells (with None, if it is meant), leave these rows "
                f"out, or leave it out (--ignore '{name}')"
            )


def _worded(
    cells: Mapping[str, list[Any]], source: Path | str, rows: "pd.Index[Any]", prefix: str
) -> dict[str, Bools]:
    """Where there is a value or one of WORDS, of the columns whose gaps no other one explains."""
    words = where_words(source, unexplained(cells, {}), rows, prefix=prefix)
    return {
        name: present_mask(cells[name]) | where.notna().to_numpy() for name, where in words.items()
    }


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
    conditional = space.definition.condition_of
    return [
        parameter.name
        for parameter in space.parameters
        if parameter.name in frame
        and parameter.name not in conditional
        and any(word in parameter.choices for word in WORDS)
    ]


def _as_meant(space: Space, frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with the choices and numbers of the space in place of texts for them."""
    meant = {}
    columns = _columns_in(frame, space)
    for parameter in space.parameters:
        name = columns.get(parameter.name)
        if name is None or pd.api.types.is_numeric_dtype(frame[name].dtype):
            continue
        cells = frame[name].tolist()
        texts = {cell for cell in cells if isinstance(cell, str)}
        if parameter.is_number:
            read = {text: read_back(text) for text in texts}
        else:
            read = {str(choice): choice for choice in parameter.choices}
            read |= {choice: choice for choice in parameter.choices if isinstance(choice, str)}
        replaced = [read.get(cell, cell) if isinstance(cell, str) else cell for cell in cells]
        meant[name] = pd.Series(replaced, index=frame.index, dtype=object)
    return with_columns(frame, meant)


def _without_inactive(space: Space, frame: pd.DataFrame) -> pd.DataFrame:
    """The frame without values that its space, which may be an edited one, says have no effect."""
    columns = _columns_in(frame, space)
    cells = {name: frame[column] for name, column in columns.items()}
    active = space.from_columns(cells, len(frame), drop_inactive=True).active
    kept = dict(zip(space.names, active.T, strict=True))
    return frame.assign(
        **{column: frame[column].where(kept[name], None) for name, column in columns.items()}
    )


def _columns_in(frame: pd.DataFrame, space: Space) -> dict[str, str]:
    """The hyperparameters that have a column, and which: one with a prefix comes first."""
    wanted = {name: f"{CONFIG}{name}" for name in space.names}
    held = {name: column if column in frame else name for name, column in wanted.items()}
    return {name: column for name, column in held.items() if column in frame}


def _cells_of_the_space(
    space: Space, frame: pd.DataFrame, columns: TableColumns, source: Path | str
) -> tuple[dict[str, list[Any]], dict[str, Bools]]:
    """What the rows say of each hyperparameter, None where nothing, and where they write None."""
    if columns.config_column is not None:
        configs = _configs(frame[columns.config_column], columns.config_column)
        known = _columns_of(configs)
        cells = {name: known[name] for name in space.names if name in known}
        return cells, _named_in(configs, cells)
    held = _columns_in(frame, space)
    cells = {name: _cells(frame[column]) for name, column in held.items()}
    with_none = {
        p.name: held[p.name] for p in space.parameters if None in p.choices and p.name in held
    }
    prefix = columns.config_prefix or ""
    words = where_words(source, with_none.values(), frame.index, prefix=prefix)
    return cells, {
        name: words[column].notna().to_numpy()
        for name, column in with_none.items()
        if column in words
    }


def _of_the_space(space: Space, cells: "pd.Series[Any]", column: str) -> list[str]:
    """Configurations as JSON, without what has no effect in the space or is not of it."""
    configs = [
        {name: config[name] for name in config if name in space.names}
        for config in _configs(cells, column)
    ]
    return [json.dumps(config) for config in space.encode(configs, drop_inactive=True).dicts()]


def _configs(cells: "pd.Series[Any]", column: str) -> list[dict[str, Any]]:
    return [_config(cell, row, column) for row, cell in cells.items()]


def _columns_of(configs: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """One column a hyperparameter, None where a configuration has None or does not name it."""
    names = dict.fromkeys(name for config in configs for name in config)
    for name in names:
        check_writable("hyperparameter", name)
    return {name: [_said(config.get(name)) for config in configs] for name in names}


def _said(value: Any) -> Any:
    return None if is_missing(value) else as_choice(value)


def _config(cell: Any, row: Any, column: str) -> dict[str, Any]:
    """A JSON object, or a dict: as Parquet has it, or as Python prints scikit-learn's `params`."""
    config = cell
    for parse in (json.loads, read_literal) if isinstance(cell, str) else ():
        with suppress(TypeError, ValueError, SyntaxError, RecursionError, MemoryError):
            config = parse(cell)
            break
    if not isinstance(config, dict):
        raise ExperienceError(
            f"the column '{column}' must hold JSON objects, but row {row} holds {cell!r}: write "
            'configurations as {"name": value}'
        )
    return {str(name): value for name, value in config.items()}


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


def _cells_of_csv(column: "pd.Series[Any]") -> list[Any]:
    """The same, with numbers and truth values that stand beside words, such as 0.5 beside sqrt.

    Only where a program writes them just so: 3.10 and 007 are names.
    """
    cells = _cells(column)
    texts = {cell for cell in cells if isinstance(cell, str)}
    read = {text: read_back(text) for text in texts}
    others = [value for value in read.values() if not isinstance(value, str)]
    if len(others) == len(texts) and not any(isinstance(value, bool) for value in others):
        # They have a decimal point where the file's numbers have a comma.
        return [read[cell] if isinstance(cell, str) else cell for cell in cells]
    clash = len(set(others)) < len(others)  # True is 1
    if clash or any(str(value) != text or value in NO_NUMBERS for text, value in read.items()):
        return cells
    return [read[cell] if isinstance(cell, str) else cell for cell in cells]


def _all_whole(numbers: "pd.Series[Any]") -> bool:
    return bool((numbers % 1 == 0).all() and (numbers.abs() <= LARGEST_EXACT_INT).all())
