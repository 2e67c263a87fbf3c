"""All stopping policies, by name."""

from collections.abc import Callable, Mapping

from foretune._base.names import suggestion
from foretune.errors import UsageError
from foretune.methods.stopping.halving import AsyncHalving, hyperband, successive_halving
from foretune.methods.stopping.median import MedianStopping
from foretune.methods.stopping.policy import StepRange, StoppingPolicy

POLICIES: Mapping[str, Callable[[StepRange], StoppingPolicy]] = {
    "asha": AsyncHalving,
    "hyperband": hyperband,
    "halving": successive_halving,
    "median": MedianStopping,
    "none": lambda _: StoppingPolicy(),
}
"""Stopping policies by the name that `foretune tune --stop` takes."""


def make_policy(name: str, steps: StepRange) -> StoppingPolicy:
    """Return the stopping policy with this name."""
    if name not in POLICIES:
        raise UsageError(
            f"a stopping policy must be one of {', '.join(POLICIES)}, but got '{name}': "
            f"{suggestion(name, list(POLICIES))}",
            rule="unknown-policy",
            field="stop",
            value=name,
        )
    return POLICIES[name](steps)
