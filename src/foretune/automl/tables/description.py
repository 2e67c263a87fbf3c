"""What a table is like, in numbers that tables are compared by."""

from foretune.automl.tables.datasets import Table
from foretune.automl.tables.targets import Task
from foretune.experience.meta_features import meta_features


def description(table: Table) -> dict[str, float]:
    """The meta-features of a table, whatever words its texts hold."""
    plain = table.without_texts
    classes = plain.task is Task.CLASSIFICATION
    return meta_features(plain.x, plain.categorical, plain.y, classification=classes)
