"""Spaces in files of users: ConfigSpace's JSON, or the short notation in JSON."""

import json
from typing import Any

from foretune.space.limits import refuse_depth
from foretune.space.space import Space

RANGE = "range"


def parse_space(text: str) -> Space:
    """Read the space that a text of either kind describes."""
    try:
        document = json.loads(text, object_hook=_with_ranges)
    except RecursionError:
        refuse_depth()
    except ValueError:
        document = None
    if not isinstance(document, dict) or isinstance(document.get("hyperparameters"), list):
        return Space.from_json(text)
    return Space.of(document)


def _with_ranges(given: dict[str, Any]) -> Any:
    """Turn `{"range": [...]}` into a tuple: JSON has no other way to write a range."""
    if set(given) == {RANGE} and isinstance(given[RANGE], list):
        return tuple(given[RANGE])
    return given
