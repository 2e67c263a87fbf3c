"""Whether a trial of Optuna's kept to the constraints: one that broke them is no success."""

from collections.abc import Mapping
from typing import Any

CONSTRAINTS = "constraints"
"""How the names of the system attributes that hold them begin."""


def infeasible(attributes: Mapping[str, Any]) -> bool:
    """Whether a trial with these system attributes broke a constraint.

    Optuna has stored them in two ways: all of them in a list, and one an attribute.
    """
    if not attributes:
        return False
    broken = list(attributes.get(CONSTRAINTS) or ())
    broken += [value for key, value in attributes.items() if key.startswith(f"{CONSTRAINTS}:")]
    return any(value > 0 for value in broken)
