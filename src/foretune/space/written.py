"""Spaces as people write them to files: ConfigSpace's JSON, or the short notation in JSON."""

import json
from typing import Any

from foretune.space.space import Space

RANGE = "range"


def written_space(text: str) -> Space:
    """The space that a text of either kind describes."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict) or isinstance(document.get("hyperparameters"), list):
        return Space.from_json(text)
    return Space.of(_notation(document))


def _notation(given: Any) -> Any:
    """The short notation, in which JSON cannot tell a range from a list of choices."""
    if not isinstance(given, dict):
        return given
    if set(given) == {RANGE} and isinstance(given[RANGE], list):
        return tuple(given[RANGE])
    return {name: _notation(value) for name, value in given.items()}
