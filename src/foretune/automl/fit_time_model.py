"""Estimates how long a model takes to learn from all rows, from the trials of its pipelines."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from foretune.automl.plan import FitPlan
from foretune.experience.trial import Trial, best_first

SHARE_OF_MODEL = 0.5
"""The share of the given time that fitting the model may take from the search."""
GROWTH = {"svm": 2.0, "svc": 2.0}
"""The time of an estimator grows with this power of the number of rows; 1 if it is not listed."""
SECONDS_HERE = 10.0
"""Pipelines that take less together are fitted in this process: workers would first have to
start."""
START_SECONDS = 3.0
"""The time in which workers start."""
MOST_GROWTH_HERE = 2.0
"""This process fits at most this many times the rows of a trial, because a trial says little about
the time and memory that many more rows take."""


@dataclass(frozen=True, slots=True)
class FitTimeModel:
    """Compares a fit of the final model with a trial."""

    plan: FitPlan
    fits: int
    """The number of fits in a trial: one for each part that is held out."""
    growth: float
    """The rows of the final model, divided by the rows of one fit in a trial."""

    @classmethod
    def of(cls, plan: FitPlan, *, rows: int) -> "FitTimeModel":
        """Return the time model for a final model that learns from this many rows."""
        learnt = [len(learn) for learn, _ in plan.protocol.splits(plan.table)]
        return cls(plan, len(learnt), rows * len(learnt) / sum(learnt))

    def power(self, trial: Trial) -> float:
        """Return the power of the number of rows with which the time of its pipeline grows."""
        return GROWTH.get(str(trial.config.get(self.plan.shipped.choice)), 1.0)

    def seconds(self, trial: Trial) -> float:
        """Return the seconds that the pipeline of a trial should take for all rows."""
        return trial.seconds / self.fits * math.pow(self.growth, self.power(trial))

    def finite_seconds(self, trials: Sequence[Trial]) -> list[float]:
        """Return `seconds` of the trials whose time was measured."""
        return [seconds for seconds in map(self.seconds, trials) if math.isfinite(seconds)]

    def select_quick(self, trials: Sequence[Trial], seconds: float) -> list[Trial]:
        """Return the trials that should learn from all rows in time, or else only the quickest one.

        A trial whose time is unknown counts as quick.
        """
        found = [trial for trial in trials if not self.seconds(trial) > seconds]
        return found or sorted(trials, key=self.seconds)[:1]

    def model_seconds(self, trials: Sequence[Trial], *, members: int, workers: int = 1) -> float:
        """Return the seconds for a model of the best trials and for its column importance."""
        best = best_first(trials, self.plan.metric)[:members]
        return self.total_seconds(best, workers) + sum(self.finite_seconds(best)[:1])

    def total_seconds(self, trials: Sequence[Trial], workers: int) -> float:
        """Return the seconds for the pipelines of all these trials, with this many workers."""
        seconds = self.finite_seconds(trials)
        if not seconds or workers == 1 or not self.needs_workers(trials):
            return sum(seconds)
        return START_SECONDS + max(*seconds, sum(seconds) / workers)

    def needs_workers(self, trials: Sequence[Trial]) -> bool:
        """Return whether worker processes should fit the pipelines of these trials."""
        return self.growth > MOST_GROWTH_HERE or sum(self.finite_seconds(trials)) > SECONDS_HERE
