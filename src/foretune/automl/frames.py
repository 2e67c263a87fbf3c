"""Reading tables as people keep them: CSV, Parquet, KEEL and ARFF files."""

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from foretune.errors import UsageError

MISSING = ("", "?", "<null>", "NA", "N/A", "NaN", "nan", "null", "NULL", "None")
"""How files write that a value is not known."""
SEPARATORS = ",;\t|"
SNIFFED_CHARACTERS = 1 << 16
ENCODINGS = ("utf-8-sig", "latin-1")
"""Tried in this order; every file can be read as the last one."""
_ATTRIBUTE = re.compile(r"@attribute\s+('[^']*'|\"[^\"]*\"|[^\s{\[]+)\s*(.*)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Layout:
    """How a text file without types is written."""

    separator: str | None = None
    """Found out when None; `" "` is any run of white space."""
    header: bool = True
    """Without one, the columns are named c0, c1, ..."""
    decimal: str = "."


PLAIN = Layout()


def read_frame(path: Path, layout: Layout = PLAIN) -> pd.DataFrame:
    """The table in a file, with missing values as missing; its kind is read off name and content.

    Nominal attributes of KEEL and ARFF files become categorical columns even if they look like
    numbers. Types of plain text are left to pandas.
    """
    if not path.is_file():
        raise UsageError(f"a table must be a file, but there is none at '{path}': check the path")
    try:
        if path.suffix.lower() in (".parquet", ".pq"):
            return pd.read_parquet(path)
        return _read_text(path, layout)
    except (ValueError, csv.Error, OSError) as error:
        said = " ".join(str(error).split())
        raise UsageError(
            f"a table must be a CSV, Parquet, KEEL or ARFF file, but '{path}' cannot be read as "
            f"one ({said}): check its format"
        ) from error


def _read_text(path: Path, layout: Layout) -> pd.DataFrame:
    encoding = _encoding(path)
    with path.open(encoding=encoding, newline="") as stream:
        start = stream.read(SNIFFED_CHARACTERS)
    if not start.strip():
        raise ValueError("it is empty")
    if start.lstrip().startswith(("@", "%")):
        with path.open(encoding=encoding) as stream:
            return _read_attributes(stream)
    separator = layout.separator or _sniffed(start)
    frame = pd.read_csv(
        path,
        sep=r"\s+" if separator == " " else separator,
        header=0 if layout.header else None,
        decimal=layout.decimal,
        encoding=encoding,
        na_values=list(MISSING),
        keep_default_na=False,
        skipinitialspace=True,
        low_memory=False,
    )
    if not layout.header:
        frame.columns = pd.Index([f"c{position}" for position in range(frame.shape[1])])
    return frame


def _encoding(path: Path) -> str:
    for encoding in ENCODINGS[:-1]:
        try:
            with path.open(encoding=encoding) as stream:
                while stream.read(1 << 20):
                    pass
        except UnicodeDecodeError:
            continue
        return encoding
    return ENCODINGS[-1]


def _sniffed(start: str) -> str:
    """The separator that divides the first line most often."""
    first = start.lstrip().splitlines()[0]
    return max(SEPARATORS, key=first.count)


def _read_attributes(lines: Iterator[str]) -> pd.DataFrame:
    """KEEL or ARFF: `@attribute` lines that name and type the columns, then the rows."""
    kinds = _attributes(lines)
    if not kinds:
        raise ValueError("its header has no @attribute")
    rows = []
    for line in lines:
        text = line.strip()
        if text and not text.startswith("%"):
            cells = [cell.strip().strip("'\"") for cell in text.split(",")]
            if len(cells) != len(kinds):
                raise ValueError(f"a row has {len(cells)} values for {len(kinds)} attributes")
            rows.append(cells)
    frame = pd.DataFrame(rows, columns=list(kinds), dtype=object)
    frame = frame.mask(frame.isin(MISSING), None)
    return frame.apply(lambda column: _typed(column, nominal=kinds[str(column.name)]))


def _attributes(lines: Iterator[str]) -> dict[str, bool]:
    """The names of the columns up to `@data`, and whether each is nominal."""
    kinds: dict[str, bool] = {}
    for line in lines:
        if line.strip().lower().startswith("@data"):
            break
        found = _ATTRIBUTE.match(line.strip())
        if found is not None:
            name, kind = found.groups()
            kinds[name.strip("'\"")] = kind.startswith("{")
    return kinds


def _typed(column: "pd.Series[str]", *, nominal: bool) -> "pd.Series[Any]":
    return column.astype("category") if nominal else pd.to_numeric(column, errors="coerce")
