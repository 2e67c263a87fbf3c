"""A small file with some rows of a large one, in the same format.

The rows are blocks from evenly spaced places, because files are often sorted by date or by class.
Only these blocks are read.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
from pyarrow.parquet import ParquetWriter

from foretune.tables.formats.parquet import bytes_of, is_parquet, open_parquet
from foretune.tables.formats.text_form import BYTES_A_CHARACTER, text_form

BLOCKS = 64
LEAST_GROUPS = 8
"""The fewest row groups of a Parquet file, because a group is always read as a whole."""
QUOTE = b'"'


def write_sample(path: Path, size: int, folder: Path) -> Path | None:
    """Write about `size` bytes of the rows of a table into a file of the same kind in `folder`.

    Return None if rows can be separated only by reading the whole file: values with line breaks,
    characters of several bytes (UTF-16), KEEL and ARFF files.
    """
    sample = folder / f"sample{path.suffix}"
    try:
        written = (
            _write_parquet(path, size, sample)
            if is_parquet(path)
            else _write_text(path, size, sample)
        )
    except (OSError, ValueError, pa.ArrowException):
        return None  # The error will be explained when the whole file is read.
    return sample if written else None


def _write_text(path: Path, size: int, sample: Path) -> bool:
    form = text_form(path)
    if form.has_attributes or form.encoding in BYTES_A_CHARACTER:
        return False
    with path.open("rb") as stream, sample.open("wb") as out:
        for _ in range(len(form.before) + 1):
            line = stream.readline()
            if _is_open(line):
                return False
            out.write(line)
        for block in _blocks(stream, path.stat().st_size, size):
            if any(map(_is_open, block.splitlines())):
                return False
            out.write(block)
    return True


def _is_open(line: bytes) -> bool:
    """Return whether a value continues in the next line, or began in an earlier one."""
    return line.count(QUOTE) % 2 == 1


def _blocks(stream: BinaryIO, end: int, size: int) -> Iterator[bytes]:
    """Yield whole lines from evenly spaced places, beginning at the current position."""
    first = stream.tell()
    length, step = max(1, size // BLOCKS), (end - first) / BLOCKS
    for number in range(BLOCKS):
        start = first + int(number * step)
        if stream.tell() < start:  # Otherwise the last line of the block before continues here.
            stream.seek(start)
            stream.readline()
        block = stream.read(length) + stream.readline()
        if block:
            yield block if block.endswith(b"\n") else block + b"\n"


def _write_parquet(path: Path, size: int, sample: Path) -> bool:
    file = open_parquet(path)
    share = min(1.0, size / max(1, bytes_of(file)))
    groups = file.metadata.num_row_groups
    wanted = min(groups, max(LEAST_GROUPS, round(share * groups)))
    rows = max(1, int(share * file.metadata.num_rows / wanted))
    with ParquetWriter(sample, file.schema_arrow) as writer:
        for number in range(wanted):
            group = file.read_row_group(int(number * groups / wanted))
            writer.write_table(_spread_rows(group, rows))
    return True


def _spread_rows(table: pa.Table, rows: int) -> pa.Table:
    """Return about this many rows, in blocks from all over a table."""
    if table.num_rows <= rows:
        return table
    length, step = max(1, rows // BLOCKS), table.num_rows / BLOCKS
    return pa.concat_tables(table.slice(int(each * step), length) for each in range(BLOCKS))
