"""The three ways to treat a past configuration that has no value for a hyperparameter of today."""

from enum import StrEnum
from typing import Any

from foretune.errors import UsageError


class MissingPolicy(StrEnum):
    """What happens to a past configuration that lacks a value which today's space needs.

    A value is missing if the past run did not record the hyperparameter, or if the hyperparameter
    was inactive then and is active in today's space. A value that `assumed` names is not missing,
    and a hyperparameter with a single value gets that value.
    """

    DEFAULT = "default"
    """The configuration gets the default value of today's space."""
    MARGINALISE = "marginalise"
    """The configuration gets a random value: one of those that other runs have recorded, or any
    value of the range if no run has recorded one. The draw is seeded by the configuration itself,
    so equal configurations get equal values on all tasks and at all times."""
    DROP = "drop"
    """The configuration is left out, with its runs."""


USUAL_POLICY = MissingPolicy.DEFAULT
"""The policy if none is named (decision 028)."""


def check_policy(given: Any) -> MissingPolicy:
    """Return the policy of this name; refuse any other name."""
    try:
        return MissingPolicy(given)
    except ValueError:
        raise UsageError(
            f"`missing` must be one of {', '.join(MissingPolicy)}, but got {given!r}: choose one",
            rule="unknown-missing-policy",
            field="missing",
            value=given,
        ) from None
