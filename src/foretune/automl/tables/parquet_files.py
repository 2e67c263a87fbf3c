"""Reading tables out of Parquet files."""

import re
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pyarrow as pa
from pyarrow.parquet import ParquetFile

from foretune.automl.tables.schema import as_table
from foretune.automl.tables.text_files import check_width

OF_BYTES = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary)
_TYPE_OF_ARROW = re.compile(rb'"numpy_type": *"[^"]*\[pyarrow\]"')


def is_parquet(path: Path) -> bool:
    """As its name says."""
    return path.suffix.lower() in (".parquet", ".pq")


def open_parquet(path: Path) -> ParquetFile:
    """A Parquet file that has no more columns than it may have."""
    file = ParquetFile(path)
    check_width(path, file.metadata.num_columns)
    return file


def bytes_of(file: ParquetFile) -> int:
    """How large the table is before compression."""
    about = file.metadata
    groups = [about.row_group(each) for each in range(about.num_row_groups)]
    return sum(group.total_byte_size for group in groups)


def batches(path: Path, part_bytes: int) -> Iterator[pa.Table]:
    """Some rows of a Parquet file at a time, and at least one table, which may have no rows."""
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
    """What a Parquet file holds, with texts as such even if they are kept as bytes.

    Refuses columns of the same name.
    """
    table = _with_texts(table)
    try:
        frame = table.to_pandas()
    except TypeError:
        frame = _without_types_of_arrow(table).to_pandas()
    return _without_index(frame)


def _with_texts(table: pa.Table) -> pa.Table:
    """Bytes as the texts that they are; each cell by itself, because parts must be read alike."""
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
    """Without the names of types, such as `list<item: int64>[pyarrow]`, that pandas cannot read.

    It writes them itself.
    """
    about = table.schema.metadata or {}
    plain = {key: _TYPE_OF_ARROW.sub(b'"numpy_type": "object"', about[key]) for key in about}
    return table.replace_schema_metadata(plain)


def _without_index(frame: pd.DataFrame) -> pd.DataFrame:
    """What pandas has kept as a named index is a column as others are.

    The numbers of the rows are none, whatever they are called: a part of a file does not have them.
    """
    known = {str(name) for name in frame.columns}
    levels = [] if isinstance(frame.index, pd.RangeIndex) else frame.index.names
    names = [name for name in levels if name is not None and str(name) not in known]
    others = [place for place, name in enumerate(frame.index.names) if name not in names]
    plain = frame.reset_index(level=others, drop=True) if others else frame
    return as_table(plain.reset_index() if names else plain)
