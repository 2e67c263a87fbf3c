"""Reading KEEL and ARFF files. Their header names the columns and their types."""

import re
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from typing import Any

import pandas as pd

from foretune.tables.formats.text_form import TextForm, check_names, numbers_or_texts

_QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_ATTRIBUTE = re.compile(rf"@attribute\s+({_QUOTED}|[^\s{{\[]+)\s*(.*)", re.IGNORECASE)
_OF_NUMBERS = re.compile(r"(numeric|real|integer)\b", re.IGNORECASE)
"""The beginnings of numeric types. A range may follow."""
_END = r"\s*(?:(?=,)|(?:(?<=\s)%.*)?$)"
"""The end of a value: a comma, the end of the row, or a comment."""
_WORD = r"(?:(?<!\s)[^,\s]|[^,\s%])[^,\s]*"
"""A character of a value without quotes. A percent sign after a space begins a comment."""
_CELL = re.compile(rf"(?:^|,)\s*((?:{_QUOTED})(?={_END})|(?:{_WORD}(?:\s+{_WORD})*)?){_END}")
"""A value of a row, perhaps in quotes."""
_QUOTE_OR_COMMENT = re.compile("['\"%]")
_NOT_KNOWN = ("", "?", "<null>")
"""Signs of a missing value if they have no quotes. None, NA or null may be values here."""


def read_attributes(path: Path, form: TextForm) -> pd.DataFrame:
    """Read a KEEL or ARFF file: `@attribute` lines with names and types, then the rows."""
    with path.open(encoding=form.encoding) as lines:
        kinds = _attributes(path, lines)
        if not kinds:
            raise ValueError("its header has no @attribute")
        rows = []
        for line in lines:
            text = line.strip()
            if text and not text.startswith("%"):
                cells = _cells(text)
                if len(cells) != len(kinds):
                    raise ValueError(f"a row has {len(cells)} values for {len(kinds)} attributes")
                rows.append(cells)
    frame = pd.DataFrame(rows, columns=list(kinds), dtype=object)
    return frame.apply(lambda column: _convert_column(column, kinds[str(column.name)]))


def _cells(row: str) -> list[str | None]:
    """Return the values of a row. Those in quotes may hold commas, and quotes after a backslash."""
    if not _QUOTE_OR_COMMENT.search(row):
        return [None if cell in _NOT_KNOWN else cell for cell in map(str.strip, row.split(","))]
    return [None if cell in _NOT_KNOWN else _strip_quotes(cell) for cell in _CELL.findall(row)]


def _strip_quotes(text: str) -> str:
    if "'" not in text and '"' not in text:
        return text
    quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "'\""
    return re.sub(r"\\(.)", r"\1", text[1:-1]) if quoted else text.strip("'\"")


def _attributes(path: Path, lines: Iterator[str]) -> dict[str, str]:
    """Read the names of the columns up to `@data`, and the type of each as it is written."""
    header = takewhile(lambda line: not line.strip().lower().startswith("@data"), lines)
    found = [_ATTRIBUTE.match(line.strip()) for line in header]
    kinds = [(_strip_quotes(each[1]), each[2]) for each in found if each is not None]
    check_names(path, [name for name, _ in kinds])
    return dict(kinds)


def _convert_column(column: "pd.Series[str]", kind: str) -> "pd.Series[Any]":
    if kind.startswith("{"):
        return column.astype("category")
    # Texts and dates stay as they are written.
    return numbers_or_texts(column) if _OF_NUMBERS.match(kind) else column
