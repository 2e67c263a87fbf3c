"""What a table is like, in numbers that tables are compared by."""

from foretune.tables.meta_features import meta_features
from foretune.tables.table import Table
from foretune.tables.target import Task


def description(table: Table) -> dict[str, float]:
    """The meta-features of a table, whatever words its texts hold."""
    plain = table.without_texts
    classes = plain.task is Task.CLASSIFICATION
    return meta_features(plain.x, plain.categorical, plain.y, classification=classes)
