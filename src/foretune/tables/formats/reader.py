"""Reading tables as people keep them: CSV, Parquet, KEEL and ARFF files."""

import csv
import os
import warnings
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.lib import ArrowException

from foretune._base.data_frames import with_columns
from foretune.errors import UsageError
from foretune.tables.formats.arff import read_attributes
from foretune.tables.formats.first_look import check_is_file
from foretune.tables.formats.parquet import (
    batches,
    bytes_of,
    frame_of,
    is_parquet,
    open_parquet,
)
from foretune.tables.formats.text_form import (
    MISSING,
    READ,
    TextForm,
    column_names,
    gaps_beside,
    numbers_or_texts,
    rows_of_one_column,
    text_form,
    with_gaps,
)

PART_BYTES = 1 << 26
Texts = Mapping[str, Collection[str]]
"""Names of columns, and the values of each."""
NO_TEXTS: Texts = {}


@dataclass(frozen=True, slots=True)
class TextLayout:
    """The form of a text file without types."""

    separator: str | None = None
    """Found out if it is None. `" "` means any run of white space."""
    header: bool = True
    """Without a header, the columns are named c0, c1, ..."""
    decimal: str = "."


PLAIN = TextLayout()


def read_frame(path: Path, layout: TextLayout = PLAIN, *, texts: Texts = NO_TEXTS) -> pd.DataFrame:
    """Read the table in a file. The kind of the file follows from its name and content.

    Nominal attributes of KEEL and ARFF files become categories even if they look like numbers.
    pandas finds the types of plain text.

    texts: columns that stay as they are written, such as 007, if the file has no types. Their
        listed values are no gaps, even if they look like gaps.
    """
    with _one_sentence(path):
        if is_parquet(path):
            return _strip_padding(frame_of(open_parquet(path).read()))
        form = text_form(path, layout.separator)
        if form.has_attributes:
            return read_attributes(path, form)
        frame = _without_padding(_read_strictly(lambda: _csv(path, form, layout, texts)), texts)
        if not layout.header:
            frame.columns = pd.Index([f"c{position}" for position in range(frame.shape[1])])
        return frame


def read_parts(
    path: Path, *, part_bytes: int = PART_BYTES, texts: Texts = NO_TEXTS
) -> Iterator[pd.DataFrame]:
    """Read the same table as `read_frame` in parts, each of about this many bytes of the file.

    A part may have other types than the next one. KEEL and ARFF files are one part.

    texts: as for `read_frame`.
    """
    for part, _ in read_parts_with_copies(path, (), part_bytes=part_bytes, texts=texts):
        yield part


def read_parts_with_copies(
    path: Path, names: Sequence[str], *, part_bytes: int = PART_BYTES, texts: Texts = NO_TEXTS
) -> Iterator[tuple[pd.DataFrame, pa.Table]]:
    """Read the parts of `read_parts`, each with an exact copy of the columns of these names.

    A copy has the types of the file, or the cells as they are written if it has none. pandas would
    turn whole numbers beside gaps into fractions, and 007 into 7. Names that the table does not
    have are left out.
    """
    with _one_sentence(path):
        if is_parquet(path):
            for batch in batches(path, part_bytes):
                frame = _strip_padding(frame_of(batch))
                yield frame, batch.select(_present(names, batch.column_names))
            return
        form = text_form(path)
        if form.has_attributes:
            frame = read_attributes(path, form)
            copied = frame[_present(names, frame.columns)]
            yield frame, pa.Table.from_pandas(copied, preserve_index=False)
            return
        rows = max(1, int(part_bytes / form.bytes_a_row))
        with (
            closing(_csv_parts(path, form, rows, texts)) as parts,
            closing(_read_raw_cells(path, form, names, rows)) as copies,
        ):
            while (part := _read_strictly(lambda: next(parts, None))) is not None:
                yield part, next(copies)


def has_types(path: Path) -> bool:
    """Return whether a file has types, as Parquet, KEEL and ARFF files do."""
    with _one_sentence(path):
        return is_parquet(path) or text_form(path).has_attributes


def read_cells(path: Path, position: int) -> Iterator["pd.Series[str]"]:
    """Read a column of a file without types as it is written, gaps included, in parts."""
    with _one_sentence(path):
        form = text_form(path)
        rows = max(1, int(PART_BYTES / form.bytes_a_row))
        for part in _read_raw_parts(path, form, rows, [position]):
            yield part.iloc[:, 0]


def table_name(path: Path) -> str:
    """Return the name of a file without its ending, as a text for databases and file names.

    File names are bytes. Bytes that are no characters would be refused later.
    """
    name = os.fsencode(path.stem).decode("utf-8", "replace")
    try:
        os.fsencode(name)
    except UnicodeEncodeError:
        # Some systems know fewer characters. A question mark would begin a part of an address.
        return name.encode("ascii", "replace").decode().replace("?", "_")
    return name


def table_bytes(path: Path) -> int:
    """Return the size of a table: as text, or as Parquet before compression."""
    with _one_sentence(path):
        return bytes_of(open_parquet(path)) if is_parquet(path) else path.stat().st_size


def bytes_a_row(path: Path) -> float:
    """Estimate the bytes of a row in a file."""
    with _one_sentence(path):
        if is_parquet(path):
            file = open_parquet(path)
            return float(bytes_of(file) / max(1, file.metadata.num_rows))
        return text_form(path).bytes_a_row


def form_notes(path: Path) -> list[str]:
    """Return what was assumed about the form of a file: its characters, and title lines."""
    if is_parquet(path):
        return []
    form = text_form(path)
    encoding, title = form.encoding, [line for line in form.before[: form.title] if line.strip()]
    told = {
        "cp1252": "The file is not written in UTF-8 and was read as Windows-1252.",
        "latin-1": "The file is not written in UTF-8 and was read as Latin-1.",
        "utf-16": "The file was read as UTF-16.",
        "utf-32": "The file was read as UTF-32.",
    }
    notes = [told[encoding]] if encoding in told else []
    if title:
        first = title[0].strip(f'{form.separator}" \r\n')
        notes.append(
            f"What stands above the names of the columns, '{first}', was taken for a title."
        )
    return notes


@contextmanager
def _one_sentence(path: Path) -> Iterator[None]:
    """Turn any error about a file into a `UsageError`."""
    check_is_file(path)
    try:
        yield
    except UsageError:
        raise
    except (ValueError, OverflowError, csv.Error, OSError, ArrowException) as error:
        # OverflowError: pandas turns a whole number into a fraction with too many digits.
        said = " ".join(str(error).split())
        raise UsageError(
            f"a table must be a {READ} file, but '{path}' cannot be read as one ({said}): check "
            "its format",
            rule="table-format",
            value=str(path),
        ) from error


def _read_raw_cells(
    path: Path, form: TextForm, names: Sequence[str], rows: int
) -> Generator[pa.Table, None, None]:
    """Yield columns of a file without types as they are written, this many rows at a time.

    They are read separately, so a copy does not change how the other columns are read.
    """
    known = [name.strip() for name in _csv(path, form, PLAIN, nrows=0).columns]
    present = _present(names, known)
    if not present:
        yield from repeat(pa.table({}))
    positions = [known.index(name) for name in present]
    texts = pa.schema([(name, pa.large_string()) for name in present])
    for part in _read_raw_parts(path, form, rows, positions):
        cells = part.where(part != "", None)
        yield pa.Table.from_pandas(cells, schema=texts, preserve_index=False)


def _present(names: Sequence[str], known: Iterable[str]) -> list[str]:
    """Return the names that a table has, each once."""
    there = set(known)
    return [name for name in dict.fromkeys(names) if name in there]


def _csv_parts(
    path: Path, form: TextForm, rows: int, texts: Texts
) -> Generator[pd.DataFrame, None, None]:
    with _csv(path, form, PLAIN, texts, chunksize=rows) as parts:
        for part in parts:
            yield _without_padding(part, texts)


def _read_raw_parts(
    path: Path, form: TextForm, rows: int, positions: Sequence[int]
) -> Generator[pd.DataFrame, None, None]:
    """Yield some columns as they are written, gaps included: NA is the code of Namibia."""
    written: dict[str, Any] = {"dtype": str, "na_filter": False, "usecols": positions}
    with _csv(path, form, PLAIN, chunksize=rows, **written) as parts:
        for part in parts:
            part.columns = part.columns.str.strip()
            yield _strip_padding(part)


def _csv(
    path: Path, form: TextForm, layout: TextLayout, texts: Texts = NO_TEXTS, **more: Any
) -> Any:
    """Read a CSV file: a data frame, or with `chunksize` a reader of frames with that many rows.

    White space may stand around names and texts, because some programs make columns equally wide.
    """
    names = column_names(path, form) if layout.header else []
    header = sum(1 for line in form.before if line.strip())
    if len(names) == 1 and (rows := rows_of_one_column(path, form)):
        header = len(form.before)
        more = {"skip_blank_lines": False, "nrows": rows, **more}
    if texts:
        known = {name: str(name).strip() for name in _csv(path, form, layout, nrows=0).columns}
        more["dtype"] = {name: str for name in known if known[name] in texts}
        more["na_values"] = {name: gaps_beside(texts.get(known[name], ())) for name in known}
    return pd.read_csv(
        path,
        sep=r"\s+" if form.separator == " " else form.separator,
        header=header if layout.header else None,
        decimal=layout.decimal,
        encoding=form.encoding,
        # Otherwise a text file with a name that ends in .zip would be opened as an archive.
        compression=None,
        keep_default_na=False,
        skipinitialspace=True,
        low_memory=False,
        # Otherwise a first column without a name becomes an index, and all names are shifted.
        index_col=False,
        **{"na_values": list(MISSING), **more},
    )


def _without_padding(frame: pd.DataFrame, texts: Texts) -> pd.DataFrame:
    """Return what a file without types would hold if it had no white space around values."""
    frame.columns = pd.Index([str(name).strip() for name in frame.columns])
    return with_columns(
        frame,
        {
            name: with_gaps(cells, texts[name]) if name in texts else numbers_or_texts(cells)
            for name, cells in _strip_columns(frame).items()
        },
    )


def _strip_padding(frame: pd.DataFrame) -> pd.DataFrame:
    return with_columns(frame, _strip_columns(frame))


def _strip_columns(frame: pd.DataFrame) -> "dict[str, pd.Series[Any]]":
    """Return the columns in which a text has white space around it, without this white space."""
    padded = [str(name) for name, column in frame.items() if _has_padding(column)]
    return {name: frame[name].str.strip() for name in padded}


def _has_padding(column: "pd.Series[Any]") -> bool:
    if not pd.api.types.is_string_dtype(column.dtype):
        return False
    try:
        cells = pa.array(column, from_pandas=True)
    except (ArrowException, OverflowError):
        return False  # It has several types, or whole numbers that no type holds.
    are_texts = pa.types.is_string(cells.type) or pa.types.is_large_string(cells.type)
    return are_texts and bool(pc.any(pc.not_equal(cells, pc.utf8_trim_whitespace(cells))).as_py())


def _read_strictly(read: Callable[[], Any]) -> Any:
    """Return what `read` returns; raise a `ValueError` where pandas would leave values out."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)
        try:
            return read()
        except pd.errors.ParserWarning:
            raise ValueError("its rows have more values than its first line has names") from None
