"""CSV files in the forms that people write them, read a part at a time."""

import csv
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from io import StringIO
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any

import pandas as pd

from foretune.errors import ExperienceError
from foretune.stores.files.compressed import open_compressed
from foretune.tables.formats.separators import LOOKED_AT, ROWS_LOOKED_AT, find_separator

ROWS_AT_ONCE = 1 << 17
_POINT = re.compile(r"[+-]?\d*\.\d+(?:[eE][+-]?\d+)?")
_COMMA = re.compile(r"[+-]?(?![1-9]\d{0,2},\d{3}$)\d*,\d+(?:[eE][+-]?\d+)?")
"""Numbers with a fraction. 1,234 is left out because it may be a thousand."""
_WHOLE = re.compile(r"[+-]?\d+(?:,\d{3})*(?:[eE][+-]?\d+)?")
EMPTY = ("", "None", "null", "NA", "nan", "NaN")


@dataclass(frozen=True)
class CsvFile:
    """A CSV file and the form in which it is written."""

    path: Path
    form: tuple[tuple[str, Any], ...]
    """Arguments for pandas that describe the form."""
    names: tuple[str, ...]
    """The columns, in the order of the file."""
    has_row_names: bool
    """Whether each row begins with its own name, which has no column name, as R writes it."""
    padded: bool = False
    """Whether white space stands around names or texts."""

    @classmethod
    def at(cls, path: Path) -> "CsvFile":
        """Find out the form of the file at `path` from its first rows."""
        with open_compressed(path) as stream:
            start = stream.read(LOOKED_AT).decode("utf-8-sig", errors="replace")
        separator = "\t" if ".tsv" in path.name.lower() else find_separator(start)
        _check_names(path, start, separator)
        form: dict[str, Any] = {"sep": separator, "decimal": _decimal_mark(start, separator)}
        if _ends_in_separators(start, separator):
            form["index_col"] = False
        with open_compressed(path) as stream:
            first = next(_parse_rows(stream, **form, dtype=str, nrows=ROWS_LOOKED_AT))
        names = tuple(map(str, first.columns))
        file = cls(path, tuple(form.items()), names, not isinstance(first.index, pd.RangeIndex))
        return file if all(name == name.strip() for name in names) else file.strip_cells()

    def strip_cells(self) -> "CsvFile":
        """Return the same file, to be read without white space around names and texts."""
        return replace(self, padded=True, names=tuple(name.strip() for name in self.names))

    def parts(
        self, names: Sequence[str], at: Callable[[int], object] = lambda _: None, **how: Any
    ) -> Iterator[pd.DataFrame]:
        """Yield the columns `names`, some rows at a time.

        at: is called with the number of bytes read so far, if the file is not packed.
        how: further arguments for pandas.
        """
        form = dict(self.form)
        if not self.padded and not self.has_row_names:
            form["usecols"] = list(names)
        with open_compressed(self.path) as stream:
            where = getattr(stream, "tell", None) if stream.seekable() else None
            for part in self._read(stream, form, how):
                yield part.reset_index(drop=True)[list(names)]
                at(where() if where is not None else 0)

    def _read(
        self, stream: Any, form: dict[str, Any], how: dict[str, Any]
    ) -> Iterator[pd.DataFrame]:
        if not self.padded:
            yield from _parse_rows(stream, **form, **how, chunksize=ROWS_AT_ONCE)
            return
        # Read the cells again without the white space: pandas takes "NA " for a text, and "True ",
        # too.
        texts = {"dtype": str, "keep_default_na": False}
        for written in _parse_rows(stream, **form, **texts, chunksize=ROWS_AT_ONCE):
            bare = written.reset_index(drop=True).rename(columns=str.strip)
            text = bare.map(str.strip, na_action="ignore").to_csv(index=False, sep=form["sep"])
            yield from _parse_rows(StringIO(text), **form, **how)


def has_padding(frame: pd.DataFrame) -> bool:
    """Return whether a text begins or ends with white space."""
    texts = frame.select_dtypes(include=["object", "string"])
    cells = (cell for name in texts for cell in texts[name].unique() if isinstance(cell, str))
    return any(text != text.strip() for text in cells)


def _parse_rows(stream: Any, **how: Any) -> Iterator[pd.DataFrame]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pd.errors.ParserWarning)  # of values beyond the names
        read = pd.read_csv(
            stream,
            skipinitialspace=True,  # "a, b" has two columns, and neither begins with a space
            low_memory=False,
            **how,
        )
    if isinstance(read, pd.DataFrame):
        yield read
        return
    while True:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", pd.errors.ParserWarning)
            part = next(read, None)
        if part is None:
            return
        yield part


def _ends_in_separators(start: str, separator: str) -> bool:
    """Return whether each row, except the header, has one separator too many at its end.

    pandas would take the first value of such a row for the row's name, as R writes it.
    """
    header, *rows = _first_rows(start, separator) or [[]]
    return bool(rows) and all(len(row) == len(header) + 1 and not row[-1] for row in rows)


def _first_rows(start: str, separator: str) -> list[list[str]]:
    """Return the header and the first rows of values; nothing if they cannot be read."""
    lines = StringIO(start, newline=None)
    try:
        rows = csv.reader(lines, delimiter=separator, skipinitialspace=True)
        return list(islice(filter(None, rows), ROWS_LOOKED_AT))
    except csv.Error:
        return []  # pandas will say what is wrong


def _check_names(path: Path, start: str, separator: str) -> None:
    """Refuse two columns of one name. pandas would give the second one another name."""
    header = next(iter(_first_rows(start, separator)), [])
    names = Counter(filter(None, map(str.strip, header)))
    twice = [name for name, times in names.items() if times > 1]
    if twice:
        raise ExperienceError(
            f"the columns of a table must have different names, but '{path.name}' has "
            f"'{twice[0]}' twice: rename one of them, or leave it out",
            rule="repeated-column",
            field=twice[0],
        )


def _decimal_mark(start: str, separator: str) -> str:
    """Return a comma if semicolons separate and more columns have decimal commas than points."""
    if separator != ";":
        return "."
    rows = [line.split(separator) for line in start.splitlines()[1:]]
    columns = [[cell.strip(' "') for cell in column] for column in zip_longest(*rows, fillvalue="")]
    commas = sum(_all_numbers(column, _COMMA) for column in columns)
    return "," if commas > sum(_all_numbers(column, _POINT) for column in columns) else "."


def _all_numbers(cells: Sequence[str], fraction: re.Pattern[str]) -> bool:
    """Return whether a column holds only numbers, and some have such a fraction."""
    filled = [cell for cell in cells if cell not in EMPTY]
    fractions = [cell for cell in filled if fraction.fullmatch(cell)]
    return bool(fractions) and all(map(_WHOLE.fullmatch, set(filled).difference(fractions)))
