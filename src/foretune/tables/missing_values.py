"""Texts that mean, in a column of numbers or dates, that a value is unknown.

In a column of categories the same texts are values: a discount `none`, a blood group `-`.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from foretune._base.arrays import Bools, Ints
from foretune.tables import dates
from foretune.tables.cells import has_leading_zeros, read_numbers
from foretune.tables.number_formats import LOOKED_AT, MARKS, may_be_number

SIGNS = frozenset(
    (
        *("", ".", "..", "...", "-", "--", "---", "\u2013", "\u2014", "?", "*"),
        *("na", "n/a", "n.a.", "nan", "-nan", "nat", "null", "<na>", "<null>", "(null)", "\\n"),
        *("#n/a", "#n/a n/a", "#na", "#div/0!", "#value!", "#ref!", "#name?", "#num!", "#null!"),
        *("0000-00-00", "0000-00-00 00:00:00", "00/00/0000", "00.00.0000", "00-00-0000"),
    )
)
"""In small letters. Beside numbers or dates, these texts can mean nothing else."""
WORDS = frozenset(
    ("none", "missing", "unknown", "undefined", "not known", "not available", "not applicable")
)
"""These, too. But beside few different numbers they may be codes: a discount of none, 5 or 10."""
MOST_CODES = 20
"""If at most this many different numbers stand beside texts, they may be codes: 1, 2, 3 and A."""
LEAST_SHARE = 0.5
"""A column with this share of numbers or dates was probably meant to hold them."""
LEAST_SHARE_OF_SOME = LEAST_SHARE / 2
"""The share among sampled cells, which differs by chance from that of the column."""
NEARLY_ALL = 0.95
"""With this share, even few different numbers are no codes."""

NUMBERS = ("", *MARKS)
"""The ways to read numbers: as programs write them, or with one of these decimal marks."""
_CODE = re.compile(r"\d+[A-Za-z]+|[A-Za-z]+\d+")


def signs_in(texts: Iterable[str]) -> list[str]:
    """Return the texts that can only mean that a value is unknown."""
    return [text for text in texts if _plain(text) in SIGNS]


@dataclass(frozen=True, slots=True)
class ColumnReading:
    """The meaning of a column's texts, read in the way that leaves the fewest cells unread."""

    read: "pd.Series[str]"
    """The different texts that are numbers or dates."""
    others: "pd.Series[str]"
    """The different texts that are neither."""
    share: float
    """The share of the cells that are read."""
    are_numbers: bool
    """Whether the texts that are read are numbers, not dates."""

    @classmethod
    def of(cls, texts: "pd.Series[str]", counts: Ints) -> "ColumnReading":
        """Read different texts, each with the number of its cells.

        If a sample of cells shows that most are words, nothing is read.
        """
        some = _draw_texts(texts, counts)
        best, most = cls(texts.iloc[:0], texts, 0.0, are_numbers=False), 0
        for way in _possible_ways(some.tolist()):
            if _read(some, way).mean() >= LEAST_SHARE_OF_SOME:
                read = _read(texts, way)
                if (cells := int(counts[read].sum())) > most:
                    share = cells / int(counts.sum())
                    best, most = cls(texts[read], texts[~read], share, way in NUMBERS), cells
        return best

    @property
    def is_mostly_read(self) -> bool:
        """Whether the column was probably meant to hold numbers or dates."""
        return self.share >= LEAST_SHARE

    @property
    def may_be_codes(self) -> bool:
        """Whether the different numbers are so few that they may be codes."""
        return self.are_numbers and len(self.read) <= MOST_CODES

    @property
    def leaves_gaps(self) -> bool:
        """Whether the texts that are not read mean that values are unknown.

        A single text may be anything. But beside 136, 136A is a code, and 10k is a value.
        """
        unknown = [text for text in self.others if _plain(text) not in WORDS]
        codes = any(_CODE.fullmatch(text) for text in unknown)
        meant = self.is_mostly_read and not self.may_be_codes and len(self.read) > 1
        return meant and len(unknown) <= 1 and not codes

    @property
    def odd_text(self) -> str:
        """A text that keeps a mostly numeric column from being numbers or dates; "" without one."""
        nearly_all = self.share >= NEARLY_ALL
        meant = nearly_all or (self.is_mostly_read and not self.may_be_codes)
        names = self.are_numbers and has_leading_zeros(self.read)
        return str(self.others.iloc[0]) if meant and not names and len(self.others) else ""


def _draw_texts(texts: "pd.Series[str]", counts: Ints) -> "pd.Series[str]":
    """Draw the texts of some cells, always the same ones. Frequent texts are drawn more often."""
    if counts.sum() <= LOOKED_AT:
        return texts.loc[texts.index.repeat(counts)]
    cells = np.sort(np.random.default_rng(0).choice(counts.sum(), LOOKED_AT, replace=False))
    return texts.iloc[np.searchsorted(np.cumsum(counts), cells, side="right")]


def _possible_ways(some: Sequence[str]) -> tuple[str, ...]:
    """Return the decimal marks and date formats with which enough of the texts may be read."""
    least = LEAST_SHARE_OF_SOME * len(some)
    if not some or sum(map(dates.has_digit, some)) < least:
        return ()
    numbers = NUMBERS if sum(map(may_be_number, some)) >= least else ()
    return (*numbers, *dates.possible_formats(some))


def _plain(text: str) -> str:
    return text.strip().lower()


def _read(texts: "pd.Series[str]", way: str) -> Bools:
    """Return (n,), which texts are dates of this format, or numbers with this mark."""
    if way in dates.FORMATS:
        found: Bools = dates.read_dates(texts, way).notna().to_numpy()
    else:
        found = np.isfinite(read_numbers(texts, way))
    return found
