"""Numbers as people write them: 1.234,56 and 1,234.56, 5 €, $5, 12 %.

Where thousands and fractions look alike, as in 1,234 and 1.234, a column does not say what it
means. Then the other columns of its table do: those that leave no doubt, where they agree.
"""

import re
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from functools import cache, partial
from typing import Any

import numpy as np
import pandas as pd

from foretune.arrays import Floats

MARKS = ".,"
"""What may divide a number from its fraction, the likelier one first."""
SPACES = " \u00a0\u202f"
APOSTROPHES = "'\u2019"
THOUSANDS = {".": f",{APOSTROPHES}{SPACES}", ",": f".{APOSTROPHES}{SPACES}"}
"""What may divide thousands, by the mark of fractions."""
CURRENCIES = "$€£¥₹₩₽₺₪฿"
MINUS = "\u2212-"
"""The sign of books, and the hyphen, which ends a class of characters or else is a range."""
LOOKED_AT = 100
"""So many texts mostly show what a column is not."""


def _pattern(mark: str) -> re.Pattern[str]:
    currency, space = f"[{CURRENCIES}]", f"[{SPACES}]?"
    # Thousands never begin with a zero, so that 0,125 can only be a fraction.
    thousands = rf"[1-9]\d{{0,2}}(?P<between>[{THOUSANDS[mark]}])\d{{3}}(?:(?P=between)\d{{3}})*"
    return re.compile(
        rf"\s*(?P<sign>[+{MINUS}]?){space}(?P<before>{currency}?){space}(?P<later_sign>[{MINUS}]?)"
        rf"(?P<whole>{thousands}|\d+)(?:{re.escape(mark)}(?P<fraction>\d+))?"
        rf"(?P<power>(?:[eE][+-]?\d+)?){space}(?P<after>(?:{currency}|%)?)\s*"
    )


PATTERNS = {mark: _pattern(mark) for mark in MARKS}


TableMark = Callable[[], str]
"""What a table says where a column leaves a doubt: a mark, or "". Asked only then."""


def no_mark() -> str:
    """What is said of a column without a table."""
    return ""


def decimal_mark(present: "pd.Series[Any]", table: TableMark = no_mark) -> str:
    """What divides whole numbers from fractions, if all texts are numbers of one unit; else "".

    Where thousands and fractions look alike, the table decides; if it does not, 1,234 is 1234.
    """
    marks = _possible_marks(present)
    return (marks if len(marks) < 2 else table()) or marks[:1]


def new_mark(present: "pd.Series[Any]", table: TableMark, before: str) -> str:
    """The mark of a column that held numbers before, and in a new table may hold others beside.

    What most of those texts show that leave no doubt is believed, then what the new table says,
    then the mark of before; without any, 1,234 is 1234, as in the table of the fit.
    """
    texts = Counter(value for value in present if isinstance(value, str))
    if not texts:
        return before
    shown: Counter[str] = Counter()
    for text, times in texts.items():
        shown[_marks_of([text])] += times
    if shown["."] == shown[","]:
        return table() or before or MARKS[0]
    return max(MARKS, key=shown.__getitem__)


def table_mark(frame: pd.DataFrame, otherwise: str = "") -> TableMark:
    """The mark on which all columns agree that leave no doubt; else `otherwise`."""
    return cache(partial(_agreed, frame, otherwise))


def _agreed(frame: pd.DataFrame, otherwise: str) -> str:
    shown = {_sure_mark(column) for _, column in frame.items()} - {""}
    return shown.pop() if len(shown) == 1 else otherwise


def _sure_mark(column: "pd.Series[Any]") -> str:
    if pd.api.types.is_float_dtype(column.dtype):
        return "." if _has_fractions(column) and not maybe_thousands(column) else ""
    if pd.api.types.infer_dtype(column, skipna=True) != "string":
        return ""
    marks = _possible_marks(column.dropna())
    return marks if len(marks) == 1 else ""


def _has_fractions(column: "pd.Series[float]") -> bool:
    return len(_not_whole(column)) > 0


def maybe_thousands(column: "pd.Series[float]") -> bool:
    """Whether every number that is not whole has up to three digits before its point and after.

    Then the point may have divided thousands in the file: 1.234 for 1234.
    """
    parts = _not_whole(column)
    in_thousandths = 1000.0 * parts
    whole = np.abs(in_thousandths - np.round(in_thousandths)) < 1e-6
    return bool(len(parts) and (whole & (np.abs(parts) >= 1.0) & (np.abs(parts) < 1000.0)).all())


def points_in_doubt(frame: pd.DataFrame) -> list[str]:
    """The columns that have arrived as fractions, and whose points may have divided thousands."""
    floats = frame.select_dtypes("float")
    return [str(name) for name, column in floats.items() if maybe_thousands(column)]


def _not_whole(column: "pd.Series[float]") -> Floats:
    present = column.to_numpy(dtype=np.float64, na_value=np.nan)
    parts: Floats = present[np.isfinite(present) & (present != np.round(present))]
    return parts


def _possible_marks(present: "pd.Series[Any]") -> str:
    """The marks with which all values are numbers of one unit: none, one or both."""
    texts = [str(text) for text in present.unique()]
    # Most texts are no numbers, which the first ones show.
    return _marks_of(texts) if _marks_of(texts[:LOOKED_AT]) else ""


def _marks_of(texts: list[str]) -> str:
    return "".join(mark for mark in MARKS if _of_one_unit(texts, mark))


def _of_one_unit(texts: list[str], mark: str) -> bool:
    found = [PATTERNS[mark].fullmatch(text) for text in texts]
    units = {each["before"] + each["after"] for each in found if each is not None}
    return None not in found and len(units) <= 1


def units_in(present: "pd.Series[Any]") -> set[str]:
    """The signs of units that stand in texts."""
    return {*"".join(value for value in present if isinstance(value, str))} & {*CURRENCIES, "%"}


def number_written(value: object, mark: str) -> float:
    """The number that a text writes, or that stands there already; NaN for anything else."""
    if isinstance(value, int | float | Decimal | np.integer | np.floating):
        return float(value)
    found = PATTERNS[mark].fullmatch(str(value))
    if found is None:
        return np.nan
    whole = re.sub(r"\D", "", found["whole"])
    size = float(f"{whole}.{found['fraction'] or 0}{found['power']}")
    negative = bool({found["sign"], found["later_sign"]} & set(MINUS))
    return -size if negative else size
