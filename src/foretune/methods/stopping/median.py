"""Median stopping (Golovin et al. 2017, "Google Vizier", section 3.2.2)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import median

from foretune.methods.stopping.policy import (
    CONTINUE,
    Decision,
    StepDecision,
    StepRange,
    StoppingPolicy,
)
from foretune.methods.stopping.race import Race


@dataclass(frozen=True)
class MedianStopping(StoppingPolicy):
    """Stop a trial whose best loss so far is worse than the median of the others' averages.

    The average of another trial includes its losses up to the same step.
    """

    steps: StepRange
    fewest_others: int = 4
    """No trial is stopped before this number of others has reached its step."""

    def decide(self, race: Race, trial: int) -> StepDecision:
        """Compare a trial with all others that have reached its step."""
        entry = race[trial]
        step = entry.last_step
        if step < self.steps.first:
            return CONTINUE
        averages = [
            other.average_until(step)
            for each, other in race
            if each != trial and other.last_step >= step
        ]
        if len(averages) < self.fewest_others:
            return CONTINUE
        middle, best = median(averages), entry.best_until(step)
        if not best > middle:
            return CONTINUE
        reason = f"its best, {best:.4g}, is worse than the median of others, {middle:.4g}"
        return StepDecision(Decision.STOP, f"{reason}, at step {step:g}")

    def next_decision(self, race: Race, trial: int) -> float:
        """Return the first step of the range, and then every step."""
        last = race[trial].last_step
        return self.steps.first if last < self.steps.first else math.nextafter(last, math.inf)
