"""Numbers with units, as people type them."""

import re
from collections.abc import Mapping

import click

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
