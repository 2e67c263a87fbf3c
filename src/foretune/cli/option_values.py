"""Values of options as people type them: lists of names, and numbers with units."""

import csv
import io
import re
from collections.abc import Mapping
from typing import Any

import click

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


SEED = click.IntRange(0, 2**32 - 1)
"""The seeds that the library takes, written out so that `--help` is instant. A test compares."""


def seconds(text: str) -> float:
    """Read `20s`, `10m` or `2h`, in seconds."""
    return _quantity(text, {"s": 1.0, "m": 60.0, "h": 3600.0}, "20s")


def memory(text: str) -> float:
    """Read `500MB` or `2GB`, in bytes."""
    return _quantity(text, {"MB": 2.0**20, "GB": 2.0**30}, "2GB")


def _quantity(text: str, units: Mapping[str, float], example: str) -> float:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([A-Za-z]+)", text)
    if found is None or found[2] not in units or float(found[1]) <= 0:
        raise click.BadParameter(
            f"it must be a positive number with a unit ({', '.join(units)}), such as {example}, "
            f"but got '{text}'"
        )
    return float(found[1]) * units[found[2]]
