"""Names: configurations in a word, and lists of names as they are typed."""

import csv
import io
from collections.abc import Mapping
from typing import Any

from foretune.errors import UsageError

CHOICES = ("estimator", "algorithm")
"""Hyperparameters that say what a trial is."""


def config_label(config: Mapping[str, Any]) -> str:
    """A configuration in a word: the algorithm it chooses."""
    return next((str(config[name]) for name in CHOICES if name in config), "")


def names_in(text: str | None) -> tuple[str, ...]:
    """The names of a comma-separated list as typed; none where the option was not given.

    A name that has a comma itself stands in double quotes, as in a CSV file.
    """
    if text is None:
        return ()
    lines = csv.reader(io.StringIO(text, newline=""), skipinitialspace=True)
    names = tuple(name.strip() for line in lines for name in line if name.strip())
    if not names:
        raise UsageError(f"a list needs at least one name, but got '{text}': separate by commas")
    return names
