"""What a table is called in all that is remembered: by its name, and by its content."""

import hashlib
import json
import re
from dataclasses import replace

import numpy as np

from foretune.tables.schema import Schema
from foretune.tables.table import Table

LONGEST_NAME = 60
MARK = "@"
"""Between the name of a table and the fingerprint of its content."""
FINGERPRINT_DIGITS = 16
_FINGERPRINT = re.compile(rf"{MARK}[0-9a-f]{{{FINGERPRINT_DIGITS}}}\Z")
"""Nothing else after the mark is one: `credit@2023` and `adult@2023` are different tables."""


def fingerprint(table: Table) -> str:
    """Of the content of a table: equal where the data is."""
    # Nothing is learnt from a unit, and tables were remembered before theirs was known.
    columns = Schema(tuple(replace(column, unit=None) for column in table.schema.columns))
    digest = hashlib.sha256(json.dumps([columns.to_list(), table.classes]).encode())
    digest.update(np.ascontiguousarray(table.x).tobytes())
    digest.update(np.ascontiguousarray(table.y).tobytes())
    if table.arrangement is not None:
        # The same rows are another task where they are scored in another way.
        digest.update(table.arrangement.kind.encode())
        digest.update(np.ascontiguousarray(table.arrangement.values).tobytes())
    if table.weights is not None:
        digest.update(b"weights")
        digest.update(np.ascontiguousarray(table.weights).tobytes())
    return digest.hexdigest()[:FINGERPRINT_DIGITS]


def task_name(table: Table) -> str:
    """The name of a table and a fingerprint of its content: the same data is the same task."""
    return f"{table.name[:LONGEST_NAME]}{MARK}{fingerprint(table)}"


def task_identity(task: str) -> str:
    """What makes two tasks the same: the fingerprint of their content, or else their name."""
    found = _FINGERPRINT.search(task)
    return task if found is None else found.group()


def plain_name(task: str) -> str:
    """The name of a task without the fingerprint of its content."""
    return _FINGERPRINT.sub("", task)
