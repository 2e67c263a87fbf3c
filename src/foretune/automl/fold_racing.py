"""Stops a trial after its first folds if it is clearly worse than half of the complete trials.

A trial reports the loss of each fold. The folds are the same for all trials, so losses are compared
fold by fold: what a fold adds to the loss of every trial does not count.
"""

import math
from dataclasses import dataclass

import numpy as np

from foretune._base.arrays import Floats
from foretune.experience import Status
from foretune.methods.stopping.policy import CONTINUE, Decision, StepDecision, StoppingPolicy
from foretune.methods.stopping.race import Race, RaceEntry

FEWEST_OTHERS = 6
"""No trial is stopped before so many others are complete."""
CLEARLY = 2.0
"""A trial is clearly worse if it is worse by this many standard errors."""


@dataclass(frozen=True)
class FoldRacing(StoppingPolicy):
    """Stops a trial for good if its folds so far are clearly worse than the median trial's.

    The difference from the best trial in the same folds has the standard error that such
    differences have between the folds of complete trials.
    """

    folds: int
    """The number of folds, which are the steps of a trial."""

    def decide(self, race: Race, trial: int) -> StepDecision:
        """Compare the folds of a trial with those of the complete ones."""
        own = race[trial].losses
        if not 0 < len(own) < self.folds:
            return CONTINUE
        others = [each.losses for _, each in race if self._is_complete(each)]
        if len(others) < FEWEST_OTHERS:
            return CONTINUE
        worse = worse_than_median(np.array(own), np.array(others))
        if not worse > 0.0:
            return CONTINUE
        fold = "its first fold" if len(own) == 1 else f"its first {len(own)} folds"
        return StepDecision(
            Decision.STOP, f"clearly worse in {fold} than half of the complete trials"
        )

    def next_decision(self, race: Race, trial: int) -> float:
        """Return the next fold."""
        return race[trial].last_step + 1.0

    def _is_complete(self, entry: RaceEntry) -> bool:
        return (
            entry.status is Status.DONE
            and len(entry.losses) == self.folds
            and all(map(math.isfinite, entry.losses))
        )


def worse_than_median(own: Floats, others: Floats) -> float:
    """Return by how much a trial is worse than the median trial, beyond what chance explains.

    own: the losses (k,) of its first folds. others: (trials, folds), those of complete trials. It
    is positive only if the trial is clearly worse.
    """
    means = others.mean(axis=1)
    best = others[np.argmin(means)]
    behind = float(np.median(means) - means.min())
    differences = others - best
    # The best trial has no difference from itself.
    spreads = differences[differences.any(axis=1)].std(axis=1, ddof=1)
    error = float(np.median(spreads)) if len(spreads) else 0.0
    lost = float(np.mean(own - best[: len(own)]))
    return lost - CLEARLY * error / math.sqrt(len(own)) - behind
