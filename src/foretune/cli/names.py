"""Short names of configurations, and lists of names as users type them."""

import csv
import io
from collections.abc import Mapping
from typing import Any

from foretune.errors import UsageError

CHOICES = ("estimator", "algorithm")
"""Hyperparameters that say what a trial is."""


def config_label(config: Mapping[str, Any]) -> str:
    """Return the algorithm that a configuration chooses, or an empty text."""
    return next((str(config[name]) for name in CHOICES if name in config), "")


def names_in(text: str | None) -> tuple[str, ...]:
    """Return the names of a comma-separated list; none if the option was not given.

    A name with a comma stands in double quotes, as in a CSV file.
    """
    if text is None:
        return ()
    lines = csv.reader(io.StringIO(text, newline=""), skipinitialspace=True)
    names = tuple(name.strip() for line in lines for name in line if name.strip())
    if not names:
        raise UsageError(
            f"a list needs at least one name, but got '{text}': separate names by commas",
            rule="empty-list",
            value=text,
        )
    return names
