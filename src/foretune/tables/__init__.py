"""Tables as people keep them: read from files, inspected column by column, encoded as numbers.

`read_table` reads a file or a data frame into a `Table`, `infer_schema` finds out what columns
are, and `Schema.encode` makes the matrix of numbers that models learn from. The modules of this
room are internal; other rooms use the names below, and `TextEncoder`, which needs scikit-learn.
"""

from foretune.tables.column_roles import ColumnRoles
from foretune.tables.columns import Column, ColumnKind, count_kinds
from foretune.tables.formats.reader import (
    read_parts,
    read_parts_with_copies,
    table_bytes,
    table_name,
)
from foretune.tables.identity import fingerprint, identity, plain_name, task_name
from foretune.tables.number_formats import MARKS, no_mark, table_mark
from foretune.tables.prediction_tables import NumberFormatCheck, with_commas
from foretune.tables.reading import TrainingTable, read_table, read_test_table
from foretune.tables.row_structure import (
    FIRST_SCORED,
    RowStructure,
    RowStructureKind,
    Splits,
    later_rows,
)
from foretune.tables.row_weights import RowWeights
from foretune.tables.schema import Schema, as_table, infer_schema
from foretune.tables.table import LEAST_ROWS, Table
from foretune.tables.table_features import description
from foretune.tables.target import LabelKind, Task, codes_of, new_target_numbers, target_of
from foretune.tables.timed_reading import read_table_in_time

__all__ = [
    "FIRST_SCORED",
    "LEAST_ROWS",
    "MARKS",
    "Column",
    "ColumnKind",
    "ColumnRoles",
    "LabelKind",
    "NumberFormatCheck",
    "RowStructure",
    "RowStructureKind",
    "RowWeights",
    "Schema",
    "Splits",
    "Table",
    "Task",
    "TrainingTable",
    "as_table",
    "codes_of",
    "count_kinds",
    "description",
    "fingerprint",
    "identity",
    "infer_schema",
    "later_rows",
    "new_target_numbers",
    "no_mark",
    "plain_name",
    "read_parts",
    "read_parts_with_copies",
    "read_table",
    "read_table_in_time",
    "read_test_table",
    "table_bytes",
    "table_mark",
    "table_name",
    "target_of",
    "task_name",
    "with_commas",
]
