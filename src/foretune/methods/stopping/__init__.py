"""Policies that stop or pause poor trials while they run."""

from foretune.methods.stopping.halving import AsyncHalving, hyperband, successive_halving
from foretune.methods.stopping.median import MedianStopping
from foretune.methods.stopping.policies import POLICIES, learn_steps, make_policy
from foretune.methods.stopping.policy import Decision, StepDecision, StepRange, StoppingPolicy
from foretune.methods.stopping.race import Race, RaceEntry

__all__ = [
    "POLICIES",
    "AsyncHalving",
    "Decision",
    "MedianStopping",
    "Race",
    "RaceEntry",
    "StepDecision",
    "StepRange",
    "StoppingPolicy",
    "hyperband",
    "learn_steps",
    "make_policy",
    "successive_halving",
]
