"""Reading a CSV or Parquet file, a part at a time, into columns that take little memory."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from foretune._base.arrays import Bools
from foretune._base.progress import SILENT, Progress
from foretune.errors import ExperienceError
from foretune.stores.files.archive import existing
from foretune.stores.files.cell_columns import ColumnCells
from foretune.stores.files.column_builder import ColumnBuilder
from foretune.stores.files.compressed import DAMAGED
from foretune.stores.files.csv_parts import ROWS_AT_ONCE, CsvFile, has_padding
from foretune.stores.files.list_columns import (
    ListBuilder,
    ListColumn,
    holds_json_lists,
    is_list_type,
    read_json_lists,
)
from foretune.tables.formats.parquet import to_pandas

CSV = (".csv", ".csv.gz", ".csv.zip", ".csv.bz2", ".csv.xz", ".tsv", ".tsv.gz")
PARQUET = (".parquet", ".pq")
WORDS = ("None", "null")
"""Words that programs write for "no value". A choice may have such a name as well."""
MIB = 1 << 20


@dataclass(frozen=True)
class FileTable:
    """Rows of a file, column by column."""

    path: Path
    names: Sequence[str]
    """All columns of the file."""
    columns: dict[str, ColumnCells]
    """The columns that were asked for."""
    rows: NDArray[np.int64] | None = None
    """(n,), the positions of these rows in the file; None if they are all."""
    csv: CsvFile | None = None
    """The CSV file; None for Parquet."""
    lists: dict[str, ListColumn] = field(default_factory=dict)
    """The columns of numbers that hold lists. They are not in `columns`."""
    other_lists: Sequence[str] = ()
    """The columns of a Parquet file that hold lists where no numbers were asked for."""

    def __len__(self) -> int:
        columns = [len(column) for column in self.columns.values()]
        return max([*columns, *(len(column) for column in self.lists.values())], default=0)

    def row(self, index: int) -> int:
        """Return the position in the file of a row."""
        return index if self.rows is None else int(self.rows[index])

    def take(self, rows: Bools) -> "FileTable":
        """Return some of the rows."""
        if rows.all():
            return self
        columns = {name: column.take(rows) for name, column in self.columns.items()}
        chosen = np.flatnonzero(rows)
        return replace(
            self,
            columns=columns,
            rows=chosen if self.rows is None else self.rows[chosen],
            lists={name: column.take(rows) for name, column in self.lists.items()},
        )

    def rename_columns(self, names: Mapping[str, str]) -> "FileTable":
        """Return the columns under other names, without those that have none."""
        return replace(
            self,
            columns={new: self.columns[old] for old, new in names.items() if old in self.columns},
            names=list(names.values()),
        )

    def words(self, names: Collection[str], *, prefix: str = "") -> dict[str, ColumnCells]:
        """Return the cells of columns of a CSV file that hold one of WORDS and were read as gaps.

        All other cells are empty. In a Parquet file, a text is never read as a gap.

        prefix: what stands before `names` in the file.
        """
        if self.csv is None or not names:
            return {}
        held = {prefix + name: name for name in names}
        written = _texts(self.csv, list(held), keep_default_na=False)
        found = {}
        for name, column in written.items():
            here = column if self.rows is None else column.take(self.rows)
            found[held[name]] = here.map_values(lambda cell: cell if cell in WORDS else None)
        return found

    def to_frame(self) -> pd.DataFrame:
        """Return the columns as a data frame."""
        return pd.DataFrame(
            {
                name: column.values if column.codes is None else column.tolist()
                for name, column in self.columns.items()
            }
        )


def read_columns(
    source: Path | str,
    progress: Progress = SILENT,
    *,
    texts: Collection[str] = (),
    numbers: Collection[str] = (),
    wanted: Callable[[str], bool] = lambda _: True,
) -> FileTable:
    """Read the rows of the CSV (also packed) or Parquet file at `source`; refuse an empty one.

    texts: columns that stay as CSV writes them: 007 differs from 7, and NA is a name. Only an empty
        cell is a gap.
    numbers: columns that hold a number in each cell, or a list of numbers.
    wanted: which columns are read.
    """
    path = existing(source)
    _check_ending(path)
    try:
        if is_parquet(path):
            table = _read_parquet(path, progress, numbers, wanted)
        else:
            table = _read_csv(CsvFile.at(path), progress, texts, wanted)
            _read_lists_in(table, numbers)
    except (pa.ArrowException, ValueError, OverflowError, *DAMAGED) as error:
        # The errors of pandas are ValueErrors. A whole number of very many digits is an
        # OverflowError.
        raise _unreadable(path, error) from error
    if len(table) == 0:
        raise ExperienceError(
            f"a table must have at least one row, but '{path}' has none",
            rule="empty-table",
            value=str(path),
        )
    return table


def is_parquet(source: Path | str) -> bool:
    """Return whether the name of a table is that of a Parquet file."""
    return str(source).lower().endswith(PARQUET)


def need_columns(known: Sequence[str], names: Iterable[str], source: Path | str) -> None:
    """Refuse a table without one of the columns `names`."""
    for name in names:
        if name not in known:
            shown = ", ".join(f"'{column}'" for column in list(known)[:12])
            raise ExperienceError(
                f"the table '{Path(source).name}' must have a column '{name}', but it has "
                f"{shown}: name another column, or another file",
                rule="unknown-column",
                field=name,
            )


def _check_ending(path: Path) -> None:
    if not path.name.lower().endswith((*CSV, *PARQUET)):
        raise ExperienceError(
            f"a table must be a CSV (also packed) or Parquet file, but got '{path.name}': its "
            f"name must end with one of {', '.join((*CSV, *PARQUET))}",
            rule="unknown-table-format",
            value=path.name,
        )


def _read_csv(
    file: CsvFile, progress: Progress, texts: Collection[str], wanted: Callable[[str], bool]
) -> FileTable:
    names = [name for name in file.names if wanted(name)]
    as_text = dict.fromkeys((name for name in names if name in texts), str)
    size = file.path.stat().st_size
    steps = _Steps(progress, "reading the table (MiB)", size)
    builders = {name: ColumnBuilder() for name in names}
    n = 0
    with steps:
        for part in file.parts(names, steps.reach, dtype=as_text):
            if not file.padded and has_padding(part):
                return _read_csv(file.strip_cells(), progress, texts, wanted)
            for name, builder in builders.items():
                builder.add(part[name])
            n += len(part)
    if n == 0:
        return FileTable(file.path, file.names, {}, csv=file)
    columns = {}
    mixed = [name for name in names if len(builders[name].kinds) > 1]
    for name in names:
        builder = builders.pop(name)
        if name not in mixed:
            columns[name] = builder.finish(whole=True)
    if mixed:  # some parts hold words and others numbers: all cells are texts
        columns |= _texts(file, mixed)
    # pandas takes names such as NA for gaps
    gaps = [name for name in as_text if not columns[name].present.all()]
    if gaps:
        columns |= _texts(file, gaps, keep_default_na=False, na_values=[""])
    columns = {name: columns[name] for name in names}
    return FileTable(file.path, file.names, columns, csv=file)


def _texts(file: CsvFile, names: Sequence[str], **how: Any) -> dict[str, ColumnCells]:
    """Read columns of a CSV file as texts."""
    builders = {name: ColumnBuilder() for name in names}
    for part in file.parts(names, dtype=str, **how):
        for name, builder in builders.items():
            builder.add(part[name])
    return {name: builder.finish(whole=False) for name, builder in builders.items()}


def _read_lists_in(table: FileTable, numbers: Collection[str]) -> None:
    """Move the columns of numbers that hold lists from `columns` to `lists`."""
    for name in numbers:
        if name in table.columns and holds_json_lists(table.columns[name]):
            table.lists[name] = read_json_lists(table.columns.pop(name), name)


def _read_parquet(
    path: Path, progress: Progress, numbers: Collection[str], wanted: Callable[[str], bool]
) -> FileTable:
    lists = _list_columns(path, wanted)
    others = [name for name in lists if name not in numbers]
    list_builders = {name: ListBuilder(name) for name in lists if name in numbers}
    names, parts = _parquet_parts(path, lambda name: wanted(name) and name not in others)
    chosen = [name for name in names if wanted(name) and name not in lists]
    builders = {name: ColumnBuilder() for name in chosen}
    n = 0
    progress.start("reading the table", None)
    try:
        for part in parts:
            for name, list_builder in list_builders.items():
                for chunk in part[name].chunks:
                    list_builder.add(chunk)
            frame = to_pandas(part.drop_columns([*list_builders])).rename(columns=str)
            for name, builder in builders.items():
                builder.add(frame[name].reset_index(drop=True))
            n += len(part)
            progress.step(note=f"{n:,} rows")
    finally:
        progress.stop()
    columns = {}
    for name in chosen if n else ():
        columns[name] = builders.pop(name).finish(whole=True)
    held = {name: builder.finish() for name, builder in list_builders.items()}
    return FileTable(path, names, columns, lists=held, other_lists=others)


def _list_columns(path: Path, wanted: Callable[[str], bool]) -> list[str]:
    """Return the wanted columns of a Parquet file whose cells are lists."""
    schema = pq.ParquetDataset(path).schema if path.is_dir() else pq.read_schema(path)
    return [each.name for each in schema if is_list_type(each.type) and wanted(each.name)]


def _parquet_parts(
    path: Path, wanted: Callable[[str], bool]
) -> tuple[list[str], Iterator[pa.Table]]:
    """Return the names of the columns, and an iterator of parts."""
    if path.is_dir():  # a folder of several files
        whole = pq.read_table(path)
        return [str(name) for name in to_pandas(whole.schema.empty_table()).columns], iter([whole])
    file = pq.ParquetFile(path)
    names = [str(name) for name in to_pandas(file.schema_arrow.empty_table()).columns]
    # A column that pandas does not name may hold row numbers.
    chosen = [name for name in file.schema_arrow.names if name not in names or wanted(name)]

    def parts() -> Iterator[pa.Table]:
        for batch in file.iter_batches(ROWS_AT_ONCE, columns=chosen, use_threads=False):
            yield pa.Table.from_batches([batch])

    return names, parts()


class _Steps:
    """Tells a progress display how many MiB of a file have been read."""

    def __init__(self, progress: Progress, what: str, size: int) -> None:
        self._progress, self._what, self._total = progress, what, max(1, size // MIB)
        self._at = 0

    def __enter__(self) -> "_Steps":
        self._progress.start(self._what, self._total)
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def reach(self, position: int) -> None:
        """Show that so many bytes have been read."""
        at = min(self._total, position // MIB)
        self._progress.step(at - self._at)
        self._at = at


def _unreadable(path: Path, error: Exception) -> ExperienceError:
    if isinstance(error, UnicodeDecodeError):
        return ExperienceError(
            f"a table must be a text in UTF-8, but '{path}' is in another encoding: save it as "
            "UTF-8",
            rule="not-utf-8",
            value=str(path),
        )
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    return ExperienceError(
        f"'{path}' cannot be read as a table: {reason}", rule="unreadable-table", value=str(path)
    )
