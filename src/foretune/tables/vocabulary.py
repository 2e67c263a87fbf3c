"""Texts: the words that repeat in a column of them, and which row has which."""

import math
import re
import time
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, takewhile
from typing import Any

import numpy as np
import pandas as pd

from foretune._base.arrays import Floats
from foretune.tables.cells import some_of, text_of

MOST_WORDS = 2000
"""Of all columns of texts together: every word is a column of the matrix."""
MOST_TEXTS = 20
"""So many columns of texts are learnt from: to see whether one helps takes about a second."""
LEAST_ROWS_OF_A_WORD = 3
MOST_CELLS = 10_000_000
"""Of the matrix that words become, which has to fit into memory."""
LOOKED_AT = 20_000
"""Words are chosen among those of so many rows, because texts may be long."""
LONGEST_WORD = 50
"""Longer ones are keys."""
_MARKS = "".join(
    each for each in map(chr, range(0x300, 0xE00)) if unicodedata.category(each).startswith("M")
)
"""Vowels of Hindi, Tamil, Arabic and others, which are no letters."""
_WORD = re.compile(rf"\b[\d_]*[^\W\d_][\w{_MARKS}]*")
"""With a letter: the digits of 1.25 and of dates are no words."""
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
    "\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+"
)
"""Text in a script without spaces between words; the second line is Chinese and Japanese."""


def most_words(rows: int, columns: int) -> int:
    """How many words each of so many columns of texts may have."""
    return min(MOST_WORDS // columns, MOST_CELLS // max(1, rows * columns))


def words_of_texts(
    frame: pd.DataFrame, names: Sequence[str], until: float = math.inf
) -> dict[str, tuple[str, ...]]:
    """The words that repeat in columns of texts, of those that have some.

    Of many columns, the longest texts: sentences say more than names. until: when to stop to look
    at more texts, by the monotonic clock.
    """
    most = most_words(len(frame), min(len(names), MOST_TEXTS))
    texts = {name: frame[name].dropna() for name in names}
    if len(names) > MOST_TEXTS:
        lengths = {name: cells.astype(str).str.len().mean() for name, cells in texts.items()}
        texts = {name: texts[name] for name in sorted(names, key=lambda name: -lengths[name])}
    in_time = takewhile(lambda _: time.monotonic() < until, texts.items())
    found = ((name, telling_words(cells, most)) for name, cells in in_time)
    return dict(islice(((name, words) for name, words in found if words), MOST_TEXTS))


def telling_words(present: "pd.Series[Any]", most: int) -> tuple[str, ...]:
    """The words that tell most rows apart: those that half of the rows have come first.

    What nearly no row has, or nearly every one, is left out.
    """
    some = some_of(present, LOOKED_AT)
    rows_with = Counter(word for words in _words(some) for word in words)
    apart = {word: min(rows, len(some) - rows) for word, rows in rows_with.items()}
    telling = [word for word, rows in apart.items() if rows >= LEAST_ROWS_OF_A_WORD]
    return tuple(sorted(telling, key=lambda word: (-apart[word], word))[:most])


def which_words(given: "pd.Series[Any]", words: Sequence[str]) -> Floats:
    """(n, words), 1 where a text has the word; NaN where there is no text."""
    places = {word: place for place, word in enumerate(words)}
    found = np.zeros((len(given), len(words)))
    for row, has in zip(found, _words(given), strict=True):
        row[[places[word] for word in has & places.keys()]] = 1.0
    found[given.isna().to_numpy()] = np.nan
    return found


def _words(texts: Iterable[Any]) -> Iterator[set[str]]:
    """The different words of each text, large and small letters alike.

    Where a script has no spaces, every character and every two that follow each other are words.
    """
    for text in texts:
        # An accent may be part of a letter or stand behind it.
        plain = unicodedata.normalize("NFC", text_of(text).casefold())
        runs = _UNSPACED.findall(plain)
        spaced = _UNSPACED.sub(" ", plain) if runs else plain
        words = {word for word in _WORD.findall(spaced) if 1 < len(word) <= LONGEST_WORD}
        pairs = (run[at : at + 2] for run in runs for at in range(len(run) - 1))
        yield words.union(*runs, pairs)
