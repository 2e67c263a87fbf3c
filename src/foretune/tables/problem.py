"""The target and the features of a table, before the columns are inspected."""

from dataclasses import dataclass
from typing import Any

import pandas as pd

from foretune._base.progress import SILENT, Progress
from foretune.tables.column_inference import InspectedColumn, inspect_columns
from foretune.tables.column_roles import ColumnRoles
from foretune.tables.deadlines import NO_DEADLINES, Deadlines
from foretune.tables.number_formats import TableMark, table_mark
from foretune.tables.schema import as_table
from foretune.tables.target import Task, check_target, infer_task, target_of


@dataclass(frozen=True, eq=False, slots=True)
class TableProblem:
    """A column to predict from other columns."""

    frame: pd.DataFrame
    """The table without the rows of weight 0."""
    target: str
    values: "pd.Series[Any]"
    """The cells of the target in their right type, missing ones included."""
    known: "pd.Series[Any]"
    """The cells of the target that have a value."""
    decimal: str
    """The decimal mark of the target, if people wrote its numbers."""
    asked: Task | None
    """The task that the user named, or None."""
    task: Task
    """The task that the user named, or the one that suits the values."""
    roles: ColumnRoles
    mark: TableMark
    """How the table writes numbers that can be read in two ways."""

    @classmethod
    def of(
        cls, frame: pd.DataFrame, target: str, *, task: Task | None, roles: ColumnRoles
    ) -> "TableProblem":
        """Find the target and the roles; refuse columns that are missing or unsuitable."""
        frame = as_table(frame)
        check_target(frame, target)
        roles.check(list(frame.columns), target)
        frame = roles.drop_weightless_rows(frame, target)
        mark = table_mark(frame)
        values, decimal = target_of(frame[target], task, mark)
        known = values.dropna()
        return cls(
            frame, target, values, known, decimal, task, task or infer_task(known), roles, mark
        )

    @property
    def learnt_from(self) -> pd.DataFrame:
        """The columns to learn from."""
        return self.frame.drop(columns=[self.target, *self.roles.excluded_columns()])

    def inspect(
        self, progress: Progress = SILENT, deadlines: Deadlines = NO_DEADLINES
    ) -> tuple[InspectedColumn, ...]:
        """Find out what the columns to learn from are."""
        return inspect_columns(self.learnt_from, self.mark, progress, deadlines=deadlines)
