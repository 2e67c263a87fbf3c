"""How long a model takes to learn from all rows, going by the trials of its pipelines."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from foretune.automl.plan import FitPlan
from foretune.experience.trial import Trial, best_first

SHARE_OF_MODEL = 0.5
"""Of a given time, what fitting the model may take from the search."""
GROWTH = {"svm": 2.0, "svc": 2.0}
"""The power of the number of rows by which the time of an estimator grows, where it is not 1."""
CREW_SECONDS = 10.0
"""What takes less is fitted in this process: others would first have to start."""
CREW_STARTS = 3.0
"""The seconds that takes."""
MOST_GROWTH_HERE = 2.0
"""So many times the rows of a trial's fit, and no more, are learnt from in this process: what a
trial took says little about the time and memory that many more rows take."""


@dataclass(frozen=True, slots=True)
class FitTimeModel:
    """How a fit of the final model compares with a trial."""

    plan: FitPlan
    fits: int
    """Of one trial: one for each part that is held out."""
    growth: float
    """The final model learns from so many times the rows of a trial's fit."""

    @classmethod
    def of(cls, plan: FitPlan, *, rows: int) -> "FitTimeModel":
        """rows: all that the final model learns from."""
        learnt = [len(learn) for learn, _ in plan.protocol.splits(plan.table)]
        return cls(plan, len(learnt), rows * len(learnt) / sum(learnt))

    def power(self, trial: Trial) -> float:
        """The power of the number of rows by which the time of its pipeline grows."""
        return GROWTH.get(str(trial.config.get(self.plan.shipped.choice)), 1.0)

    def seconds(self, trial: Trial) -> float:
        """What the pipeline of a trial is expected to take for all rows."""
        return trial.seconds / self.fits * math.pow(self.growth, self.power(trial))

    def measure_seconds(self, trials: Sequence[Trial]) -> list[float]:
        """The same of those whose time was measured."""
        return [seconds for seconds in map(self.seconds, trials) if math.isfinite(seconds)]

    def quick_enough(self, trials: Sequence[Trial], seconds: float) -> list[Trial]:
        """Those that are expected to learn from all rows in this time; the quickest where none is.

        A trial of an unknown time may be.
        """
        found = [trial for trial in trials if not self.seconds(trial) > seconds]
        return found or sorted(trials, key=self.seconds)[:1]

    def of_model(self, trials: Sequence[Trial], *, members: int, workers: int = 1) -> float:
        """What a model of so many of these trials may take, and what is told about its columns."""
        best = best_first(trials, self.plan.metric)[:members]
        return self.together(best, workers) + sum(self.measure_seconds(best)[:1])

    def together(self, trials: Sequence[Trial], workers: int) -> float:
        """What the pipelines of these take that share so many processes."""
        known = self.measure_seconds(trials)
        if not known or workers == 1 or not self.wants_crew(trials):
            return sum(known)
        return CREW_STARTS + max(*known, sum(known) / workers)

    def wants_crew(self, trials: Sequence[Trial]) -> bool:
        """Whether the pipelines of these are better fitted by processes beside this one."""
        return self.growth > MOST_GROWTH_HERE or sum(self.measure_seconds(trials)) > CREW_SECONDS
