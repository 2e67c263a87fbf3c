"""Protects texts that a spreadsheet would run as formulas.

A table from a stranger may have a class or an identity such as `=HYPERLINK(...)`. Opened in a
spreadsheet, a CSV file of predictions would run it.
"""

import re
from typing import Any

import pandas as pd

_FORMULA = re.compile(r"\s*[=+\-@]|[\t\r]")
"""A spreadsheet may run a text that begins like this."""
_NUMBER = re.compile(r"\s*[+-]?(\d[\d.,' ]*|\.\d+)(e[+-]?\d+)?\s*%?\s*", re.IGNORECASE)
"""Numbers with a sign stay as they are: no spreadsheet runs them."""


def is_formula(text: str) -> bool:
    """Return whether a spreadsheet may run a text; -5 and +1.5 are numbers."""
    return _FORMULA.match(text) is not None and _NUMBER.fullmatch(text) is None


def without_formulas(frame: pd.DataFrame, *, names: bool) -> tuple[pd.DataFrame, int]:
    """Put an apostrophe before each formula; return the frame and the number of formulas.

    names: whether to count the names of columns too.
    """
    changed: dict[int, Any] = {}
    count = 0
    for place in range(frame.shape[1]):
        column = frame.iloc[:, place]
        if pd.api.types.is_numeric_dtype(column.dtype):
            continue
        # Most columns of texts have few different values.
        texts = {each for each in column.unique() if isinstance(each, str) and is_formula(each)}
        if texts:
            hit = column.isin(texts)
            count += int(hit.sum())
            changed[place] = column.astype(object).where(~hit, "'" + column.astype(str))
    columns = list(frame.columns)
    safe = [f"'{name}" if is_formula(str(name)) else name for name in columns]
    count += sum(a != b for a, b in zip(safe, columns, strict=True)) if names else 0
    if not changed and safe == columns:
        return frame, count
    parts = [changed.get(place, frame.iloc[:, place]) for place in range(len(columns))]
    return pd.concat(parts, axis="columns").set_axis(safe, axis="columns"), count
