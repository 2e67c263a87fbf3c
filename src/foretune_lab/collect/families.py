"""The families of datasets that are held out, to test on new data what was learnt."""

from collections.abc import Set
from hashlib import sha256

ONE_OF = 5
"""One family out of this number is held out."""


def choose_holdout_families(families: Set[str]) -> set[str]:
    """Choose a fifth of the families by a hash of their names."""
    ordered = sorted(families, key=lambda name: sha256(name.encode()).digest())
    return set(ordered[: len(families) // ONE_OF])
