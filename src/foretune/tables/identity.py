"""The names of tables in everything that is remembered: a name, and a fingerprint of the
content.
"""

import hashlib
import json
import re
from dataclasses import replace

import numpy as np

from foretune.tables.schema import Schema
from foretune.tables.table import Table

LONGEST_NAME = 60
MARK = "@"
"""Stands between the name of a table and its fingerprint."""
FINGERPRINT_DIGITS = 16
_FINGERPRINT = re.compile(rf"{MARK}[0-9a-f]{{{FINGERPRINT_DIGITS}}}\Z")
"""No other text after the mark is a fingerprint: `credit@2023` and `adult@2023` differ."""


def fingerprint(table: Table) -> str:
    """Return a fingerprint of the content of a table, equal for equal data."""
    # Units do not affect learning, and earlier releases did not record them.
    columns = Schema(tuple(replace(column, unit=None) for column in table.schema.columns))
    digest = hashlib.sha256(json.dumps([columns.to_list(), table.classes]).encode())
    digest.update(np.ascontiguousarray(table.x).tobytes())
    digest.update(np.ascontiguousarray(table.y).tobytes())
    if table.arrangement is not None:
        # The same rows are another task if they are scored in another way.
        digest.update(table.arrangement.kind.encode())
        digest.update(np.ascontiguousarray(table.arrangement.values).tobytes())
    if table.weights is not None:
        digest.update(b"weights")
        digest.update(np.ascontiguousarray(table.weights).tobytes())
    return digest.hexdigest()[:FINGERPRINT_DIGITS]


def task_name(table: Table) -> str:
    """Return the name of a table with a fingerprint: the same data is the same task."""
    return f"{table.name[:LONGEST_NAME]}{MARK}{fingerprint(table)}"


def task_identity(task: str) -> str:
    """Return what identifies a task: the fingerprint of its content, or its name without one."""
    found = _FINGERPRINT.search(task)
    return task if found is None else found.group()


def plain_name(task: str) -> str:
    """Return the name of a task without the fingerprint."""
    return _FINGERPRINT.sub("", task)
