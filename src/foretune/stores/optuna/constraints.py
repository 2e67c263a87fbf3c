"""Constraints of Optuna's trials. A trial that broke one is no success."""

from collections.abc import Mapping
from typing import Any

CONSTRAINTS = "constraints"
"""The prefix of the system attributes that hold constraints."""


def infeasible(attributes: Mapping[str, Any]) -> bool:
    """Return whether a trial with these system attributes broke a constraint.

    Optuna has stored constraints in two ways: all in one list, or one for each attribute.
    """
    if not attributes:
        return False
    broken = list(attributes.get(CONSTRAINTS) or ())
    broken += [value for key, value in attributes.items() if key.startswith(f"{CONSTRAINTS}:")]
    return any(value > 0 for value in broken)
