"""The form of a text file: its characters, separator, names and gaps."""

import codecs
import csv
import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from io import StringIO
from itertools import islice, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from foretune._base.names import quote_names
from foretune.errors import UsageError
from foretune.tables.formats.separators import LOOKED_AT, find_separator
from foretune.tables.formats.title_lines import lines_of_title

if TYPE_CHECKING:
    # The first look at a table must not wait for pandas.
    import pandas as pd

READ = "CSV, TSV, Parquet, KEEL or ARFF"
"""The formats that can be read, for messages."""
MISSING = (
    *("", "?", "<null>", "<NA>", "NA", "N/A", "n/a", "NaN", "nan", "-NaN", "-nan"),
    *("null", "NULL", "None", "#N/A", "#N/A N/A", "#NA"),
    *("1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"),
)
"""What pandas, R, spreadsheets and others write for a missing value."""
MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    # They come before the marks of UTF-16, because one of them begins with such a mark.
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
BYTES_A_CHARACTER = {"utf-16": 2, "utf-32": 4}
OTHER_FORMATS = {
    b"PK\x03\x04": "an Excel workbook or a zip archive",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook",
    b"\x1f\x8b": "a compressed file",
    b"BZh": "a compressed file",
    b"\xfd7zXZ": "a compressed file",
    b"\x28\xb5\x2f\xfd": "a compressed file",
    b"PAR1": "a Parquet file of another name",
    b"SQLite format 3": "an SQLite database",
    b"%PDF": "a PDF document",
    b"\x80\x04": "a pickle",
    b"\x80\x05": "a pickle",
}
"""The first bytes of files that are no text."""
OTHER_SUFFIXES = {
    ".xlsx": "an Excel workbook",
    ".xls": "an Excel workbook",
    ".ods": "a spreadsheet",
    ".json": "a JSON file",
    ".jsonl": "a JSON file",
    ".feather": "a Feather file",
    ".pkl": "a pickle",
    ".pickle": "a pickle",
}
_ATTRIBUTES = re.compile(r"@(relation|attribute|data)\b", re.IGNORECASE)
"""The beginning of a header line of a KEEL or ARFF file."""
_SEPARATOR = re.compile(r'"?sep=(\t|[^\w\s"])"? *(?:[\r\n]+|$)', re.IGNORECASE)
"""A first line that tells Excel the separator."""
SAVE_AS = "save it as a CSV file in UTF-8"
MOST_COLUMNS = 25_000
LONGEST_CELL = 2**31 - 1
"""In characters. Python's own limit is 131,072, and a document may be longer."""


@dataclass(frozen=True, slots=True)
class TextForm:
    """What must be known to read a text file."""

    encoding: str
    separator: str
    start: str
    """The first characters."""
    title: int = 0
    """How many title lines stand above the names of the columns."""

    @property
    def has_attributes(self) -> bool:
        """Whether it is a KEEL or ARFF file."""
        return _has_attributes(self.start)

    @property
    def before(self) -> list[str]:
        """The lines before the names of the columns: a title, blank lines, `sep=;` for Excel."""
        lines = StringIO(self.start, newline="")
        title = [*islice(lines, self.title)]
        return [*title, *takewhile(_names_nothing, lines)]

    @property
    def bytes_a_row(self) -> float:
        """An estimate of the bytes of a row."""
        lines = self.start.splitlines()
        return BYTES_A_CHARACTER.get(self.encoding, 1) * len(self.start) / max(1, len(lines))


def text_form(path: Path, separator: str | None = None) -> TextForm:
    """Find out the form of a text file; refuse a file that is no text."""
    with path.open("rb") as stream:
        start = stream.read(LOOKED_AT)
    _check_format(path, start)
    encoding = _encoding(path, start)
    with path.open(encoding=encoding, errors="replace", newline="") as text:
        characters = text.read(LOOKED_AT)
    if not characters.strip():
        raise UsageError(
            f"a table must have rows, but '{path}' is empty: check the path",
            rule="table-without-rows",
            value=str(path),
        )
    if characters.lstrip()[0] in "{[":
        _refuse(path, "looks like JSON")
    if separator is not None:
        return TextForm(encoding, separator, characters)
    if told := _SEPARATOR.match(characters):
        return TextForm(encoding, told[1], characters)
    title = 0 if _has_attributes(characters) else lines_of_title(characters)
    table = "".join(islice(StringIO(characters, newline=""), title, None))
    return TextForm(encoding, find_separator(table), characters, title)


def column_names(path: Path, form: TextForm) -> list[str]:
    """Return the names of the header; refuse repeated names, which pandas would change silently."""
    with path.open(encoding=form.encoding, newline="") as stream:
        lines = islice(stream, len(form.before), None)
        if form.separator == " ":
            names = next(lines, "").split()
        else:
            names = next(csv.reader(lines, delimiter=form.separator, skipinitialspace=True), [])
    check_width(path, len(names))
    stripped = [name.strip() for name in names]
    check_names(path, stripped)
    return stripped


def rows_of_one_column(path: Path, form: TextForm) -> int:
    """Return the rows of a table of one column. Blank lines count, except those at the end."""
    with path.open(encoding=form.encoding, newline="") as stream:
        csv.field_size_limit(LONGEST_CELL)
        rows = csv.reader(islice(stream, len(form.before), None), delimiter=form.separator)
        there = (place for place, row in enumerate(rows) if row and not row[0].isspace())
        return max(there, default=0)


def check_width(path: Path, count: int) -> None:
    """Refuse a table with more columns than can be inspected."""
    if count > MOST_COLUMNS:
        raise UsageError(
            f"a table must have at most {MOST_COLUMNS:,} columns, but '{path}' has {count:,}: keep "
            "those that may matter, or turn the table if its rows are its columns",
            rule="too-many-columns",
            value=count,
        )


def check_names(path: Path, names: Sequence[str]) -> None:
    """Refuse columns of the same name. Several columns may have no name."""
    twice = [name for name, times in Counter(names).items() if times > 1 and name]
    if twice:
        raise UsageError(
            f"the columns of a table must have different names, but '{path}' has "
            f"{quote_names(twice)} "
            "more than once: rename them",
            rule="repeated-column-names",
            value=twice,
        )


def gaps_beside(values: Collection[str]) -> list[str]:
    """Return the signs of a missing value that are no values here."""
    return [text for text in MISSING if not text or text not in values]


def with_gaps(cells: "pd.Series[Any]", values: Collection[str] = ()) -> "pd.Series[Any]":
    """Return the texts of a column with gaps as such, where `values` are no gaps."""
    return cells.mask(cells.isin(gaps_beside(values)))


def numbers_or_texts(cells: "pd.Series[Any]") -> "pd.Series[Any]":
    """Return the texts of a column with gaps as such; as numbers if all others are numbers."""
    from pandas import to_numeric

    numbers = to_numeric(cells, errors="coerce")
    others = with_gaps(cells[numbers.isna()])
    return with_gaps(cells) if others.notna().any() else numbers


def _has_attributes(start: str) -> bool:
    """Return whether the first line that is no comment belongs to a KEEL or ARFF file."""
    lines = (line.strip() for line in start.splitlines())
    first = next((line for line in lines if line and not line.startswith("%")), "@data")
    return _ATTRIBUTES.match(first) is not None


def _names_nothing(line: str) -> bool:
    return not line.strip() or _SEPARATOR.match(line) is not None


def _check_format(path: Path, start: bytes) -> None:
    suffix = path.suffix.lower()
    if suffix in OTHER_SUFFIXES:
        _refuse(path, f"is {OTHER_SUFFIXES[suffix]}")
    for magic, what in OTHER_FORMATS.items():
        if start.startswith(magic):
            _refuse(path, f"is {what}")


def _encoding(path: Path, start: bytes) -> str:
    for mark, encoding in MARKS.items():
        if start.startswith(mark):
            return encoding
    if b"\x00" in start:
        _refuse(path, "holds bytes that no text has")
    # Windows' encoding has the sign of the euro. Any file can be read as Latin-1.
    about = path.stat()
    version = (about.st_mtime_ns, about.st_size)
    known = ("utf-8", "cp1252")
    return next((each for each in known if _is_written_in(path, each, version)), "latin-1")


@lru_cache(maxsize=16)
def _is_written_in(path: Path, encoding: str, _version: tuple[int, int]) -> bool:
    """Return whether the whole file can be read so. The answer is kept for this version of it."""
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        with path.open("rb") as stream:
            while block := stream.read(1 << 20):
                decoder.decode(block)
            decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _refuse(path: Path, what: str) -> NoReturn:
    raise UsageError(
        f"a table must be a {READ} file, but '{path}' {what}: {SAVE_AS}",
        rule="table-format",
        value=str(path),
    )
