"""What is asked of a table, before its columns are looked at."""

from dataclasses import dataclass
from typing import Any

import pandas as pd

from foretune.tables.column_roles import ColumnRoles
from foretune.tables.number_formats import TableMark, table_mark
from foretune.tables.schema import as_table
from foretune.tables.target import Task, check_target, target_of


@dataclass(frozen=True, eq=False, slots=True)
class TableProblem:
    """A column to predict from others."""

    frame: pd.DataFrame
    """Without the rows of weight 0."""
    target: str
    values: "pd.Series[Any]"
    """Of the target, gaps included, as what they are meant to be."""
    decimal: str
    """What divides fractions in them, where they are written as people do."""
    task: Task | None
    """What was asked for; found out from the target if None."""
    roles: ColumnRoles
    mark: TableMark
    """How the table writes numbers that can be read in two ways."""

    @classmethod
    def of(
        cls, frame: pd.DataFrame, target: str, *, task: Task | None, roles: ColumnRoles
    ) -> "TableProblem":
        """Refuses columns that the table does not have, or that cannot be what they are to be."""
        frame = as_table(frame)
        check_target(frame, target)
        roles.check(frame, target)
        frame = roles.drop_weightless_rows(frame, target)
        mark = table_mark(frame)
        values, decimal = target_of(frame[target], task, mark)
        return cls(frame, target, values, decimal, task, roles, mark)
