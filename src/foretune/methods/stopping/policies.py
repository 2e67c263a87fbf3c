"""All stopping policies, by name."""

from collections.abc import Callable, Mapping
from functools import partial

from foretune._base.names import suggestion
from foretune.errors import UsageError
from foretune.methods.stopping.halving import AsyncHalving, hyperband, successive_halving
from foretune.methods.stopping.learnt_steps import LearntSteps
from foretune.methods.stopping.median import MedianStopping
from foretune.methods.stopping.model_steps import ModelSteps
from foretune.methods.stopping.policy import StepRange, StoppingPolicy

POLICIES: Mapping[str, Callable[[StepRange], StoppingPolicy]] = {
    "asha": AsyncHalving,
    "hyperband": hyperband,
    "halving": successive_halving,
    "median": MedianStopping,
    "none": lambda _: StoppingPolicy(),
    "model": lambda steps: ModelSteps(steps.first, steps.last),
}
"""Stopping policies by the name that `foretune tune --stop` takes."""


BRACKETED = {"hyperband": hyperband, "halving": successive_halving}
"""Policies that need the last step, and plan how many trials start together."""


def make_policy(name: str, steps: StepRange) -> StoppingPolicy:
    """Return the stopping policy with this name."""
    check_policy_name(name)
    return POLICIES[name](steps)


def learn_steps(
    name: str,
    *,
    first: float | None = None,
    last: float | None = None,
    eta: float = 3.0,
    trials: int | None = None,
    sign: float = 1.0,
) -> StoppingPolicy:
    """Return the policy with this name, which learns from the race which steps there are.

    first: the first step at which a trial may end early. Default: the first one reported.
    last: the last step of a trial. Default: that of the first complete trial.
    eta: one of `eta` trials goes on from each level to the next.
    trials: how many trials the search has, if that is known. A bracket that would have more is
        complete without them.
    sign: -1 if values grow, so that reasons show values and not losses.
    """
    check_policy_name(name)
    # Wrong steps are refused at once, not when the first trial reports.
    known = [step for step in (first, last) if step is not None] or [1.0]
    StepRange(known[0], known[-1], eta)
    if name == "none":
        return StoppingPolicy()
    if name == "model":
        return ModelSteps(first, last, sign, trials=trials)
    if name in BRACKETED:
        return LearntSteps(partial(BRACKETED[name], trials=trials), True, first, last, eta)
    # A level at the unknown last step would pause trials that are complete.
    return LearntSteps(POLICIES[name], name == "asha", first, last, eta)


def check_policy_name(name: str) -> None:
    """Refuse a name that no stopping policy has."""
    if name not in POLICIES:
        raise UsageError(
            f"a stopping policy must be one of {', '.join(POLICIES)}, but got '{name}': "
            f"{suggestion(name, list(POLICIES))}",
            rule="unknown-policy",
            field="stop",
            value=name,
        )
