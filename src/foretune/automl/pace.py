"""How long a model takes to learn from all rows, going by the trials of its pipelines."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from foretune.automl.plan import Plan
from foretune.automl.search import ranked
from foretune.run.study import StudyTrial

GROWTH = {"svm": 2.0, "svc": 2.0}
"""The power of the number of rows by which the time of an estimator grows, where it is not 1."""
CREW_SECONDS = 10.0
"""What takes less is fitted in this process: others would first have to start."""
CREW_STARTS = 3.0
"""The seconds that takes."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How a fit of the final model compares with a trial."""

    plan: Plan
    fits: int
    """Of one trial: one for each part that is held out."""
    growth: float
    """The final model learns from so many times the rows of a trial's fit."""

    @classmethod
    def of(cls, plan: Plan, *, rows: int) -> "Pace":
        """rows: all that the final model learns from."""
        learnt = [len(learn) for learn, _ in plan.protocol.splits(plan.table)]
        return cls(plan, len(learnt), rows * len(learnt) / sum(learnt))

    def seconds(self, trial: StudyTrial) -> float:
        """What the pipeline of a trial is expected to take for all rows."""
        power = GROWTH.get(str(trial.config.get(self.plan.shipped.choice)), 1.0)
        return trial.seconds / self.fits * math.pow(self.growth, power)

    def of_model(self, trials: Sequence[StudyTrial], *, members: int, workers: int = 1) -> float:
        """What a model of so many of these trials may take, and what is told about its columns."""
        best = ranked(trials, self.plan)[:members]
        known = [seconds for seconds in map(self.seconds, best) if math.isfinite(seconds)]
        return _together(known, workers) + sum(known[:1])


def is_worth_a_crew(seconds: Iterable[float]) -> bool:
    """Whether what takes these times is better done by processes beside this one."""
    return sum(filter(math.isfinite, seconds)) > CREW_SECONDS


def _together(seconds: Sequence[float], workers: int) -> float:
    """What several fits take that share so many processes."""
    if workers == 1 or not is_worth_a_crew(seconds):
        return sum(seconds)
    return CREW_STARTS + max(*seconds, sum(seconds) / workers)
