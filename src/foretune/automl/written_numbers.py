"""Numbers as people write them: 1.234,56 and 1,234.56, 5 €, $5, 12 %."""

import re
from typing import Any

import numpy as np
import pandas as pd

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


def decimal_mark(present: "pd.Series[Any]") -> str:
    """What divides whole numbers from fractions, if all texts are numbers of one unit; else "".

    Where thousands and fractions look alike, as in 1,234, it is thousands.
    """
    texts = [str(text) for text in present.unique()]
    for mark in MARKS:
        # Most texts are no numbers, which the first ones show.
        if _of_one_unit(texts[:LOOKED_AT], mark) and _of_one_unit(texts, mark):
            return mark
    return ""


def _of_one_unit(texts: list[str], mark: str) -> bool:
    found = [PATTERNS[mark].fullmatch(text) for text in texts]
    units = {each["before"] + each["after"] for each in found if each is not None}
    return None not in found and len(units) <= 1


def number_written(value: object, mark: str) -> float:
    """The number that a text writes, or that stands there already; NaN for anything else."""
    if isinstance(value, int | float | np.integer | np.floating):
        return float(value)
    found = PATTERNS[mark].fullmatch(str(value))
    if found is None:
        return np.nan
    whole = re.sub(r"\D", "", found["whole"])
    size = float(f"{whole}.{found['fraction'] or 0}{found['power']}")
    negative = bool({found["sign"], found["later_sign"]} & set(MINUS))
    return -size if negative else size
