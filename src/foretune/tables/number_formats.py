"""Numbers as people write them: 1.234,56 and 1,234.56, 5 €, $5, CHF 5, 12 %, (5) and 5,00- for -5.

If thousands and fractions look alike, as in 1,234 and 1.234, a column is ambiguous. Then the clear
columns of its table decide, if they agree.
"""

import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from decimal import Decimal
from functools import cache, partial
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from foretune._base.arrays import Bools, Floats

MARKS = ".,"
"""Decimal marks, the more likely one first."""
SPACES = " \u00a0\u202f"
APOSTROPHES = "'\u2019"
THOUSANDS = {".": f",{APOSTROPHES}{SPACES}", ",": f".{APOSTROPHES}{SPACES}"}
"""The marks that may divide thousands, for each decimal mark."""
SIGNS = "$€£¥₹₩₽₺₪฿"
CODES = {
    **{"EUR": "€", "USD": "$", "US$": "$", "GBP": "£", "JPY": "¥", "INR": "₹"},
    **{"CHF": "\ue000", "Fr.": "\ue000", "R$": "\ue001", "BRL": "\ue001"},
    **{"kr": "\ue002", "kr.": "\ue002", "SEK": "\ue003", "NOK": "\ue004", "DKK": "\ue005"},
    **{"zł": "\ue006", "PLN": "\ue006", "Kč": "\ue007", "CZK": "\ue007"},
    **{"Ft": "\ue008", "HUF": "\ue008", "CAD": "\ue009", "AUD": "\ue00a", "CNY": "\ue00b"},
}
"""The codes of currencies, and one character with the same meaning. If Unicode has none, it is a
character of private use, which tables hardly contain. Models store it, so it never changes."""
CURRENCIES = SIGNS + "".join(sorted({*CODES.values()} - {*SIGNS}))
UNITS = f"{CURRENCIES}%"
MINUS = "\u2212-"
"""The minus of books, and the hyphen, which must be the last character of a class in a pattern."""
AROUND = f"+{MINUS}{UNITS}{SPACES}"
"""What may stand before and behind the digits of a number."""
LOOKED_AT = 100
"""This many texts mostly show what a column is."""
_NEGATIVE = rf"^\D*[{MINUS}]"
"""The beginning of negative numbers. A sign behind a digit belongs to a power of ten."""
_IN_BRACKETS = (
    rf"^([{CURRENCIES}]?[{SPACES}]?)"
    rf"\([{SPACES}]?([^()+{MINUS}]+?)[{SPACES}]?\)"
    rf"([{SPACES}]?[{UNITS}]?)$"
)
"""Negative numbers as bookkeepers write them: (5), $(5), (5 €)."""
_SIGN_BEHIND = (
    rf"^([^()+{MINUS}]*\d[{MARKS}][^()+{MINUS}]*\d)"
    rf"[{SPACES}]?[{MINUS}]([{SPACES}]?[{UNITS}]?)$"
)
"""Negative numbers as some programs write them: 5,00- and 1.234- €. Without a mark, 2- may be a
grade."""
_NO_SIGN = re.compile(
    rf"\s*(?:\([\d{MARKS}{APOSTROPHES}\s]+\)|[\d{MARKS}{APOSTROPHES}\s]+[{MINUS}])\s*"
)
"""Both of these without a unit. They may mean something else."""
_LETTERS = re.compile(r"[^\W\d_]+")
_LETTERS_OF_NUMBERS = {"e", "E", *(run for code in CODES for run in _LETTERS.findall(code))}
_OTHER_DIGIT = r"[^\P{Nd}0-9]"


def _apart(code: str) -> str:
    """Return the pattern of a currency code before or behind a number, with its surroundings.

    Letters stand apart from the digits: USD1001 and EUR5 are names. R$5 is a number.
    """
    behind = "()" if code.endswith("$") else rf"([{SPACES}]|[)]?$)"
    return rf"(^[(+{MINUS}]?|[{SPACES}]){re.escape(code)}{behind}"


REWRITTEN = (
    *((re.escape(code), _apart(code), rf"\1{sign}\2") for code, sign in CODES.items()),
    (r"\(", _IN_BRACKETS, r"-\1\2\3"),
    (rf"\d[{SPACES}]?[{MINUS}]", _SIGN_BEHIND, r"-\1\2"),
)
"""Replacements, in order: what a text must contain, the pattern, and its replacement."""
_RARE = rf"[\p{{L}}(]|\d[{SPACES}]?[{MINUS}]|{_OTHER_DIGIT}"
"""What a text contains if a replacement may apply, or if its digits are not 0 to 9."""


def _pattern(mark: str) -> str:
    """Return the pattern of all numbers with this decimal mark, in Arrow's notation."""
    currency, space = f"[{CURRENCIES}]", f"[{SPACES}]?"
    between = "|".join(rf"(?:{re.escape(each)}\d{{3}})+" for each in THOUSANDS[mark])
    if mark == ".":
        between += r"|(?:,\d{2})+,\d{3}"  # as in India: 12,34,567
    # A number with thousands never begins with zero, so 0,125 can only be a fraction.
    whole = rf"(?:[1-9]\d{{0,2}}(?:{between})|\d+)"
    return (
        rf"^[+{MINUS}]?{space}{currency}?{space}[{MINUS}]?{whole}(?:{re.escape(mark)}\d+)?"
        rf"(?:[eE][+-]?\d+)?{space}(?:{currency}|%)?$"
    )


PATTERNS = {mark: _pattern(mark) for mark in MARKS}


TableMark = Callable[[], str]
"""Returns the decimal mark of a table, or "". It is called only if a column is ambiguous."""


def no_mark() -> str:
    """Return "": there is no table to ask."""
    return ""


def decimal_mark(present: "pd.Series[Any]", table: TableMark = no_mark) -> str:
    """Return the decimal mark if all texts are numbers of one unit; "" otherwise.

    If thousands and fractions look alike, the table decides. If it cannot, 1,234 is 1234.
    """
    return "" if _all_below_zero(present) else new_numbers_mark(present, table)


def new_numbers_mark(present: "pd.Series[Any]", table: TableMark) -> str:
    """Return the same for a column that held numbers at the fit. Here all may be in brackets."""
    marks = _possible_marks(present)
    return (marks if len(marks) < 2 else table()) or marks[:1]


def new_mark(present: "pd.Series[Any]", table: TableMark, before: str) -> str:
    """Return the mark of a column that held numbers at the fit and may have others in a new table.

    The majority of clear texts decides, then the new table, then the mark at the fit. Without any
    of these, 1,234 is 1234.
    """
    texts = only_texts(present).value_counts()
    if texts.empty:
        return before
    point, comma = (_are_numbers(_as_arrow(texts.index), mark) for mark in MARKS)
    times = texts.to_numpy()
    points, commas = times[point & ~comma].sum(), times[comma & ~point].sum()
    if points == commas:
        return table() or before or MARKS[0]
    return "." if points > commas else ","


def table_mark(frame: pd.DataFrame, otherwise: str = "") -> TableMark:
    """Return a function that finds the mark on which all clear columns agree; else `otherwise`."""
    return cache(partial(_common_mark, frame, otherwise))


def _common_mark(frame: pd.DataFrame, otherwise: str) -> str:
    shown = {_sure_mark(column) for _, column in frame.items()} - {""}
    return shown.pop() if len(shown) == 1 else otherwise


def _sure_mark(column: "pd.Series[Any]") -> str:
    if pd.api.types.is_float_dtype(column.dtype):
        return "." if _has_fractions(column) and not may_have_thousands(column) else ""
    if pd.api.types.infer_dtype(column, skipna=True) != "string":
        return ""
    present = column.dropna()
    marks = "" if _all_below_zero(present) else _possible_marks(present)
    return marks if len(marks) == 1 else ""


def _has_fractions(column: "pd.Series[float]") -> bool:
    return len(_not_whole(column)) > 0


def may_have_thousands(column: "pd.Series[float]") -> bool:
    """Return whether every fraction has one to three digits before its point and three after it.

    Then the point may have divided thousands in the file: 1.234 for 1234.
    """
    parts = _not_whole(column)
    in_thousandths = 1000.0 * parts
    whole = np.abs(in_thousandths - np.round(in_thousandths)) < 1e-6
    return bool(len(parts) and (whole & (np.abs(parts) >= 1.0) & (np.abs(parts) < 1000.0)).all())


def find_doubtful_points(frame: pd.DataFrame) -> list[str]:
    """Return the columns of fractions whose points may have divided thousands."""
    floats = frame.select_dtypes("float")
    return [str(name) for name, column in floats.items() if may_have_thousands(column)]


def _not_whole(column: "pd.Series[float]") -> Floats:
    present = column.to_numpy(dtype=np.float64, na_value=np.nan)
    parts: Floats = present[np.isfinite(present) & (present != np.round(present))]
    return parts


def _possible_marks(present: "pd.Series[Any]") -> str:
    """Return the marks with which all values are numbers of one unit: none, one or both."""
    # The first texts usually show that a column holds no numbers.
    return _marks_of(present) if _marks_of(present.iloc[:LOOKED_AT]) else ""


def _marks_of(present: "pd.Series[Any]") -> str:
    texts = _as_arrow(present.drop_duplicates())
    marks = "".join(mark for mark in MARKS if _are_numbers(texts, mark).all())
    return marks if marks and len(_units(texts)) <= 1 else ""


def _all_below_zero(present: "pd.Series[Any]") -> bool:
    """Return whether all values have brackets, or a minus behind them.

    Then these distinguish nothing and mean no minus: (1,2) may be a pair, and (030) a prefix.
    """
    return all(isinstance(cell, str) and _NO_SIGN.fullmatch(cell) for cell in present)


def only_texts(given: "pd.Series[Any]") -> "pd.Series[Any]":
    """Return the cells that are texts."""
    if isinstance(given.dtype, pd.StringDtype):
        return given.dropna()
    return given[[isinstance(cell, str) for cell in given]]


def units_in(present: "pd.Series[Any]") -> set[str]:
    """Return the signs of units in texts."""
    texts = _as_arrow(only_texts(present).drop_duplicates())
    return {*"".join(_units(texts))}


def name_units(units: Iterable[str]) -> str:
    """Return units as people write them: by a sign, or by the first code of the currency."""
    names = {sign: code for code, sign in reversed(CODES.items()) if sign not in SIGNS}
    return " ".join(sorted(names.get(unit, unit) for unit in units))


def unit_of(numbers: "pd.Series[Any]") -> str:
    """Return the sign beside numbers of one unit; "" if they have none."""
    return "".join(sorted(units_in(numbers)))


def parse_numbers(values: "pd.Index[Any]", mark: str) -> Floats:
    """Return (n,), the number in each cell, written or typed; NaN for anything else."""
    numbers = _numbers(_as_arrow(values), mark)
    if not isinstance(values.dtype, pd.StringDtype):
        for place, value in enumerate(values):
            if isinstance(value, int | float | Decimal | np.integer | np.floating):
                with suppress(OverflowError):  # a whole number of hundreds of digits
                    numbers[place] = float(value)
    return numbers


def _numbers(texts: pa.Array, mark: str) -> Floats:
    """Return (n,), the numbers in texts; NaN where there is none."""
    digits = pc.utf8_trim(texts, AROUND)
    for divider in THOUSANDS[mark]:
        digits = pc.replace_substring(digits, divider, "")
    sizes = pc.replace_substring(digits, mark, ".").to_numpy(zero_copy_only=False)
    sizes[~_are_numbers(texts, mark)] = "nan"
    negative = pc.match_substring_regex(texts, _NEGATIVE).to_numpy(zero_copy_only=False)
    numbers: Floats = np.where(negative, -1.0, 1.0) * sizes.astype(np.float64)
    return numbers


def may_be_number(text: str) -> bool:
    """Return whether a text has no letters that numbers lack. It is cheaper than reading."""
    return _LETTERS_OF_NUMBERS.issuperset(_LETTERS.findall(text))


def _are_numbers(texts: pa.Array, mark: str) -> Bools:
    found: Bools = pc.match_substring_regex(texts, PATTERNS[mark]).to_numpy(zero_copy_only=False)
    return found


def _units(texts: pa.Array) -> list[str]:
    """Return the different units before and behind numbers; "" stands for no unit."""
    if not _any_has(texts, f"[{UNITS}]"):
        return [""]
    found: list[str] = pc.unique(pc.replace_substring_regex(texts, f"[^{UNITS}]+", "")).to_pylist()
    return found


def _as_arrow(values: "pd.Series[Any] | pd.Index[Any]") -> pa.Array:
    """Return texts in the form of `PATTERNS`.

    It has no white space around, signs for units, a minus for brackets, and the digits 0 to 9.
    """
    if isinstance(values.dtype, pd.StringDtype):
        texts = pa.array(values, pa.large_string())
    else:
        # Arrow cannot hold half a character, and no number has one.
        encoded = [str(value).encode(errors="replace") for value in values]
        texts = pa.array(encoded, pa.large_string())
    texts = pc.utf8_trim_whitespace(texts)
    if not _any_has(texts, _RARE):
        return texts
    for having, pattern, instead in REWRITTEN:
        if _any_has(texts, having):
            texts = pc.replace_substring_regex(texts, pattern, instead)
    if not _any_has(texts, _OTHER_DIGIT):
        return texts
    known = [re.sub(r"\d", lambda digit: str(int(digit[0])), text) for text in texts.to_pylist()]
    return pa.array(known, pa.large_string())


def _any_has(texts: pa.Array, pattern: str) -> bool:
    """Return whether any text matches. Searching is far cheaper than replacing."""
    return bool(pc.any(pc.match_substring_regex(texts, pattern)).as_py())
