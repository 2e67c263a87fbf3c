"""Reading tables out of Parquet files."""

from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pyarrow as pa
from pyarrow.parquet import ParquetFile

from foretune.automl.tables.schema import named_by_text


def is_parquet(path: Path) -> bool:
    """As its name says."""
    return path.suffix.lower() in (".parquet", ".pq")


def bytes_of(file: ParquetFile) -> int:
    """How large the table is before compression."""
    about = file.metadata
    groups = [about.row_group(each) for each in range(about.num_row_groups)]
    return sum(group.total_byte_size for group in groups)


def batches(path: Path, part_bytes: int) -> Iterator[pa.Table]:
    """Some rows of a Parquet file at a time, and at least one table, which may have no rows."""
    file = ParquetFile(path)
    rows = max(1, file.metadata.num_rows)
    batch = max(1, int(part_bytes / max(1.0, bytes_of(file) / rows)))
    empty = True
    for part in file.iter_batches(batch_size=batch):
        empty = False
        yield pa.Table.from_batches([part])
    if empty:
        yield file.schema_arrow.empty_table()


def without_index(frame: pd.DataFrame) -> pd.DataFrame:
    """The table of a Parquet file: what pandas has kept as a named index is a column as others are.

    The numbers of the rows are none, whatever they are called: a part of a file does not have them.
    """
    known = {str(name) for name in frame.columns}
    levels = [] if isinstance(frame.index, pd.RangeIndex) else frame.index.names
    names = [name for name in levels if name is not None and str(name) not in known]
    others = [place for place, name in enumerate(frame.index.names) if name not in names]
    plain = frame.reset_index(level=others, drop=True) if others else frame
    return named_by_text(plain.reset_index() if names else plain)
