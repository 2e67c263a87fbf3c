"""Configurations in a word."""

from collections.abc import Mapping
from typing import Any

CHOICES = ("estimator", "algorithm")
"""Hyperparameters that say what a trial is."""


def named(config: Mapping[str, Any]) -> str:
    """A configuration in a word: the algorithm it chooses."""
    return next((str(config[name]) for name in CHOICES if name in config), "")
