from foretune.stores.files.archive import (
    Archive as Archive,
    existing as existing,
)
from foretune.stores.files.compressed import DAMAGED as DAMAGED
from foretune.stores.files.condition_inference import Activity as Activity
from foretune.stores.files.space_inference import infer_space as infer_space
from foretune.stores.files.table_files import (
    need_columns as need_columns,
    read_columns as read_columns,
)
from foretune.stores.formats import (
    IMPORTERS as IMPORTERS,
    Importer as Importer,
    TableColumns as TableColumns,
    import_experience as import_experience,
)
from foretune.stores.studies import open_study as open_study
