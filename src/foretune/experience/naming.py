"""How messages list names, and which known name a mistaken one may have meant."""

import difflib
from collections.abc import Sequence


def listed(names: Sequence[str], most: int = 5) -> str:
    """The names in quotes, the first `most` of them."""
    shown = ", ".join(f"'{name}'" for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def suggestion(name: str, known: Sequence[str]) -> str:
    """The remedy for an unknown name: those that are close to it, or else the first known ones."""
    close = difflib.get_close_matches(name, known, n=3)
    return f"did you mean {listed(close)}?" if close else f"choose among {listed(known)}"
