"""The results in the rows of a table: task, values, status, seconds, fidelity, curve."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from foretune._base.arrays import Bools, Floats
from foretune.errors import ExperienceError
from foretune.experience import Status
from foretune.experience.build import EvaluationColumns
from foretune.experience.curves import CurveColumns
from foretune.experience.data_frame import numbers_of
from foretune.stores.files.cell_columns import ColumnCells
from foretune.stores.files.outcomes import check_ended, statuses_of
from foretune.stores.files.table_curves import StepRows, curves_of_lists, shorten_lists
from foretune.stores.files.table_files import (
    FileTable,
)
from foretune.stores.formats import TableColumns


@dataclass(frozen=True)
class RowResults:
    """The results of n rows."""

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
        """(n,), True where an evaluation was measured and did not fail."""
        return find_successes(self.values, self.status)

    def to_columns(self, config_index: NDArray[np.int32]) -> EvaluationColumns:
        """Return the evaluations of the rows, which have these configurations."""
        assert self.tasks.codes is not None
        return EvaluationColumns(
            self.tasks.codes,
            config_index,
            self.values,
            self.status,
            self.seconds,
            self.fidelity,
            self.curves,
        )

    def take(self, rows: Bools) -> "RowResults":
        """Return the results of some rows."""
        if rows.all():
            return self
        return RowResults(
            self.tasks.take(rows),
            self.values[rows],
            None if self.status is None else self.status[rows],
            None if self.seconds is None else self.seconds[rows],
            None if self.fidelity is None else self.fidelity[rows],
            None if self.curves is None else self.curves.take(rows),
            None if self.step_rows is None else self.step_rows.take(rows),
        )


def find_successes(values: Floats, status: NDArray[np.int8] | None) -> Bools:
    """Return (n,), True where an evaluation was measured and did not fail."""
    done: Bools = np.logical_or.reduce(np.isfinite(values), axis=1)
    return done if status is None else done & (status == Status.DONE)


def read_results(table: FileTable, columns: TableColumns) -> tuple[FileTable, RowResults]:
    """Return the rows that have ended, without the columns of results, and their results."""
    assert columns.task is not None
    status = None
    if columns.status is not None:
        found = statuses_of(table.columns[columns.status], columns.status)
        check_ended(found, columns.status, table.columns[columns.task])
        table = table.take(found.present)
        ended = found.take(found.present)
        status = np.array(ended.values, dtype=np.int8)[ended.codes]
    if columns.shorten:
        shorten_lists(table, columns)
    tasks = _task_names(table.columns[columns.task], columns.task)
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
    for name in columns.in_use:
        if name != columns.config_column:
            table.columns.pop(name, None)
    table.lists.clear()
    return table, RowResults(
        tasks, np.column_stack(values), status, seconds, fidelity, curves, rows
    )


def _final_numbers(table: FileTable, name: str, *, durations: bool = False) -> Floats:
    """Return (n,), the number in each cell, or the last number of its list."""
    if name in table.lists:
        return table.lists[name].last
    return _numbers(table.columns[name], name, durations=durations)


def _task_names(column: ColumnCells, name: str) -> ColumnCells:
    """Return the name of each row's task; refuse a row without one."""
    if not column.present.all():
        raise ExperienceError(
            f"every row must name its task, but column '{name}' is empty in "
            f"{int((~column.present).sum())} rows: fill or drop them",
            rule="row-without-task",
            field=name,
        )
    return column.replace(pd.Series(column.different).astype(str).tolist())


def _numbers(column: ColumnCells, name: str, *, durations: bool = False) -> Floats:
    """Return (n,) numbers, NaN where a cell is empty; refuse anything else.

    durations: whether the cells may be durations as pandas writes them.
    """
    given = pd.Series(column.values)
    if durations:
        given = _in_seconds(given)
    numbers = numbers_of(given.to_frame(name), name)
    return numbers if column.codes is None else np.append(numbers, np.nan)[column.codes]


def _in_seconds(column: "pd.Series[Any]") -> "pd.Series[Any]":
    """Return durations as pandas keeps or writes them, such as 0 days 00:01:30, in seconds.

    A cell that is neither a number nor a duration stays as it is. It is refused later.
    """
    if pd.api.types.is_timedelta64_dtype(column.dtype):
        seconds: pd.Series[Any] = column.dt.total_seconds()
        return seconds
    if pd.api.types.is_numeric_dtype(column.dtype):
        return column
    words = column.where(pd.to_numeric(column, errors="coerce").isna()).astype(object)
    durations = pd.to_timedelta(words, errors="coerce").dt.total_seconds()
    return column.astype(object).mask(durations.notna(), durations)
