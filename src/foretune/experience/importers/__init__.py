"""From other formats to an experience, one file a format."""

from foretune.experience.importers.registry import (
    IMPORTERS,
    Importer,
    TableColumns,
    import_experience,
)

__all__ = ["IMPORTERS", "Importer", "TableColumns", "import_experience"]
