"""Names: configurations in a word, and lists of names as they are typed."""

from collections.abc import Mapping
from typing import Any

from foretune.errors import UsageError

CHOICES = ("estimator", "algorithm")
"""Hyperparameters that say what a trial is."""


def named(config: Mapping[str, Any]) -> str:
    """A configuration in a word: the algorithm it chooses."""
    return next((str(config[name]) for name in CHOICES if name in config), "")


def names_in(text: str | None) -> tuple[str, ...]:
    """The names of a comma-separated list as typed; none where the option was not given."""
    if text is None:
        return ()
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if not names:
        raise UsageError(f"a list needs at least one name, but got '{text}': separate by commas")
    return names
