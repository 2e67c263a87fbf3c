"""Names: which ones can be written, how messages list them, and what a misspelt one may mean."""

import difflib
from collections.abc import Sequence

from foretune.errors import ExperienceError


def check_writable(what: str, name: str) -> None:
    """Refuse a name with half a Unicode character, because no file can hold it.

    what: what has this name, such as "task".
    """
    try:
        name.encode()
    except UnicodeEncodeError:
        raise ExperienceError(
            f"the name of a {what} must be a text of whole characters, but got {name!r}: rename it",
            rule="half-character",
            field=what,
            value=name,
        ) from None


def quote_names(names: Sequence[str], most: int = 5) -> str:
    """Return the first `most` names in quotes."""
    shown = ", ".join(f"'{name}'" for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def suggestion(name: str, known: Sequence[str]) -> str:
    """Return the remedy for an unknown name: similar known names, or the first known ones."""
    close = difflib.get_close_matches(name, known, n=3)
    return f"did you mean {quote_names(close)}?" if close else f"choose among {quote_names(known)}"
