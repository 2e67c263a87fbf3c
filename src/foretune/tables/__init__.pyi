from foretune.tables.column_roles import ColumnRoles as ColumnRoles
from foretune.tables.columns import (
    Column as Column,
    ColumnKind as ColumnKind,
    count_kinds as count_kinds,
)
from foretune.tables.formats.reader import (
    PLAIN as PLAIN,
    TextLayout as TextLayout,
    read_frame as read_frame,
    read_parts as read_parts,
    read_parts_with_copies as read_parts_with_copies,
    table_bytes as table_bytes,
    table_name as table_name,
)
from foretune.tables.identity import (
    fingerprint as fingerprint,
    task_identity as task_identity,
    plain_name as plain_name,
    task_name as task_name,
)
from foretune.tables.number_formats import (
    MARKS as MARKS,
    no_mark as no_mark,
    table_mark as table_mark,
)
from foretune.tables.prediction_tables import (
    NumberFormatCheck as NumberFormatCheck,
    with_commas as with_commas,
)
from foretune.tables.reading import (
    TrainingTable as TrainingTable,
    read_table as read_table,
    read_test_table as read_test_table,
)
from foretune.tables.row_structure import (
    FIRST_SCORED as FIRST_SCORED,
    RowStructure as RowStructure,
    RowStructureKind as RowStructureKind,
    Splits as Splits,
    split_later_rows as split_later_rows,
)
from foretune.tables.row_weights import RowWeights as RowWeights
from foretune.tables.schema import (
    Schema as Schema,
    as_table as as_table,
    infer_schema as infer_schema,
)
from foretune.tables.table import (
    NO_ROLES as NO_ROLES,
    LEAST_ROWS as LEAST_ROWS,
    Table as Table,
)
from foretune.tables.meta_features import description as description
from foretune.tables.target import (
    LabelKind as LabelKind,
    Task as Task,
    encode_classes as encode_classes,
    new_target_numbers as new_target_numbers,
    target_of as target_of,
)
from foretune.tables.timed_reading import read_table_in_time as read_table_in_time
