"""What is to be learnt from a table, before its columns are inspected."""

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
    """A column to predict from others."""

    frame: pd.DataFrame
    """Without the rows of weight 0."""
    target: str
    values: "pd.Series[Any]"
    """The cells of the target, missing ones included, as what they are meant to be."""
    known: "pd.Series[Any]"
    """The values that are there."""
    decimal: str
    """What divides fractions in them, where they are written as people do."""
    asked: Task | None
    """The task that was asked for, if one was."""
    task: Task
    """The task that was asked for, or else the one that suits the values."""
    roles: ColumnRoles
    mark: TableMark
    """How the table writes numbers that can be read in two ways."""

    @classmethod
    def of(
        cls, frame: pd.DataFrame, target: str, *, task: Task | None, roles: ColumnRoles
    ) -> "TableProblem":
        """Refuse columns that the table does not have, or that cannot be what they are to be."""
        frame = as_table(frame)
        check_target(frame, target)
        roles.check(frame, target)
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
