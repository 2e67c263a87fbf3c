"""Which datasets are kept apart, so that what was learnt can be tried on new ones."""

from collections.abc import Set
from hashlib import sha256

ONE_OF = 5
"""One family of so many is held out."""


def choose_holdout_families(families: Set[str]) -> set[str]:
    """A fifth of the families, drawn by a hash of their names."""
    ordered = sorted(families, key=lambda name: sha256(name.encode()).digest())
    return set(ordered[: len(families) // ONE_OF])
