"""A policy that learns from the race which steps there are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

from foretune.experience.trial import Status
from foretune.methods.stopping.policy import CONTINUE, StepDecision, StepRange, StoppingPolicy
from foretune.methods.stopping.race import Race

MOST_LEVELS = 25
"""Levels of a policy that does not know the last step."""


@dataclass(frozen=True)
class LearntSteps(StoppingPolicy):
    """A policy whose first and last step are taken from the race, if they are not given.

    The first step is the first one that was reported. The last step is that of the first trial
    that was complete. A policy that needs the last step lets every trial run to its end until one
    was complete.
    """

    make: Callable[[StepRange], StoppingPolicy]
    needs_last: bool
    first: float | None = None
    last: float | None = None
    eta: float = 3.0
    _made: dict[StepRange, StoppingPolicy] = field(default_factory=dict, compare=False, repr=False)
    """Policies by their range. They depend on nothing else."""

    def decide(self, race: Race, trial: int) -> StepDecision:
        """Decide as the policy does for the steps that are known."""
        policy = self._policy(race)
        return CONTINUE if policy is None else policy.decide(race, trial)

    def resume(self, race: Race) -> int | None:
        """Return the paused trial that the policy would resume."""
        policy = self._policy(race)
        return None if policy is None else policy.resume(race)

    def hopeless(self, race: Race) -> set[int]:
        """Return the paused trials that the policy will never resume."""
        policy = self._policy(race)
        return set() if policy is None else policy.hopeless(race)

    def without_pauses(self) -> LearntSteps:
        """Return the policy that stops a trial where it would wait."""
        return replace(self, make=partial(_make_without_pauses, self.make), _made={})

    def next_decision(self, race: Race, trial: int) -> float:
        """Return the next step at which the policy may decide; any step while none is known."""
        policy = self._policy(race)
        return race[trial].last_step if policy is None else policy.next_decision(race, trial)

    def _policy(self, race: Race) -> StoppingPolicy | None:
        """Return the policy for the steps that are known; None if too few are."""
        first = find_first_step(race) if self.first is None else self.first
        last = find_last_step(race) if self.last is None else self.last
        if first is None or (last is None and self.needs_last):
            return None
        most = first * self.eta**MOST_LEVELS
        steps = StepRange(first, most if last is None else max(first, last), self.eta)
        if steps not in self._made:
            self._made[steps] = self.make(steps)
        return self._made[steps]


def _make_without_pauses(
    make: Callable[[StepRange], StoppingPolicy], steps: StepRange
) -> StoppingPolicy:
    return make(steps).without_pauses()


def find_first_step(race: Race) -> float | None:
    """Return the first step above 0 of the first trial that has reported one."""
    for _, entry in race:
        for step in entry.steps[:2]:
            if step > 0:
                return step
    return None


def find_last_step(race: Race) -> float | None:
    """Return the last step of the first trial that was complete."""
    complete = (entry for _, entry in race if entry.status is Status.DONE and entry.steps)
    return next((entry.last_step for entry in complete), None)
