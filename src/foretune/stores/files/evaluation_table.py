"""Any table of evaluations: CSV or Parquet, with one row for each evaluation or for each step."""

import re
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from foretune._base.arrays import Bools, Floats
from foretune._base.freed_memory import return_freed_memory
from foretune._base.names import quote_names
from foretune._base.progress import SILENT, Progress, beating
from foretune.errors import ExperienceError, ForetuneWarning
from foretune.experience import Experience, Metric, Status
from foretune.experience.annotations import Notes
from foretune.experience.build import EvaluationColumns, from_columns
from foretune.experience.curves import CurveColumns
from foretune.experience.data_frame import CONFIG, numbers_of
from foretune.space import Parameter, Space
from foretune.space.row_codes import encode_columns
from foretune.space.text_format import parse_space
from foretune.stores.files.archive import existing
from foretune.stores.files.cell_columns import ColumnCells, as_list
from foretune.stores.files.column_warnings import say_doubts
from foretune.stores.files.failed_rows import rows_told_in_full, without_reasons
from foretune.stores.files.json_configs import config_columns
from foretune.stores.files.outcomes import check_ended, statuses_of
from foretune.stores.files.space_inference import (
    find_unexplained_gaps,
    infer_space,
    looks_like_range,
    read_back,
)
from foretune.stores.files.table_curves import StepRows, check_list_columns, curves_of_lists
from foretune.stores.files.table_files import (
    WORDS,
    FileTable,
    is_parquet,
    need_columns,
    read_columns,
)
from foretune.stores.formats import TableColumns, check_ignore_names, direction_of

NO_NUMBERS = (float("inf"), -float("inf"))
UNNAMED = re.compile(r"Unnamed: \d+")
"""What pandas calls a column without a name."""


def read(source: Path | str, *, columns: TableColumns, progress: Progress = SILENT) -> Experience:
    """The evaluations in the rows of the CSV (also packed) or Parquet file `source`.

    Rows that have not ended are left out, and so are those that failed without all of their
    hyperparameters. Where `columns` names neither a space nor a column of
    configurations, every column that has no other meaning is taken for a hyperparameter. An empty
    cell, and in CSV the words None and null, are a gap where the space or another column explains
    it, else None, which is a choice.

    Learning curves come as lists in the cells of a metric, or in one row for each step if
    `columns.step` holds numbers.

    The file is read a part at a time. A row costs memory for its numbers; texts are held once.
    """
    if columns.task is None or not columns.values:
        raise ExperienceError(
            "a table needs a column that names the task and at least one metric, but "
            f"{'no task' if columns.task is None else 'no value'} column was named: name both, "
            "such as  --task dataset --value error:min",
            rule="no-task-or-value-column",
        )
    metrics = [Metric(column, direction_of(column, way)) for column, way in columns.values.items()]
    _check_meanings(columns)
    space = None
    if columns.space is not None:
        space = parse_space(existing(columns.space).read_text(encoding="utf-8", errors="replace"))
    table = _read(source, columns, space, progress)
    return_freed_memory()
    with beating(progress, "looking at the columns"):
        table, outcomes = _outcomes(table, columns)
        if space is None:
            told = _with_inferred_space(table, columns, source, outcomes)
        else:
            told = _with_given_space(table, columns, space, outcomes)
        del table
        outcomes = outcomes.take(told.rows)
    cells, space = told.cells, told.space
    del told
    return_freed_memory()
    n = len(outcomes.values)
    progress.start("encoding configurations", n)
    try:
        given = columns.space is not None
        configs = encode_columns(
            space,
            cells,
            n,
            drop_inactive=given,
            empty_is_none=not given or columns.config_column is None,
            step=progress.step,
        )
    finally:
        progress.stop()
    del cells
    tasks = outcomes.tasks
    assert tasks.codes is not None
    found = EvaluationColumns(
        tasks.codes,
        configs.index,
        outcomes.values,
        outcomes.status,
        outcomes.seconds,
        outcomes.fidelity,
        outcomes.curves,
    )
    with beating(progress, "putting the evaluations in order"):
        if outcomes.step_rows is not None:
            found = outcomes.step_rows.join(found)
        return from_columns(
            Experience,
            space,
            metrics,
            as_list(tasks.values),
            configs.table,
            found,
            Notes({}, {}, {}),
        )


@dataclass(frozen=True)
class _Outcomes:
    """What rows say beside their hyperparameters."""

    tasks: ColumnCells
    values: Floats
    """(n, number of metrics)"""
    status: NDArray[np.int8] | None
    seconds: NDArray[np.float32] | None
    fidelity: NDArray[np.float32] | None
    curves: CurveColumns | None = None
    step_rows: StepRows | None = None
    """The steps, if each row is a step of an evaluation."""

    @property
    def is_success(self) -> Bools:
        """(n,), where an evaluation was measured and did not fail."""
        return find_successes(self.values, self.status)

    def take(self, rows: Bools) -> "_Outcomes":
        """Those of some rows."""
        if rows.all():
            return self
        return _Outcomes(
            self.tasks.take(rows),
            self.values[rows],
            None if self.status is None else self.status[rows],
            None if self.seconds is None else self.seconds[rows],
            None if self.fidelity is None else self.fidelity[rows],
            None if self.curves is None else self.curves.take(rows),
            None if self.step_rows is None else self.step_rows.take(rows),
        )


@dataclass(frozen=True)
class _Told:
    """The hyperparameters of rows that name all of them, and their space."""

    space: Space
    cells: dict[str, ColumnCells]
    rows: Bools
    """Which rows of the table these are."""


def find_successes(values: Floats, status: NDArray[np.int8] | None) -> Bools:
    """(n,), where an evaluation was measured and did not fail."""
    done: Bools = np.logical_or.reduce(np.isfinite(values), axis=1)
    return done if status is None else done & (status == Status.DONE)


def _read(
    source: Path | str, columns: TableColumns, space: Space | None, progress: Progress
) -> FileTable:
    """The columns of the file that are needed, without the prefix of hyperparameters."""
    assert columns.task is not None
    named = _columns_in_use(columns)
    numbers = [*columns.values, *filter(None, (columns.step, columns.seconds))]
    prefix = columns.config_prefix or ""
    only = None if space is None else {*space.names, *(CONFIG + name for name in space.names)}

    def is_needed(name: str) -> bool:
        if name in named:
            return True
        if columns.config_column is not None or not name.startswith(prefix):
            return False
        bare = name.removeprefix(prefix)
        return bare not in columns.ignored if only is None else bare in only

    table = read_columns(source, progress, texts=[columns.task], numbers=numbers, wanted=is_needed)
    need_columns(table.names, named, source)
    check_list_columns(table, columns)
    return _without_prefix(table, named, prefix) if prefix else table


def _without_prefix(table: FileTable, named: list[str], prefix: str) -> FileTable:
    """The named columns and those that begin with `prefix`, called by what follows it."""
    found = [name for name in table.names if name.startswith(prefix)]
    found = [name for name in found if name not in (*named, prefix)]
    if not found:
        raise ExperienceError(
            f"the columns of hyperparameters must begin with the given prefix, '{prefix}', but the "
            f"columns are {quote_names([name for name in table.names if name not in named])}: give "
            "another prefix, or none",
            rule="no-column-with-prefix",
            field="config_prefix",
            value=prefix,
        )
    called = {name: name.removeprefix(prefix) for name in found}
    _check_not_taken(called.values(), named)
    return table.rename_columns({name: called.get(name, name) for name in (*named, *found)})


def _check_not_taken(names: Iterable[str], named: Collection[str]) -> None:
    for name in names:
        if name in named:
            raise ExperienceError(
                f"a hyperparameter may not bear the name of another column, but '{name}' is "
                "both: rename that column",
                rule="name-of-another-column",
                field=name,
            )


def _outcomes(table: FileTable, columns: TableColumns) -> tuple[FileTable, _Outcomes]:
    """The rows that have ended, without the columns that say how, and what these say."""
    assert columns.task is not None
    status = None
    if columns.status is not None:
        found = statuses_of(table.columns[columns.status], columns.status)
        check_ended(found, columns.status, table.columns[columns.task])
        table = table.take(found.present)
        ended = found.take(found.present)
        status = np.array(ended.values, dtype=np.int8)[ended.codes]
    tasks = _tasks(table.columns[columns.task], columns.task)
    values = [_final_numbers(table, name) for name in columns.values]
    seconds = fidelity = None
    with np.errstate(over="ignore"):
        curves = curves_of_lists(table, columns)
        if columns.seconds is not None:
            took = _final_numbers(table, columns.seconds, durations=True)
            seconds = took.astype(np.float32)
        if columns.fidelity is not None:
            given = _numbers(table.columns[columns.fidelity], columns.fidelity)
            fidelity = given.astype(np.float32)
    rows = None
    if columns.step is not None and curves is None:
        rows = StepRows(columns.step, _numbers(table.columns[columns.step], columns.step))
        rows.check()
    for name in _columns_in_use(columns):
        if name != columns.config_column:
            table.columns.pop(name, None)
    table.lists.clear()
    return table, _Outcomes(tasks, np.column_stack(values), status, seconds, fidelity, curves, rows)


def _final_numbers(table: FileTable, name: str, *, durations: bool = False) -> Floats:
    """(n,), the number in each cell, or the last number of its list."""
    if name in table.lists:
        return table.lists[name].last
    return _numbers(table.columns[name], name, durations=durations)


def _tasks(column: ColumnCells, name: str) -> ColumnCells:
    """The names of the tasks."""
    if not column.present.all():
        raise ExperienceError(
            f"every row must name its task, but column '{name}' is empty in "
            f"{int((~column.present).sum())} rows: fill or drop them",
            rule="row-without-task",
            field=name,
        )
    return column.replace(pd.Series(column.different).astype(str).tolist())


def _numbers(column: ColumnCells, name: str, *, durations: bool = False) -> Floats:
    """(n,), NaN where a cell is empty; refuses what is no number.

    durations: whether they may be written as pandas does.
    """
    given = pd.Series(column.values)
    if durations:
        given = _in_seconds(given)
    numbers = numbers_of(given.to_frame(name), name)
    return numbers if column.codes is None else np.append(numbers, np.nan)[column.codes]


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
        ("the step", columns.step),
        ("the fidelity", columns.fidelity),
        *(("to be ignored", column) for column in columns.ignored),
    ]
    meanings: dict[str, str] = {}
    for meaning, column in named:
        if column in meanings:
            raise ExperienceError(
                f"a column has one meaning, but '{column}' was named as {meanings[column]} and as "
                f"{meaning}: name another, or copy the column under another name",
                rule="column-of-two-meanings",
                field=column,
                value=(meanings[column], meaning),
            )
        if column is not None:
            meanings[column] = meaning


def _with_inferred_space(
    table: FileTable, columns: TableColumns, source: Path | str, outcomes: _Outcomes
) -> _Told:
    """The hyperparameters, and the space that is inferred from them."""
    if columns.config_column is not None:
        cells, told = config_columns(table, columns.config_column)
        cells = _drop_ignored(cells, columns.ignored, list(cells))
        told = {name: told[name] for name in cells}
    else:
        cells = _own_columns(table, columns, source)
        say_doubts(cells, by_name=columns.config_prefix is None)
        told = _has_value_or_word(table, cells, columns.config_prefix or "")
    done = outcomes.is_success
    cells = without_reasons(cells, done)
    whole = rows_told_in_full(cells, told, done, outcomes.tasks)
    if not whole.all():
        cells = {name: column.take(whole) for name, column in cells.items()}
        told = {name: where[whole] for name, where in told.items() if name in cells}
    told = {name: where for name, where in told.items() if name in cells}
    empty: list[str] = []
    if columns.config_column is None:
        empty = find_unexplained_gaps(cells, told)
        _check_ranges({name: cells[name] for name in empty})
        told |= {name: np.ones(int(whole.sum()), dtype=np.bool_) for name in empty}
    _check_not_taken(cells, _columns_in_use(columns))
    space = Space.of(infer_space(cells, Path(source).name.split(".")[0], told=told))
    if empty:
        warnings.warn(
            ForetuneWarning(
                f"{quote_names(empty)}: no other column says when a cell is empty, so None is a "
                "choice; "
                "fill the cells if something else is meant",
                rule="cells-without-value",
                value=tuple(empty),
            ),
            stacklevel=2,
        )
    return _Told(space, cells, whole)


def _columns_in_use(columns: TableColumns) -> list[str]:
    """The columns that were named for something else than a hyperparameter."""
    named = [columns.task, *columns.values, columns.config_column, columns.status, columns.seconds]
    others = (columns.step, columns.fidelity)
    return [name for name in (*named, *others) if name is not None]


def _own_columns(
    table: FileTable, columns: TableColumns, source: Path | str
) -> dict[str, ColumnCells]:
    """The columns that are taken for hyperparameters."""
    names = [name for name in table.names if name not in _columns_in_use(columns)]
    none = [name for name in names if _is_no_column(table, name)]
    known = [name for name in names if name not in none]
    read = {name: table.columns.pop(name) for name in known if name in table.columns}
    if not is_parquet(source):
        read = {name: _as_written(column) for name, column in read.items()}
    return _drop_ignored(read, columns.ignored, known)


def _drop_ignored(
    cells: dict[str, ColumnCells], ignored: Sequence[str], known: Sequence[str]
) -> dict[str, ColumnCells]:
    """The columns without those that are ignored or never have a value."""
    check_ignore_names(ignored, known)
    kept = {name: column for name, column in cells.items() if name not in ignored}
    empty = [name for name, column in kept.items() if not column.present.any()]
    if empty:
        warnings.warn(
            ForetuneWarning(
                f"{quote_names(empty)}: there is no value in any row, so it is left out",
                rule="column-without-value",
                value=tuple(empty),
            ),
            stacklevel=4,
        )
    return {name: column for name, column in kept.items() if name not in empty}


def _check_ranges(cells: Mapping[str, ColumnCells]) -> None:
    """Refuse gaps in what looks like a range: a forgotten cell would make choices of it."""
    for name, column in cells.items():
        if looks_like_range(column):
            raise ExperienceError(
                f"a range of numbers has no gaps, but '{name}' is empty in "
                f"{np.count_nonzero(~column.present)} of {len(column)} rows: fill the cells (with "
                "None, if it is meant), leave these rows out, or leave it out (--ignore "
                f"'{name}')",
                rule="range-with-gaps",
                field=name,
            )


def _has_value_or_word(
    table: FileTable, cells: Mapping[str, ColumnCells], prefix: str
) -> dict[str, Bools]:
    """Where there is a value or one of WORDS, of the columns whose gaps no other one explains."""
    words = table.words(find_unexplained_gaps(cells, {}), prefix=prefix)
    return {name: cells[name].present | where.present for name, where in words.items()}


def _is_no_column(table: FileTable, name: str) -> bool:
    """Whether a column without a name is empty, or numbers the rows as pandas writes it first."""
    if not UNNAMED.fullmatch(name) or name not in table.columns:
        return False
    column = table.columns[name]
    if name == table.names[0] and column.kinds == {int} and column.present.all():
        warnings.warn(
            ForetuneWarning(
                "the first column has no name and holds whole numbers. It is taken for row numbers "
                "and left out. Give it a name if it is a hyperparameter",
                rule="row-numbers",
            ),
            stacklevel=2,
        )
        return True
    return not column.present.any()


def _as_written(cells: ColumnCells) -> ColumnCells:
    """Cells of CSV, in which numbers and truth values may stand beside words: 0.5 beside sqrt.

    They are read only if a program writes them just so: 3.10 and 007 are names.
    """
    if str not in cells.kinds:
        return cells
    read = {value: read_back(value) for value in cells.values if isinstance(value, str)}
    others = [value for value in read.values() if not isinstance(value, str)]
    only_numbers = len(others) == len(read) and not any(isinstance(each, bool) for each in others)
    # Or they have a decimal point where the file's numbers have a comma.
    if not only_numbers:
        clash = len(set(others)) < len(others)  # True is 1
        if clash or any(str(value) != text or value in NO_NUMBERS for text, value in read.items()):
            return cells
    return cells.map_values(lambda value: read[value] if isinstance(value, str) else value)


# With a space that is given


def _with_given_space(
    table: FileTable, columns: TableColumns, space: Space, outcomes: _Outcomes
) -> _Told:
    """The hyperparameters of the given space."""
    prefix = columns.config_prefix or ""
    if columns.config_column is not None:
        known, named = config_columns(table, columns.config_column)
        cells = {name: known[name] for name in space.names if name in known}
        told = {name: named[name] for name in cells}
    else:
        words = table.words(_with_word_choices(space, table), prefix=prefix)
        for name, column in words.items():
            table.columns[name] = table.columns[name].fill(column)
        held = _columns_in(table, space)
        cells = {name: table.columns[column] for name, column in held.items()}
        told = _told_as_none(table, space, held, prefix)
        table.columns.clear()
    whole = rows_told_in_full(cells, told, outcomes.is_success, outcomes.tasks)
    if not whole.all():
        cells = {name: column.take(whole) for name, column in cells.items()}
    if columns.config_column is not None:
        # A name that is missing is another thing than one that is None.
        cells = {name: cells[name].with_none(told[name][whole]) for name in cells}
    else:
        cells = {p.name: _as_meant(p, cells[p.name]) for p in space.parameters if p.name in cells}
    return _Told(space, cells, whole)


def _with_word_choices(space: Space, table: FileTable) -> list[str]:
    """The columns of hyperparameters that are never missing and have a choice called None or null.

    Where one may be inactive, these words may mean just that.
    """
    conditional = space.definition.condition_of
    return [
        parameter.name
        for parameter in space.parameters
        if parameter.name in table.columns
        and parameter.name not in conditional
        and any(word in parameter.choices for word in WORDS)
    ]


def _columns_in(table: FileTable, space: Space) -> dict[str, str]:
    """The hyperparameters that have a column, and which: one with a prefix comes first."""
    wanted = {name: f"{CONFIG}{name}" for name in space.names}
    known = table.columns
    held = {name: column if column in known else name for name, column in wanted.items()}
    return {name: column for name, column in held.items() if column in known}


def _told_as_none(
    table: FileTable, space: Space, held: Mapping[str, str], prefix: str
) -> dict[str, Bools]:
    """Where rows write None for a hyperparameter that has this choice.

    held: the column of each hyperparameter.
    """
    with_none = [p.name for p in space.parameters if None in p.choices and p.name in held]
    words = table.words([held[name] for name in with_none], prefix=prefix)
    return {name: words[held[name]].present for name in with_none if held[name] in words}


def _as_meant(parameter: Parameter, cells: ColumnCells) -> ColumnCells:
    """Cells with the choices and numbers of the space in place of texts for them."""
    if str not in cells.kinds:
        return cells
    if parameter.is_number:
        return cells.map_values(lambda value: read_back(value) if isinstance(value, str) else value)
    read = {str(choice): choice for choice in parameter.choices}
    read |= {choice: choice for choice in parameter.choices if isinstance(choice, str)}
    return cells.map_values(
        lambda value: read.get(value, value) if isinstance(value, str) else value
    )
