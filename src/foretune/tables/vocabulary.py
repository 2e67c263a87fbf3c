"""The words that repeat in a column of texts, and the rows that have them."""

import math
import re
import time
import unicodedata
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from foretune._base.arrays import Floats, Ints
from foretune._base.progress import SILENT, Progress, track
from foretune.tables.cells import sample_rows, text_of

MOST_WORDS = 2000
"""The most words of all texts together, because every word is a column of the matrix."""
MOST_TEXTS = 20
"""The most columns of texts that are used, because testing one takes about a second."""
LEAST_ROWS_OF_A_WORD = 3
MOST_CELLS = 10_000_000
"""The most cells of the matrix of words, which has to fit into memory."""
LOOKED_AT = 20_000
"""Words are chosen from this many rows, because texts may be long."""
TEXTS_AT_ONCE = 50_000
LONGEST_WORD = 50
"""Longer words are keys."""
_MARKS = "".join(
    each for each in map(chr, range(0x300, 0xE00)) if unicodedata.category(each).startswith("M")
)
"""Vowel signs of Hindi, Tamil, Arabic and other scripts, which are no letters in Unicode."""
_WORD = re.compile(rf"\b[\d_]*[^\W\d_][\w{_MARKS}]*")
"""A word has a letter: the digits of 1.25 and of dates are no words."""
_MARK_RUN = re.compile(rf"[^\w\s{_MARKS}]+")
"""Marks that stand together, such as "!!" or ":)", tell as much as words."""
LONGEST_MARK_RUN = 10
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
    "\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+"
)
"""Text in a script without spaces between words; the second line is Chinese and Japanese."""


def word_limit(rows: int, columns: int) -> int:
    """Return how many words each of this many columns of texts may have."""
    return min(MOST_WORDS // columns, MOST_CELLS // max(1, rows * columns))


def find_repeated_words(
    frame: pd.DataFrame,
    names: Sequence[str],
    until: float = math.inf,
    progress: Progress = SILENT,
) -> dict[str, tuple[str, ...]]:
    """Find the words that repeat in columns of texts. Columns without such words are left out.

    If there are too many columns, those with the longest texts are used, because sentences say more
    than names.

    until: when the time for inspecting texts ends, by the monotonic clock.
    """
    most = word_limit(len(frame), min(len(names), MOST_TEXTS))
    if len(names) > MOST_TEXTS:
        lengths = {name: _mean_length(frame[name]) for name in names}
        names = sorted(names, key=lambda name: -lengths[name])
    found: dict[str, tuple[str, ...]] = {}
    for name in track(names, progress, "looking for words in texts", len(names)):
        if len(found) == MOST_TEXTS or time.monotonic() >= until:
            break
        if words := choose_words(frame[name].dropna(), most):
            found[name] = words
    return found


def _mean_length(texts: "pd.Series[Any]") -> float:
    return float(pc.mean(pc.utf8_length(_as_arrow(texts.dropna()))).as_py() or 0.0)


def choose_words(
    present: "pd.Series[Any]", most: int, *, looked_at: int = LOOKED_AT
) -> tuple[str, ...]:
    """Choose the words that distinguish most rows: those in about half of the rows come first.

    Words in nearly no row, or in nearly every row, are left out.
    """
    some = sample_rows(present, looked_at)
    rows, runs = _split_texts(some)
    codes = runs.dictionary_encode()
    texts, count = codes.dictionary, max(1, len(codes.dictionary))
    once = np.unique(rows * count + codes.indices.to_numpy())
    rows_with = np.bincount(once % count, minlength=count)
    apart = np.minimum(rows_with, len(some) - rows_with)
    telling = np.flatnonzero(apart >= LEAST_ROWS_OF_A_WORD)
    order = {
        text: int(apart[place])
        for place, text in zip(telling, texts.take(telling).to_pylist(), strict=True)
    }
    words = [text for text in order if _is_word(text)]
    if not words:
        return ()  # Marks alone, as in keys and dates, make no text.
    words += [text for text in order if _is_mark_run(text)]
    return tuple(sorted(words, key=lambda word: (-order[word], word))[:most])


def mark_words(given: "pd.Series[Any]", words: Sequence[str]) -> Floats:
    """Return (n, words), 1 where a text has the word; NaN where there is no text."""
    is_there = given.notna().to_numpy()
    found = np.zeros((len(given), len(words)))
    found[~is_there] = np.nan
    known, there = pa.array(words, pa.large_string()), np.flatnonzero(is_there)
    for start in range(0, len(there), TEXTS_AT_ONCE):
        part = there[start : start + TEXTS_AT_ONCE]
        rows, runs = _split_texts(given.iloc[part])
        places = pc.fill_null(pc.index_in(runs, known), -1).to_numpy()
        has = places >= 0
        found[part[rows[has]], places[has]] = 1.0
    return found


def _split_texts(texts: "pd.Series[Any]") -> tuple[Ints, pa.Array]:
    """Split texts into words: (k,), the index of the text that has a word, and the words.

    Runs of marks and other runs of characters, such as numbers, may come between the words.
    """
    arrow = _as_arrow(texts)
    plain = pc.string_is_ascii(arrow).to_numpy(zero_copy_only=False)
    # Most texts are plain, and Arrow splits these many times faster.
    small = pc.ascii_lower(arrow.filter(plain))
    lists = [pc.split_pattern_regex(small, each) for each in (r"\W+", r"[\w\s]+")]
    parents = np.concatenate([pc.list_parent_indices(each).to_numpy() for each in lists])
    rows = np.flatnonzero(plain)[parents]
    others = np.flatnonzero(~plain)
    words = [_words_of(text) for text in arrow.take(others).to_pylist()]
    more = pa.array([word for each in words for word in each], pa.large_string())
    repeated = np.repeat(others, [len(each) for each in words])
    runs = [each.flatten() for each in lists]
    return np.concatenate([rows, repeated]), pa.concat_arrays([*runs, more])


def _as_arrow(texts: "pd.Series[Any]") -> pa.Array:
    if isinstance(texts.dtype, pd.StringDtype):
        return pa.array(texts.to_numpy(dtype=object), pa.large_string())
    # Arrow cannot hold half a character, and no word has one.
    encoded = [text_of(text).encode(errors="replace") for text in texts]
    return pa.array(encoded, pa.large_string())


def _is_word(text: str) -> bool:
    """Return whether a run of characters is a word; runs of letters of other scripts are."""
    if not text.isascii():
        return not _is_mark_run(text)
    return 1 < len(text) <= LONGEST_WORD and bool(_WORD.fullmatch(text))


def _is_mark_run(text: str) -> bool:
    return 0 < len(text) <= LONGEST_MARK_RUN and bool(_MARK_RUN.fullmatch(text))


def _words_of(text: str) -> set[str]:
    """Return the different words and runs of marks of a text in small letters.

    In a script without spaces, every character and every pair of neighbours is a word.
    """
    # An accent may be part of a letter or a character of its own.
    folded = unicodedata.normalize("NFC", text.casefold())
    runs = _UNSPACED.findall(folded)
    spaced = _UNSPACED.sub(" ", folded) if runs else folded
    words = {word for word in _WORD.findall(spaced) if 1 < len(word) <= LONGEST_WORD}
    pairs = (run[at : at + 2] for run in runs for at in range(len(run) - 1))
    marks = {each for each in _MARK_RUN.findall(folded) if _is_mark_run(each)}
    return words.union(*runs, pairs, marks)
