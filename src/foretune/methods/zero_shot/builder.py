"""The base class of the builders. A builder chooses jobs one after the other, and then picks.

A builder keeps nothing that it cannot find out again from the jobs: what was run, what runs now,
and the losses. So it goes on after a kill, beside other machines, and from evaluations that were
made before.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from foretune._base.arrays import Ints
from foretune.errors import UsageError
from foretune.methods.zero_shot.jobs import Jobs, RecordedJobs
from foretune.numerics.greedy import Aggregate, Picks


class PortfolioJob(NamedTuple):
    """One evaluation."""

    task: int
    candidate: int


@dataclass(frozen=True, slots=True)
class Caps:
    """Limits that keep a builder fast. They change what it finds only where they bind."""

    most_candidates: int = 2_000
    """The most candidates that OBO scores. If there are more, it scores those that have been tried
    and a random part of the others, which changes with every forest."""
    most_rows: int = 2_000
    """The most evaluations of a task that its forest learns from, in the builder `surrogate`."""
    best_predicted: int = 200
    """If tasks share no configurations: this number of the best of each task may enter a portfolio
    of the builder `surrogate`."""

    def __post_init__(self) -> None:
        for name in ("most_candidates", "most_rows", "best_predicted"):
            value = getattr(self, name)
            if value < 2:
                raise UsageError(
                    f"a cap must be a whole number of at least 2, but {name} is {value}: choose a "
                    "larger one",
                    rule="least-cap",
                    field=name,
                    value=value,
                )


USUAL_CAPS = Caps()


class Builder(ABC):
    """Chooses jobs by what is known and what runs now, and picks candidates in the end.

    Arguments:
        jobs: what may be run, and what is known.
        k: the number of configurations of the portfolio.
        aggregate: how losses of tasks are combined.
        seed: decides all randomness.
        first: this number of candidates, at the head of the list, are tried before others.
    """

    def __init__(
        self,
        jobs: Jobs,
        k: int,
        aggregate: Aggregate,
        *,
        seed: int,
        caps: Caps = USUAL_CAPS,
        first: int = 0,
    ) -> None:
        self.jobs, self.k, self.aggregate = jobs, k, aggregate
        self.seed, self.caps, self.first = seed, caps, first

    @abstractmethod
    def next_job(self) -> PortfolioJob | None:
        """Return the job to begin next; None if there is none, or none before others end."""

    @abstractmethod
    def picks(self) -> Picks:
        """Return at most k candidates in order, and the loss expected after each."""

    def planned_jobs(self) -> tuple[Ints, Ints] | None:
        """Return the tasks and candidates of all jobs if no loss changes them, else None."""
        return None

    def random_order(self, *of: int) -> Ints:
        """Return all candidates in a random order that the seed and `of` decide."""
        rng = np.random.default_rng([self.seed, *of])
        others = self.first + rng.permutation(len(self.jobs.candidates) - self.first)
        return np.concatenate([np.arange(self.first), others])


def spend_budget(builder: Builder, jobs: RecordedJobs) -> Picks:
    """Run the jobs that a builder chooses, one after the other, and return its picks."""
    planned = builder.planned_jobs()
    if planned is not None:
        jobs.run(*planned)
        return builder.picks()
    while jobs.remaining and (job := builder.next_job()) is not None:
        jobs.run(np.array([job.task]), np.array([job.candidate]))
    return builder.picks()
