"""Values as plain Python scalars, and the values that a text stands for."""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

import numpy as np

from foretune.space.parameters import choice_key
from foretune.stores.files.cell_columns import as_list

Scalar: TypeAlias = bool | int | float | str | tuple[Any, ...] | None

LITERALS: Mapping[str, bool | None] = {"True": True, "False": False, "None": None}
NUMBER = re.compile(
    r"[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|nan|inf|infinity)", re.ASCII | re.IGNORECASE
)
"""A number as programs write it. Python alone would also read 64_64."""


def sort_distinct(values: Sequence[Scalar]) -> list[Scalar]:
    """Return each value once, sorted within its type. True and 1 are different values."""
    once = {choice_key(value): plain(value) for value in reversed(as_list(values))}
    return sorted(once.values(), key=_sort_key)


def _sort_key(value: Scalar) -> tuple[str, Any]:
    """Return a key that sorts by type first, because values of two types have no order."""
    own = tuple(map(_sort_key, value)) if isinstance(value, tuple) else value
    return type(value).__name__, own


def as_choice(value: Any) -> Any:
    """Return a list as a tuple, which can be a choice, and any other value as it is."""
    return tuple(map(as_choice, value)) if isinstance(value, list | tuple) else value


def read_back(text: str) -> Scalar:
    """Return the value that a program has written as `text`, or the text itself."""
    if text in LITERALS:
        return LITERALS[text]
    for kind in (int, float) if NUMBER.fullmatch(text.strip()) else ():
        with suppress(ValueError):
            return kind(text)
    return text


def plain(value: Any) -> Scalar:
    """Return `value` as the Python scalar that equals it."""
    made: Scalar = value.item() if isinstance(value, np.generic) else value
    return made
