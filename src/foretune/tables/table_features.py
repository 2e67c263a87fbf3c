"""The meta-features of a table, by which tables are compared."""

from foretune.tables.meta_features import meta_features
from foretune.tables.table import Table
from foretune.tables.target import Task


def description(table: Table) -> dict[str, float]:
    """Return the meta-features of a table. The words of its texts do not count."""
    plain = table.without_texts
    classes = plain.task is Task.CLASSIFICATION
    return meta_features(plain.x, plain.categorical, plain.y, classification=classes)
