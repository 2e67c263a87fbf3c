"""Reading a CSV or Parquet file into a data frame."""

import csv
import re
import warnings
from collections import Counter
from collections.abc import Collection, Sequence
from io import StringIO
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from foretune.errors import ExperienceError
from foretune.experience.frame import with_columns
from foretune.experience.importers.archive import existing
from foretune.experience.importers.packed import DAMAGED, unpacked
from foretune.experience.separators import LOOKED_AT, ROWS_LOOKED_AT, found_separator
from foretune.progress import Progress, tracked

CSV = (".csv", ".csv.gz", ".csv.zip", ".csv.bz2", ".csv.xz", ".tsv", ".tsv.gz")
PARQUET = (".parquet", ".pq")
WORDS = ("None", "null")
"""What a program writes for nothing, and what a choice may be called as well."""
_POINT = re.compile(r"[+-]?\d*\.\d+(?:[eE][+-]?\d+)?")
_COMMA = re.compile(r"[+-]?(?![1-9]\d{0,2},\d{3}$)\d*,\d+(?:[eE][+-]?\d+)?")
"""Numbers with a fraction; 1,234 may be thousands and tells nothing."""
_WHOLE = re.compile(r"[+-]?\d+(?:,\d{3})*(?:[eE][+-]?\d+)?")
EMPTY = ("", "None", "null", "NA", "nan", "NaN")


def read_table(
    source: Path | str, progress: Progress, *, texts: Collection[str] = ()
) -> pd.DataFrame:
    """The rows of the CSV (also packed) or Parquet file at `source`, at least one, numbered from 0.

    texts: columns that stay as CSV writes them, so that 007 and 7 are not the same, and NA is a
        name; only what is empty is a gap there.
    """
    reading = (_read(path, texts) for path in [existing(source)])
    [frame] = tracked(reading, progress, "reading the table", 1)
    return frame


def with_words(
    frame: pd.DataFrame, source: Path | str, names: Collection[str], *, prefix: str = ""
) -> pd.DataFrame:
    """The frame with WORDS in its columns `names`, where `read_table` has taken them for gaps."""
    words = where_words(source, names, frame.index, prefix=prefix)
    return frame.assign(
        **{
            name: frame[name].astype(object).mask(where.notna(), where)
            for name, where in words.items()
        }
    )


def where_words(
    source: Path | str, names: Collection[str], rows: "pd.Index[Any]", *, prefix: str = ""
) -> "dict[str, pd.Series[Any]]":
    """Of the columns `names` of a CSV file the cells with one of WORDS, and gaps elsewhere.

    In a Parquet file a text is a text, so there is nothing to find.

    rows: which ones of the file.
    prefix: what stands before `names` there.
    """
    path = existing(source)
    if not names or is_parquet(path):
        return {}
    written = _read_csv(path, dtype=str, keep_default_na=False).loc[rows]
    found = {name: written[prefix + name] for name in names}
    return {name: column.where(column.isin(WORDS)) for name, column in found.items()}


def is_parquet(source: Path | str) -> bool:
    """Whether a table is a Parquet file, going by its name."""
    return str(source).lower().endswith(PARQUET)


def _read(path: Path, texts: Collection[str]) -> pd.DataFrame:
    name = path.name.lower()
    if not name.endswith((*CSV, *PARQUET)):
        raise ExperienceError(
            f"a table must be a CSV (also packed) or Parquet file, but got '{path.name}': its "
            f"name must end with one of {', '.join((*CSV, *PARQUET))}"
        )
    try:
        if is_parquet(path):
            frame = pd.read_parquet(path).rename(columns=str)  # they may be numbered
            frame = frame.reset_index(drop=True)
        else:
            frame = _with_texts(_read_csv(path, dtype=dict.fromkeys(texts, str)), path, texts)
    except (pa.ArrowException, ValueError, *DAMAGED) as error:  # pandas' own are ValueErrors
        raise _unreadable(path, error) from error
    if frame.empty:
        raise ExperienceError(f"a table must have at least one row, but '{path}' has none")
    return frame


def _with_texts(frame: pd.DataFrame, path: Path, texts: Collection[str]) -> pd.DataFrame:
    """The frame with names such as NA, which pandas takes for gaps, in its columns `texts`."""
    gaps = [name for name in texts if name in frame and frame[name].isna().any()]
    if not gaps:
        return frame
    written = _read_csv(path, dtype=str, keep_default_na=False, na_values=[""])
    return with_columns(frame, {name: written[name] for name in gaps})


def _read_csv(path: Path, **how: Any) -> pd.DataFrame:
    with unpacked(path) as stream:
        start = stream.read(LOOKED_AT).decode("utf-8-sig", errors="replace")
    separator = "\t" if ".tsv" in path.name.lower() else found_separator(start)
    decimal = _decimal_mark(start, separator)
    _check_names(path, start, separator)
    form: dict[str, Any] = {"sep": separator, "decimal": decimal}
    if _ends_in_separators(start, separator):
        form["index_col"] = False
    with unpacked(path) as stream:
        frame = _parsed(stream, **form, **how)
    if not _has_padding(frame):
        return frame
    # Read again without it: pandas knows "NA " for no gap, and "True " for no truth value.
    with unpacked(path) as stream:
        written = _parsed(stream, **form, dtype=str, keep_default_na=False)
    bare = written.rename(columns=str.strip).map(str.strip, na_action="ignore")
    return _parsed(StringIO(bare.to_csv(index=False, sep=separator)), **form, **how)


def _parsed(stream: Any, **how: Any) -> pd.DataFrame:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pd.errors.ParserWarning)  # of values beyond the names
        frame: pd.DataFrame = pd.read_csv(
            stream,
            skipinitialspace=True,  # "a, b" has two columns, and neither begins with a space
            low_memory=False,
            **how,
        )
    return frame.reset_index(drop=True)


def _ends_in_separators(start: str, separator: str) -> bool:
    """Whether each row, but not the one of the names, has a separator too many at its end.

    Where rows have one value more than there are names, pandas would take the first one for the
    name of the row, as R writes it.
    """
    header, *rows = _first_rows(start, separator) or [[]]
    return bool(rows) and all(len(row) == len(header) + 1 and not row[-1] for row in rows)


def _first_rows(start: str, separator: str) -> list[list[str]]:
    """The names and the first rows of values; none where they cannot be told apart."""
    lines = StringIO(start, newline=None)
    try:
        rows = csv.reader(lines, delimiter=separator, skipinitialspace=True)
        return list(islice(filter(None, rows), ROWS_LOOKED_AT))
    except csv.Error:
        return []  # it is for pandas to say what is wrong


def _has_padding(frame: pd.DataFrame) -> bool:
    """Whether white space stands around a name or a text."""
    texts = frame.select_dtypes(include=["object", "string"])
    cells = (cell for name in texts for cell in texts[name].unique() if isinstance(cell, str))
    return any(text != text.strip() for text in chain(frame.columns, cells))


def _check_names(path: Path, start: str, separator: str) -> None:
    """Refuse two columns of one name: pandas would call the second one otherwise."""
    header = next(iter(_first_rows(start, separator)), [])
    names = Counter(filter(None, map(str.strip, header)))
    twice = [name for name, times in names.items() if times > 1]
    if twice:
        raise ExperienceError(
            f"the columns of a table must have different names, but '{path.name}' has "
            f"'{twice[0]}' twice: rename one of them, or leave it out"
        )


def _decimal_mark(start: str, separator: str) -> str:
    """A comma where semicolons divide, as where it is the rule, and more columns have it."""
    if separator != ";":
        return "."
    rows = [line.split(separator) for line in start.splitlines()[1:]]
    columns = [[cell.strip(' "') for cell in column] for column in zip_longest(*rows, fillvalue="")]
    commas = sum(_all_numbers(column, _COMMA) for column in columns)
    return "," if commas > sum(_all_numbers(column, _POINT) for column in columns) else "."


def _all_numbers(cells: Sequence[str], fraction: re.Pattern[str]) -> bool:
    """Whether a column holds numbers, some with such a fraction: words beside them tell nothing."""
    filled = [cell for cell in cells if cell not in EMPTY]
    fractions = [cell for cell in filled if fraction.fullmatch(cell)]
    return bool(fractions) and all(map(_WHOLE.fullmatch, set(filled).difference(fractions)))


def need_columns(frame: pd.DataFrame, names: list[str], source: Path | str) -> None:
    """Refuse a frame that lacks one of the columns `names`."""
    for name in names:
        if name not in frame.columns:
            known = ", ".join(f"'{column}'" for column in list(frame.columns)[:12])
            raise ExperienceError(
                f"the table '{Path(source).name}' must have a column '{name}', but it has "
                f"{known}: name another column, or another file"
            )


def _unreadable(path: Path, error: Exception) -> ExperienceError:
    if isinstance(error, UnicodeDecodeError):
        return ExperienceError(
            f"a table must be a text in UTF-8, but '{path}' is in another encoding: save it as "
            "UTF-8"
        )
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    return ExperienceError(f"'{path}' cannot be read as a table: {reason}")
