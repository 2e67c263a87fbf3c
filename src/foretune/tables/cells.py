"""What the cells of a column say: as numbers, as texts that compare, as true and false."""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from numbers import Number
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from foretune._base.arrays import Bools, Floats
from foretune.tables.number_formats import LOOKED_AT, MARKS, numbers_written

Rows = TypeVar("Rows", "pd.Series[Any]", pd.DataFrame)
YES_AND_NO = (("true", "false"), ("yes", "no"), ("t", "f"), ("y", "n"), ("1", "0"))
TRUTHS = {text: truth for pair in YES_AND_NO for text, truth in zip(pair, (1.0, 0.0), strict=True)}
MOST_SPELLINGS = sum(2 ** len(text) for text in TRUTHS)
"""More ways to write them, in small and large letters, there are not."""
LARGEST = 1e30
"""Larger numbers are none to learn from: trees know none beyond 3e38, and Stata's gap is 9e307."""
NO_NUMBERS = ("date", "datetime", "datetime64", "time", "period", "interval", "complex")
"""Of what pandas would make numbers: of dates the time since 1970, of complex ones a part."""
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?")
_CLOCK = r":[0-5]\d:[0-5]\d(\.\d{1,9})?"
_DURATION = re.compile(
    rf"\s*[+-]?(\d{{1,5}} days?(,? \+?\d\d?{_CLOCK})?|\d{{1,6}}{_CLOCK})\s*", re.ASCII
)
"""As programs write spans of time: 0 days 00:10:50, -1 day, 23:59:30, 2 days, 100:00:00.5.

More digits would not fit into what pandas counts. 10:50 alone may be minutes or hours.
"""


def is_plain(given: "pd.Series[Any]") -> bool:
    """Whether the column has arrived as numbers."""
    return isinstance(given.dtype, np.dtype) and given.dtype.kind in "iuf"


def map_texts(given: "pd.Series[Any]", numbers: Mapping[str, float]) -> Floats:
    """(n,), what the text of each value stands for; NaN where nothing does."""
    return _of_distinct(
        hashable(given),
        lambda values: [numbers.get(text_of(value), np.nan) for value in values],
    )


def _of_distinct(
    given: "pd.Series[Any]", numbers: Callable[["pd.Index[Any]"], Sequence[float] | Floats]
) -> Floats:
    """(n,), the number of each value, asked once for values that are alike."""
    codes, distinct = pd.factorize(given)
    # The code of a missing value is -1, which takes the last one.
    found: Floats = np.append(numbers(distinct), np.nan)[codes]
    return found


def some_of(given: Rows, most: int) -> Rows:
    """At most so many cells of a column, or rows of a table, from all over it, always the same.

    Every 24th of them could all be of one hour.
    """
    if len(given) <= most:
        return given
    places = np.random.default_rng(0).choice(len(given), most, replace=False)
    return given.iloc[np.sort(places)]


def hashable(given: "pd.Series[Any]") -> "pd.Series[Any]":
    """Mixed columns as texts: lists cannot be looked up, and False would be taken for 0."""
    if given.dtype != object or not pd.api.types.infer_dtype(given).startswith("mixed"):
        return given
    return given.map(text_of, na_action="ignore")


def text_of(value: Any) -> str:
    """Whole numbers alike, because a gap in a column of them makes pandas read 1 as 1.0."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def texts_of(given: "pd.Series[Any]") -> list[str]:
    """The different texts of what is there."""
    return [text_of(value) for value in hashable(given.dropna()).unique()]


def plain_text(text: str) -> str:
    """As a table with types has it: 1.0 and 01 as 1, 1.50 as 1.5, TRUE as True."""
    if _NUMBER.fullmatch(text):
        return text_of(float(text))
    return text.capitalize() if text.lower() in ("true", "false") else text


def has_leading_zeros(texts: "pd.Series[str]") -> bool:
    """Whether some text begins like 007, so that as numbers 007, 07 and 7 would be one."""
    return bool(texts.str.match(r"0\d", na=False).any())


def read_numbers(given: "pd.Series[Any]", decimal: str = "") -> Floats:
    """(n,), NaN where no finite number stands; written as people do where `decimal` says how."""
    numbers = _format_numbers(given, decimal) if decimal and not is_plain(given) else _plain(given)
    finite: Floats = np.where(np.isfinite(numbers), numbers, np.nan)
    return finite


def are_plain_numbers(texts: "pd.Series[Any]") -> bool:
    """Whether all texts are finite numbers as programs write them."""
    # Most texts are no numbers, which the first ones show.
    some = texts.iloc[:LOOKED_AT]
    return all(np.isfinite(read_numbers(each)).all() for each in (some, texts))


def has_usable_number(texts: "pd.Series[Any]", decimal: str = "") -> bool:
    """Whether some number is one to learn from, as mostly the first ones are."""
    looks = (texts.iloc[:LOOKED_AT], texts)
    return any(usable(read_numbers(each, decimal)).any() for each in looks)


def usable(numbers: NDArray[Any]) -> Bools:
    """(n,), which numbers can be learnt from: neither gaps nor infinite nor beyond `LARGEST`."""
    within: Bools = np.abs(numbers) < LARGEST
    return within


def numbers_in(given: "pd.Series[Any]", decimal: str) -> int:
    """How many of the cells are finite numbers."""
    return int(np.isfinite(read_numbers(given, decimal)).sum())


def not_numbers(given: "pd.Series[Any]") -> list[str]:
    """Of each cell that is no finite number its text, read in the way that leaves the fewest."""
    others = [np.isnan(read_numbers(given, decimal)) for decimal in ("", *MARKS)]
    fewest = min(others, key=np.sum)
    # Where some way leaves none, as of 5 € and 5 $, only the plain one says what is wrong.
    return [str(cell) for cell in given[fewest if fewest.any() else others[0]]]


def _format_numbers(given: "pd.Series[Any]", decimal: str) -> Floats:
    if not isinstance(given.dtype, pd.StringDtype):
        # Lists, which a file may hold, cannot be compared; numbers beside texts stay numbers.
        given = given.map(
            lambda cell: cell if isinstance(cell, str | Number) else str(cell), "ignore"
        )
    return _of_distinct(given, lambda values: numbers_written(values, decimal))


def _plain(given: "pd.Series[Any]") -> Floats:
    if is_plain(given):
        return given.to_numpy(dtype=np.float64)
    if pd.api.types.infer_dtype(given, skipna=True) in NO_NUMBERS:
        return np.full(len(given), np.nan)
    read = pd.to_numeric(given, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    # Of durations, pandas makes a number even where there are none.
    present: Floats = np.where(given.isna(), np.nan, read)
    return present


def is_duration(given: "pd.Series[Any]") -> bool:
    """Whether the column has arrived as spans of time, of whatever unit."""
    return pd.api.types.infer_dtype(given, skipna=True) in ("timedelta", "timedelta64")


def are_written_durations(present: "pd.Series[Any]") -> bool:
    """Whether all cells are texts that say a span of time; most columns end at their first."""
    return all(isinstance(cell, str) and _DURATION.fullmatch(cell) for cell in present)


def read_durations(given: "pd.Series[Any]") -> Floats:
    """(n,), in seconds; NaN where no duration stands. A number without a unit is none."""
    if not is_duration(given):
        # As objects, because pandas would take gaps of a column of dates for dates.
        given = pd.Series([*map(_span, given)], given.index, dtype=object)
    seconds: pd.Series[Any] = pd.to_timedelta(given, errors="coerce").dt.total_seconds()
    return seconds.to_numpy(dtype=np.float64, na_value=np.nan)


def _span(cell: Any) -> Any:
    """A duration as it is, or as files without types write it: 0 days 00:10:50; else None."""
    written = isinstance(cell, str) and not _NUMBER.fullmatch(cell.strip())
    return cell if written or isinstance(cell, timedelta) else None


def are_truths(present: "pd.Series[Any]") -> bool:
    """Whether all cells say yes or no: F says no beside T, and beside M or N something else."""
    if len(present) > MOST_SPELLINGS and present.nunique() > MOST_SPELLINGS:
        return False
    texts = {text.lower() for text in texts_of(present)}
    said = {text for pair in YES_AND_NO if texts.issuperset(pair) for text in pair}
    return texts == said


def truths(given: "pd.Series[Any]") -> Floats:
    """(n,), 1 where the cell says yes and 0 where it says no; else NaN."""
    return map_texts(given, {text: TRUTHS.get(text.lower(), np.nan) for text in texts_of(given)})
