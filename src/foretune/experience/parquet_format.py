"""The format of an experience file: one Parquet file. Decision 002 gives the reasons.

The rows of the file are the evaluations. The footer holds, as key-value metadata, a JSON header
(space, metrics, tasks, notes), the table of configurations, and a checksum of both. A large table
of configurations stands in the rows instead (version 2): see `config_rows.py`.
"""

import hashlib
from dataclasses import dataclass

import pyarrow.parquet as pq

from foretune.errors import DamagedError

FORMAT = "foretune-experience"
VERSION, VERSION_IN_ROWS, VERSION_WITH_CURVES = 1, 2, 3
"""Version 2 has the configurations in the rows, version 3 has curves and the configurations in
either place. Readers of older releases know the versions of their time only."""
CURVE_STEPS, CURVE_SECONDS = "curve:step", "curve:seconds"
CURVE_PREFIX = "curve:metric:"
"""The prefix of the column that holds the values of a metric at the steps."""
HEADER_KEY, CONFIGS_KEY, CHECKSUM_KEY = b"foretune", b"foretune.configs", b"foretune.sha256"
LARGEST_TEXT = 2**31 - 1
"""Bytes of one text in the footer of a Parquet file."""
MOST_TIMES = 300
"""A file may take this many times its own size in memory."""
BYTES_A_ROW = 21
"""The bytes of one evaluation in memory: task, configuration, one metric, status and seconds."""


@dataclass(frozen=True, slots=True)
class FileLimits:
    """Sizes at which the writer and the reader change their ways."""

    rows_a_group: int = 1 << 20
    rows_a_group_with_configs: int = 1 << 18
    configs_in_footer: int = 1 << 23
    """Bytes of a table of configurations in the footer, which is read and checked as a whole.
    A larger table stands in the rows, which take a third less time to read."""
    small: int = 2**26
    """Bytes that every file may take in memory."""


LIMITS = FileLimits()


def checksum(header: bytes, raw_configs: bytes) -> bytes:
    """Return the sha256 of the header and the configurations in the footer."""
    return hashlib.sha256(header + b"\0" + raw_configs).hexdigest().encode()


def check_inflation(unpacked: int, packed: int, limits: FileLimits) -> None:
    """Refuse few bytes that would become very many."""
    if unpacked > max(limits.small, MOST_TIMES * packed):
        raise DamagedError(
            f"it would take more than {MOST_TIMES:,} times its size in memory",
            rule="inflated-file",
            value=unpacked,
        )


def check_rows(metadata: pq.FileMetaData, limits: FileLimits) -> None:
    """Refuse few bytes that would become very many rows."""
    groups = [metadata.row_group(each) for each in range(metadata.num_row_groups)]
    packed = sum(g.column(i).total_compressed_size for g in groups for i in range(g.num_columns))
    # Rows of equal values take almost no room in a file, whatever size its pages claim.
    unpacked = sum(group.total_byte_size for group in groups)
    check_inflation(max(metadata.num_rows * BYTES_A_ROW, unpacked), packed, limits)
