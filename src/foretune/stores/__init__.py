"""Studies and logs that others and we keep: one room for each kind of store."""

from foretune.stores.formats import IMPORTERS, Importer, TableColumns, import_experience

__all__ = ["IMPORTERS", "Importer", "TableColumns", "import_experience"]
