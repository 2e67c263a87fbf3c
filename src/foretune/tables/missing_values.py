"""Texts that say in a column of numbers or dates that a value is not known.

In a column of categories the same texts are values: a discount `none`, a blood group `-`.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from foretune._base.arrays import Bools
from foretune.tables import dates
from foretune.tables.cells import has_leading_zeros, hashable, read_numbers, some_of
from foretune.tables.number_formats import LOOKED_AT, MARKS, may_be_number

SIGNS = frozenset(
    (
        *("", ".", "..", "...", "-", "--", "---", "\u2013", "\u2014", "?", "*"),
        *("na", "n/a", "n.a.", "nan", "-nan", "nat", "null", "<na>", "<null>", "(null)", "\\n"),
        *("#n/a", "#n/a n/a", "#na", "#div/0!", "#value!", "#ref!", "#name?", "#num!", "#null!"),
        *("0000-00-00", "0000-00-00 00:00:00", "00/00/0000", "00.00.0000", "00-00-0000"),
    )
)
"""In small letters: what can be nothing else beside numbers or dates."""
WORDS = frozenset(
    ("none", "missing", "unknown", "undefined", "not known", "not available", "not applicable")
)
"""The same, but beside few different numbers a code of its own: a discount of none, 5 or 10."""
MOST_CODES = 20
"""So few different numbers beside texts may be codes, such as 1, 2, 3 and A."""
LEAST_SHARE = 0.5
"""Where so many cells are numbers, or dates, a column was probably meant to hold them."""
LEAST_SHARE_OF_SOME = LEAST_SHARE / 2
"""Of cells that were drawn, which may be more or fewer than in all of the column."""
NEARLY_ALL = 0.95
"""Where so many are, even few different numbers were."""

NUMBERS = ("", *MARKS)
"""The ways to read numbers: as programs write them, or with one of these marks."""
_CODE = re.compile(r"\d+[A-Za-z]+|[A-Za-z]+\d+")


def signs_in(texts: Iterable[str]) -> list[str]:
    """Those of the texts that can only say that a value is not known."""
    return [text for text in texts if _plain(text) in SIGNS]


@dataclass(frozen=True, slots=True)
class ColumnReading:
    """What the texts of a column say, read in the way that leaves the fewest over."""

    read: "pd.Series[str]"
    others: "pd.Series[str]"
    """Those that are neither numbers nor dates."""
    are_numbers: bool
    """Not dates."""

    @classmethod
    def of(cls, texts: "pd.Series[str]") -> "ColumnReading":
        """Nothing is read where some texts, from all over the column, show that most are words."""
        some = some_of(texts, LOOKED_AT)
        best = cls(texts.iloc[:0], texts, are_numbers=False)
        for way in _possible_ways(some.tolist()):
            if _read(some, way).mean() >= LEAST_SHARE_OF_SOME:
                read = _read(texts, way)
                if read.sum() > len(best.read):
                    best = cls(texts[read], texts[~read], way in NUMBERS)
        return best

    @property
    def most(self) -> bool:
        """Whether most texts are read."""
        return len(self.read) >= LEAST_SHARE * (len(self.read) + len(self.others))

    @property
    def nearly_all(self) -> bool:
        """Whether only a few texts are left over."""
        return len(self.read) >= NEARLY_ALL * (len(self.read) + len(self.others))

    @property
    def few_numbers(self) -> bool:
        """Whether there are so few different numbers that they may be codes."""
        return self.are_numbers and self.read.nunique() <= MOST_CODES

    @property
    def leaves_gaps(self) -> bool:
        """Whether what is left over says that values are not known: one text may be whatever.

        But beside 136, the code of something is 136A, and 10k is a value.
        """
        unknown = [text for text in self.others.unique() if _plain(text) not in WORDS]
        codes = any(_CODE.fullmatch(text) for text in unknown)
        meant = self.most and not self.few_numbers and self.read.nunique() > 1
        return meant and len(unknown) <= 1 and not codes


def odd_text(given: "pd.Series[Any]") -> str:
    """A text that keeps a column from being numbers or dates, where most cells are; else ""."""
    present = hashable(given.dropna())
    if pd.api.types.infer_dtype(present) != "string":
        return ""
    reading = ColumnReading.of(present[~present.isin(signs_in(present.unique()))])
    meant = reading.nearly_all or (reading.most and not reading.few_numbers)
    names = reading.are_numbers and has_leading_zeros(reading.read)
    return str(reading.others.iloc[0]) if meant and not names and len(reading.others) else ""


def _possible_ways(some: Sequence[str]) -> tuple[str, ...]:
    """The marks of fractions and formats of dates with which enough of the texts may be read."""
    least = LEAST_SHARE_OF_SOME * len(some)
    if not some or sum(map(dates.has_digit, some)) < least:
        return ()
    numbers = NUMBERS if sum(map(may_be_number, some)) >= least else ()
    return (*numbers, *dates.possible_formats(some))


def _plain(text: str) -> str:
    return text.strip().lower()


def _read(texts: "pd.Series[str]", way: str) -> Bools:
    """(n,), which texts are dates of this format, or numbers with this mark of fractions."""
    if way in dates.FORMATS:
        found: Bools = dates.read_dates(texts, way).notna().to_numpy()
    else:
        found = np.isfinite(read_numbers(texts, way))
    return found
