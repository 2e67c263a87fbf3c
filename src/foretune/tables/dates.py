"""Dates: the ways in which a column may write them, and the numbers that they become.

All values of a column are written in one way. If the day and the month could change places in every
value, the day comes first. A year of two digits could also change places, and its century is
unknown. Such dates are read only if the values leave no other choice.
"""

import re
from collections.abc import Iterable, Sequence
from numbers import Number
from typing import Any

import numpy as np
import pandas as pd

from foretune._base.arrays import Floats
from foretune.tables.number_formats import LOOKED_AT

FIRST_PARTS = ("days", "month", "weekday", "hour")
"""The parts of dates in early releases. Saved columns that name no parts have these."""
PARTS = (*FIRST_PARTS, "day of month", "day of year")
"""The numbers that a date becomes: days since 1970 with a fraction, and parts that repeat."""

BARE_FORMATS = ("ISO8601", "%d-%m-%Y", "%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%Y/%m/%d")
"""Formats without a time of day, except for ISO 8601. The first one that fits is used."""
DAYS = (
    *("%d-%m-%Y", "%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%Y/%m/%d", "%Y-%m-%d"),
    *("%d-%b-%Y", "%d %b %Y", "%b %d, %Y", "%b %d %Y"),
)
"""Days, alone or before a time. The first one that fits is used; %b is the name of a month."""
DAYS_OF_SHORT_YEARS = ("%m/%d/%y", "%d/%m/%y", "%y/%m/%d", "%d.%m.%y", "%d-%b-%y")
"""Days with years of two digits, used only if no other format fits."""
MANY = 1000
"""From this number of cells on, some are read before all."""
LONGEST_OF_SHORT_YEARS = 50
"""If dates with years of two digits are further apart, they may lie in two centuries."""
CLOCKS = (
    *("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p", " %I:%M%p", " %I:%M:%S%p"),
    *(", %H:%M", ", %H:%M:%S", ", %I:%M %p", ", %I:%M:%S %p", ", %I:%M%p", ", %I:%M:%S%p"),
)
"""The times of day that may follow a day."""
FORMATS = frozenset(
    (*BARE_FORMATS, *(day + clock for day in (*DAYS, *DAYS_OF_SHORT_YEARS) for clock in CLOCKS))
)
"""All formats of the dates of a column."""

_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_MONTH_OF = {
    **{name: number for number, name in enumerate(_MONTHS, start=1)},
    **{name[:3]: number for number, name in enumerate(_MONTHS, start=1)},
    "sept": 9,
}
_DIGIT = re.compile(r"\d")
_LEADING_DIGIT = re.compile(r"\s*[-+]?\d")
_DOTTED = re.compile(r"\s*\d\d\.\d\d\.\d\d")
_WORD = re.compile("[A-Za-z]+")
_SHAPE = re.compile(
    rf"(?:\d{{1,4}}|{'|'.join(_MONTH_OF)})[-/. ]\s*(?:\d{{1,2}}|{'|'.join(_MONTH_OF)})"
    r"(?:[-/.]|,?\s+)\d{1,4}"
    r"(?P<clock>(?P<comma>,?)\s+\d{1,2}:\d\d(?P<seconds>:\d\d)?(?P<half>(?P<gap>\s?)[ap]m)?)?",
    re.IGNORECASE,
)
"""The shape of dates that no bare format fits. It is checked first, because parsing is slow."""

_BEGINNING = re.compile(r"\s*(?:\d{1,4}[-/. ]|[A-Za-z]{3,9} \d)")
"""The beginning of all dates except plain years and digits, which are also numbers."""


def date_format(present: "pd.Series[Any]") -> str:
    """Return the format of all values if they are dates; "" otherwise."""
    first = present.iloc[0]
    if _is_no_date(first):
        return ""
    for bare in BARE_FORMATS if _begins_with_digit(first) else ():
        if _fits(present, bare):
            return bare
    clock = _clock(first)
    if clock is None:
        return ""
    for day in DAYS:
        if _fits(present, day + clock):
            return day + clock
    short = [day + clock for day in DAYS_OF_SHORT_YEARS if _fits(present, day + clock)]
    return short[0] if len(short) == 1 and _in_one_century(present, short[0]) else ""


def _fits(present: "pd.Series[Any]", date_format: str) -> bool:
    # The first values usually show that a column holds no dates.
    looks = (1, LOOKED_AT, None) if len(present) > MANY else (1, None)
    return not any(read_dates(present.iloc[:most], date_format).isna().any() for most in looks)


def possible_formats(texts: Sequence[str]) -> tuple[str, ...]:
    """Return the formats that fit some texts; none if too few texts are dates."""
    if 2 * sum(_BEGINNING.match(text) is not None for text in texts) < len(texts):
        return ()
    bare = BARE_FORMATS if any(map(_begins_with_digit, texts)) else ()
    clock = next((found for text in texts if (found := _clock(text)) is not None), None)
    if clock is None:
        return bare
    return (*bare, *(day + clock for day in (*DAYS, *DAYS_OF_SHORT_YEARS)))


def _begins_with_digit(value: Any) -> bool:
    """Return whether a bare format may fit a value. These formats have no names of months."""
    return not isinstance(value, str) or _LEADING_DIGIT.match(value) is not None


def _clock(text: Any) -> str | None:
    """Return the format of the time in a date, "" if it has none; None if the text is no date."""
    shape = _SHAPE.fullmatch(text) if isinstance(text, str) else None
    if shape is None:
        return None
    if not shape["clock"]:
        return ""
    hours = "%I:%M" if shape["half"] else "%H:%M"
    seconds = ":%S" if shape["seconds"] else ""
    half = (" %p" if shape["gap"] else "%p") if shape["half"] else ""
    return f"{shape['comma']} {hours}{seconds}{half}"


def _in_one_century(present: "pd.Series[Any]", date_format: str) -> bool:
    """Return whether years of two digits certainly keep their order.

    If all of them are read in the wrong century, their distances are still right.
    """
    years = read_dates(present, date_format).dt.year
    return bool(years.max() - years.min() < LONGEST_OF_SHORT_YEARS)


def is_date(given: "pd.Series[Any]") -> bool:
    """Return whether the column has a type of dates, or of periods, which begin at dates."""
    dtype = given.dtype
    return isinstance(dtype, pd.PeriodDtype) or pd.api.types.is_datetime64_any_dtype(dtype)


def read_dates(given: "pd.Series[Any]", date_format: str) -> "pd.Series[pd.Timestamp]":
    """Return (n,) dates, NaT where a cell does not fit the format; "" means ISO 8601."""
    if isinstance(given.dtype, pd.PeriodDtype):
        given = given.dt.to_timestamp()
    if pd.api.types.is_datetime64_any_dtype(given.dtype):
        return pd.to_datetime(given, errors="coerce", utc=True).dt.tz_localize(None)
    if not _are_texts(given):
        return pd.Series(_read_cells(given, date_format), given.index)
    # Parsing is slow, and most dates stand in many rows.
    codes, distinct = pd.factorize(given)
    dates = _read_cells(distinct, date_format).append(pd.DatetimeIndex([pd.NaT]))
    return pd.Series(dates.take(codes), given.index)


def _are_texts(given: "pd.Series[Any]") -> bool:
    """Return whether the cells that are not missing are texts."""
    if isinstance(given.dtype, pd.StringDtype):
        return True
    return pd.api.types.infer_dtype(given, skipna=True) == "string"


def _read_cells(given: Iterable[Any], date_format: str) -> pd.DatetimeIndex:
    """Return what `read_dates` returns, but parse equal cells again and again."""
    written = date_format or "ISO8601"
    cells = [None if _is_no_date(cell) else cell for cell in given]
    if written.startswith("%d.%m.%y"):
        cells = [None if _is_version(cell) else cell for cell in cells]
    if "%b" in written:
        # Names of months in pandas depend on the language of the computer and are either short or
        # long. A column that has only seen May does not show which.
        cells = [_with_numbered_month(cell) for cell in cells]
        written = written.replace("%b", "month %m")
    # Without a format pandas would guess one, and guess differently if rows had another order.
    read = pd.to_datetime(pd.Index(cells, dtype=object), errors="coerce", format=written, utc=True)
    return read.tz_localize(None)


def has_digit(value: Any) -> bool:
    """Return whether a text has a digit, as numbers, dates and durations have.

    Return True for anything else than a text.
    """
    return not isinstance(value, str) or _DIGIT.search(value) is not None


def _is_no_date(value: Any) -> bool:
    """Return whether pandas would invent a date: from a number, or from `now` and `today`."""
    return isinstance(value, Number) or not has_digit(value)


def _is_version(value: Any) -> bool:
    """Return whether three numbers, such as 2.4.10, may be a version instead of a date."""
    return isinstance(value, str) and not _DOTTED.match(value)


def _with_numbered_month(value: Any) -> Any:
    """Return the text with "month 5" for May, which cannot be mistaken for a number."""
    if not isinstance(value, str):
        return value
    return _WORD.sub(_month_number, value)


def _month_number(word: re.Match[str]) -> str:
    number = _MONTH_OF.get(word[0].lower())
    return word[0] if number is None else f"month {number}"


def date_parts(dates: "pd.Series[pd.Timestamp]", parts: tuple[str, ...]) -> Floats:
    """Return (n, number of parts), NaN where there is no date."""
    found: dict[str, pd.Series[Any]] = {
        # They are in microseconds, because nanoseconds cover only the years 1677 to 2262.
        "days": (dates - pd.Timestamp(0).as_unit("us")) / pd.Timedelta(days=1),
        "month": dates.dt.month,
        "weekday": dates.dt.day_of_week,
        "hour": dates.dt.hour,
        "day of month": dates.dt.day,
        "day of year": dates.dt.day_of_year,
    }
    columns = [found[part].to_numpy(dtype=np.float64, na_value=np.nan) for part in parts]
    return np.column_stack(columns)
