"""Reading the cells of a column: as numbers, as texts to compare, as true and false."""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from numbers import Number
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from foretune._base.arrays import Bools, Floats
from foretune.tables.number_formats import LOOKED_AT, MARKS, parse_numbers

Rows = TypeVar("Rows", "pd.Series[Any]", pd.DataFrame)
YES_AND_NO = (("true", "false"), ("yes", "no"), ("t", "f"), ("y", "n"), ("1", "0"))
TRUTHS = {text: truth for pair in YES_AND_NO for text, truth in zip(pair, (1.0, 0.0), strict=True)}
MOST_SPELLINGS = sum(2 ** len(text) for text in TRUTHS)
"""The most ways to write "true" or "false" with small and capital letters."""
LARGEST = 1e30
"""Nothing is learnt from larger numbers: trees know none beyond 3e38, and Stata's missing value is
9e307."""
MOST_BITS = 1_000
"""A whole number with more bits may be too large for a float."""
NO_NUMBERS = ("date", "datetime", "datetime64", "time", "period", "interval", "complex")
"""Types that pandas would turn into numbers with another meaning, such as the time since 1970."""
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?")
_CLOCK = r":[0-5]\d:[0-5]\d(\.\d{1,9})?"
_DURATION = re.compile(
    rf"\s*[+-]?(\d{{1,5}} days?(,? \+?\d\d?{_CLOCK})?|\d{{1,6}}{_CLOCK})\s*", re.ASCII
)
"""Spans of time as programs write them: 0 days 00:10:50, -1 day, 23:59:30, 2 days, 100:00:00.5.

pandas cannot count more digits. 10:50 alone may be minutes or hours, so it is no duration."""


def is_plain(given: "pd.Series[Any]") -> bool:
    """Return whether the column has a type of numbers."""
    return isinstance(given.dtype, np.dtype) and given.dtype.kind in "iuf"


def map_texts(given: "pd.Series[Any]", numbers: Mapping[str, float]) -> Floats:
    """Return (n,), the number for the text of each value; NaN if there is none."""
    return _of_distinct(
        hashable(given),
        lambda values: [numbers.get(text_of(value), np.nan) for value in values],
    )


def _of_distinct(
    given: "pd.Series[Any]", numbers: Callable[["pd.Index[Any]"], Sequence[float] | Floats]
) -> Floats:
    """Return (n,), the number of each value. `numbers` is asked once for equal values."""
    codes, distinct = pd.factorize(given)
    # The code of a missing value is -1, which selects the last number.
    found: Floats = np.append(numbers(distinct), np.nan)[codes]
    return found


def sample_rows(given: Rows, most: int) -> Rows:
    """Return at most this many cells of a column, or rows of a table, always the same ones.

    They are drawn at random, because every 24th row could be of the same hour.
    """
    if len(given) <= most:
        return given
    places = np.random.default_rng(0).choice(len(given), most, replace=False)
    return given.iloc[np.sort(places)]


def hashable(given: "pd.Series[Any]") -> "pd.Series[Any]":
    """Return mixed columns as texts: lists cannot be looked up, and False would equal 0."""
    if given.dtype != object or not pd.api.types.infer_dtype(given).startswith("mixed"):
        return given
    return given.map(text_of, na_action="ignore")


def text_of(value: Any) -> str:
    """Return the text of a value; 1.0 becomes 1, because pandas reads 1 as 1.0 beside a gap."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def texts_of(given: "pd.Series[Any]") -> list[str]:
    """Return the different texts of the cells that have a value."""
    return [text_of(value) for value in hashable(given.dropna()).unique()]


def normalise_text(text: str) -> str:
    """Return a text in the form of a typed table: 01 becomes 1, 1.50 becomes 1.5, TRUE True."""
    if _NUMBER.fullmatch(text):
        return text_of(float(text))
    return text.capitalize() if text.lower() in ("true", "false") else text


def has_leading_zeros(texts: "pd.Series[str]") -> bool:
    """Return whether some text begins with a zero, so that 007, 07 and 7 would be one number."""
    return bool(texts.str.match(r"0\d", na=False).any())


def read_numbers(given: "pd.Series[Any]", decimal: str = "") -> Floats:
    """Return (n,) numbers, NaN where none is finite; `decimal` is the mark if people wrote them."""
    numbers = _format_numbers(given, decimal) if decimal and not is_plain(given) else _plain(given)
    finite: Floats = np.where(np.isfinite(numbers), numbers, np.nan)
    return finite


def are_plain_numbers(texts: "pd.Series[Any]") -> bool:
    """Return whether all texts are finite numbers as programs write them."""
    # The first texts usually show that a column holds no numbers.
    some = texts.iloc[:LOOKED_AT]
    return all(np.isfinite(read_numbers(each)).all() for each in (some, texts))


def has_usable_number(texts: "pd.Series[Any]", decimal: str = "") -> bool:
    """Return whether a number can be learnt from. Mostly one of the first ones can."""
    looks = (texts.iloc[:LOOKED_AT], texts)
    return any(is_usable(read_numbers(each, decimal)).any() for each in looks)


def is_usable(numbers: NDArray[Any]) -> Bools:
    """Return (n,), which numbers can be learnt from: not missing, infinite or beyond `LARGEST`."""
    within: Bools = np.abs(numbers) < LARGEST
    return within


def numbers_in(given: "pd.Series[Any]", decimal: str) -> int:
    """Return how many of the cells are finite numbers."""
    return int(np.isfinite(read_numbers(given, decimal)).sum())


def texts_without_number(given: "pd.Series[Any]") -> list[str]:
    """Return the texts of cells that are no finite numbers, read in the most successful way."""
    others = [np.isnan(read_numbers(given, decimal)) for decimal in ("", *MARKS)]
    fewest = min(others, key=np.sum)
    # If some way reads all cells, such as 5 € and 5 $, the plain way shows what is wrong.
    return [str(cell) for cell in given[fewest if fewest.any() else others[0]]]


def _format_numbers(given: "pd.Series[Any]", decimal: str) -> Floats:
    if not isinstance(given.dtype, pd.StringDtype):
        # Lists, which a file may hold, cannot be compared. Numbers beside texts stay numbers.
        given = given.map(
            lambda cell: cell if isinstance(cell, str | Number) else str(cell), "ignore"
        )
    return _of_distinct(given, lambda values: parse_numbers(values, decimal))


def _plain(given: "pd.Series[Any]") -> Floats:
    if is_plain(given):
        return given.to_numpy(dtype=np.float64)
    if pd.api.types.infer_dtype(given, skipna=True) in NO_NUMBERS:
        return np.full(len(given), np.nan)
    if given.dtype == object:  # pandas fails at whole numbers of hundreds of digits
        given = given.mask(given.map(_is_too_large))
    read = pd.to_numeric(given, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    # pandas would turn durations into numbers.
    present: Floats = np.where(given.isna(), np.nan, read)
    return present


def _is_too_large(cell: object) -> bool:
    return isinstance(cell, int) and cell.bit_length() > MOST_BITS


def is_duration(given: "pd.Series[Any]") -> bool:
    """Return whether the column has a type of durations, in any unit."""
    return pd.api.types.infer_dtype(given, skipna=True) in ("timedelta", "timedelta64")


def are_written_durations(present: "pd.Series[Any]") -> bool:
    """Return whether all cells are texts of durations. Most columns fail at their first cell."""
    return all(isinstance(cell, str) and _DURATION.fullmatch(cell) for cell in present)


def read_durations(given: "pd.Series[Any]") -> Floats:
    """Return (n,) seconds; NaN where there is no duration, such as a number without a unit."""
    if not is_duration(given):
        # They become objects, because pandas would take the gaps of a column of dates for dates.
        given = pd.Series([*map(_span, given)], given.index, dtype=object)
    seconds: pd.Series[Any] = pd.to_timedelta(given, errors="coerce").dt.total_seconds()
    return seconds.to_numpy(dtype=np.float64, na_value=np.nan)


def _span(cell: Any) -> Any:
    """Return a duration, also one that is written as 0 days 00:10:50; None for anything else."""
    written = isinstance(cell, str) and not _NUMBER.fullmatch(cell.strip())
    return cell if written or isinstance(cell, timedelta) else None


def are_truths(present: "pd.Series[Any]") -> bool:
    """Return whether all cells say yes or no. F says no beside T, but not beside M or N."""
    if len(present) > MOST_SPELLINGS and present.nunique() > MOST_SPELLINGS:
        return False
    texts = {text.lower() for text in texts_of(present)}
    said = {text for pair in YES_AND_NO if texts.issuperset(pair) for text in pair}
    return texts == said


def read_truths(given: "pd.Series[Any]") -> Floats:
    """Return (n,), 1 where the cell says yes, 0 where it says no, NaN elsewhere."""
    return map_texts(given, {text: TRUTHS.get(text.lower(), np.nan) for text in texts_of(given)})
