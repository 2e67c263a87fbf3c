"""Reading tables from Parquet files."""

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.parquet import ParquetFile

from foretune.errors import UsageError
from foretune.tables.formats.first_look import PARQUET
from foretune.tables.formats.text_form import check_width
from foretune.tables.schema import as_table

MOST_TIMES = 1000
"""A table may take this many times its file's size in memory. Repeated text takes up to 200
times."""
SMALL = 2**30
"""Bytes that every table may take in memory."""
WIDTHS = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 8, "FLOAT": 4, "DOUBLE": 8}
"""Bytes of a value in memory, for each type in the file."""
OFFSET = 8
"""Bytes that a text takes beside its characters."""
PART_ROWS = 2**18
OF_BYTES = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary)
_TYPE_OF_ARROW = re.compile(rb'"numpy_type": *"[^"]*\[pyarrow\]"')


def is_parquet(path: Path) -> bool:
    """Return whether the name of a file is that of a Parquet file."""
    return path.suffix.lower() in PARQUET


def open_parquet(path: Path) -> ParquetFile:
    """Open a Parquet file; refuse too many columns, or too much memory.

    A repeated value takes almost no room in the file, but its full width in memory.
    """
    file = ParquetFile(path)
    check_width(path, file.metadata.num_columns)
    size = path.stat().st_size
    most = max(SMALL, MOST_TIMES * size)
    if bytes_of(file) > most or _bytes_with_texts(path, file, most) > most:
        raise UsageError(
            f"a table must not have more than {MOST_TIMES:,} times its file's size in memory, but "
            f"'{path}' has {file.metadata.num_rows:,} rows in {size:,} bytes: keep fewer of the "
            "rows that repeat",
            rule="inflated-table",
            value=size,
        )
    return file


def bytes_of(file: ParquetFile) -> int:
    """Return the size of the table in memory. Each different text of a column counts once."""
    return sum(_chunk_bytes(chunk) for chunk in _chunks(file))


def _chunks(file: ParquetFile) -> Iterator[Any]:
    """Yield what the file says about each column of each row group."""
    about = file.metadata
    for group in range(about.num_row_groups):
        yield from (about.row_group(group).column(each) for each in range(about.num_columns))


def _chunk_bytes(chunk: Any) -> int:
    width = WIDTHS.get(chunk.physical_type, OFFSET)
    return max(int(chunk.total_uncompressed_size), int(chunk.num_values) * width)


def _bytes_with_texts(path: Path, file: ParquetFile, most: int) -> int:
    """Return the size of the table with all texts written out, counted up to more than `most`.

    The file does not say how long its texts are. A column is read only if its texts may be longer
    than `most`, and each different text once.
    """
    total = bytes_of(file)
    doubtful = {
        chunk.path_in_schema
        for chunk in _chunks(file)
        if chunk.physical_type not in WIDTHS
        and chunk.num_values * chunk.total_uncompressed_size > most - total
    }
    for name in sorted(doubtful):
        texts = ParquetFile(path, read_dictionary=[name])
        for part in texts.iter_batches(batch_size=PART_ROWS, columns=[name]):
            total += sum(_text_bytes(column) for column in part.columns)
            if total > most:
                return total
    return total


def _text_bytes(cells: pa.Array) -> int:
    """Return the bytes of all texts in a column, including those in lists and structures."""
    if pa.types.is_struct(cells.type):
        return sum(_text_bytes(part) for part in cells.flatten())
    if pa.types.is_nested(cells.type):
        return _text_bytes(cells.flatten()) if hasattr(cells, "flatten") else cells.nbytes
    if not pa.types.is_dictionary(cells.type):
        return int(cells.nbytes)
    lengths = pc.binary_length(cells.dictionary)
    return int(pc.sum(pc.take(lengths, cells.indices).cast(pa.int64())).as_py() or 0)


def batches(path: Path, part_bytes: int) -> Iterator[pa.Table]:
    """Yield some rows of a Parquet file at a time: at least one table, which may have no rows."""
    file = open_parquet(path)
    rows = max(1, file.metadata.num_rows)
    batch = max(1, int(part_bytes / max(1.0, bytes_of(file) / rows)))
    empty = True
    for part in file.iter_batches(batch_size=batch):
        empty = False
        yield pa.Table.from_batches([part])
    if empty:
        yield file.schema_arrow.empty_table()


def frame_of(table: pa.Table) -> pd.DataFrame:
    """Return a table as a data frame, with bytes as texts; refuse columns of the same name."""
    return _without_index(to_pandas(_with_texts(table)))


def to_pandas(table: pa.Table) -> pd.DataFrame:
    """Convert a table by pandas' notes in the file. Incomplete notes are ignored."""
    for noted in (table, _without_types_of_arrow(table)):
        with suppress(TypeError, KeyError, IndexError, AttributeError):
            frame: pd.DataFrame = noted.to_pandas()
            return frame
    plain: pd.DataFrame = table.to_pandas(ignore_metadata=True)
    return plain


def _with_texts(table: pa.Table) -> pa.Table:
    """Convert bytes to texts, cell by cell, because parts of a file must be read alike."""
    for place, field in enumerate(table.schema):
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        if any(is_one(kind) for is_one in OF_BYTES):
            table = table.set_column(place, field.name, _texts(table.column(place), kind))
    return table


def _texts(cells: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    plain = cells.cast(kind)
    try:
        return plain.cast(pa.large_string())
    except pa.ArrowInvalid:  # some bytes are no characters
        values = plain.to_pylist()
        texts = [
            None if each is None else each.decode(errors="backslashreplace") for each in values
        ]
        return pa.chunked_array([pa.array(texts, pa.large_string())])


def _without_types_of_arrow(table: pa.Table) -> pa.Table:
    """Drop names of Arrow types such as `list<item: int64>[pyarrow]` from pandas' notes.

    pandas writes them but cannot read them.
    """
    about = table.schema.metadata or {}
    plain = {key: _TYPE_OF_ARROW.sub(b'"numpy_type": "object"', about[key]) for key in about}
    return table.replace_schema_metadata(plain)


def _without_index(frame: pd.DataFrame) -> pd.DataFrame:
    """Turn a named index of pandas into a column.

    Row numbers do not become a column, whatever their name is: a part of a file does not have them.
    """
    known = {str(name) for name in frame.columns}
    levels = [] if isinstance(frame.index, pd.RangeIndex) else frame.index.names
    names = [name for name in levels if name is not None and str(name) not in known]
    others = [place for place, name in enumerate(frame.index.names) if name not in names]
    plain = frame.reset_index(level=others, drop=True) if others else frame
    return as_table(plain.reset_index() if names else plain)
