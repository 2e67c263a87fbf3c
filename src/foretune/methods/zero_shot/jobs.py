"""The jobs of a builder: the loss of one configuration on one task, within a budget."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from foretune._base.arrays import Bools, Floats, Ints
from foretune._base.progress import SILENT, Progress
from foretune.errors import UsageError
from foretune.methods.zero_shot.table import LossTable
from foretune.numerics.greedy import Losses
from foretune.space import Encoded

Evaluate: TypeAlias = Callable[[Ints, Ints], Floats]
"""Tasks and candidates, both (n,) by position -> n losses in one unit.

A job failed where its loss is not finite, or too large for single precision.
"""


class Jobs:
    """Which jobs may be run, which run now, and the losses so far.

    Arguments:
        tasks: how many there are, D.
        candidates: the N configurations that a portfolio may hold.
        budget: how many jobs may be run; all of them if not given.
        possible: (D, N), which jobs can be run at all; each of them if not given.
    """

    def __init__(
        self,
        tasks: int,
        candidates: Encoded,
        *,
        budget: int | None = None,
        possible: Bools | None = None,
    ) -> None:
        if budget is not None and budget < 1:
            raise UsageError(
                f"a budget must be at least one job, but got {budget}: give more",
                rule="least-one-job",
                field="budget",
                value=budget,
            )
        shape = (tasks, len(candidates))
        self.candidates = candidates
        self.possible: Bools = np.ones(shape, dtype=bool) if possible is None else possible
        every = int(np.count_nonzero(self.possible))
        self.budget = every if budget is None else min(budget, every)
        self.ran: Bools = np.zeros(shape, dtype=bool)
        self.free: Bools = np.zeros(shape, dtype=bool)
        """(D, N), the jobs whose losses were known before. They cost nothing."""
        self.pending: Bools = np.zeros(shape, dtype=bool)
        """(D, N), the jobs that run now."""
        self.losses = np.full(shape, np.nan, dtype=np.float32)
        """(D, N), NaN where a job has failed or has not been run."""
        self.used = self.pending_count = 0
        self.log: list[tuple[Ints, Ints]] = []
        """The jobs that ended, in the order in which they ended."""
        self._worst: Floats = np.full(tasks, np.nan)

    @property
    def remaining(self) -> int:
        """The number of jobs that may still be begun."""
        return self.budget - self.used - self.pending_count

    @property
    def open(self) -> Bools:
        """(D, N), the jobs that could be begun."""
        return self.possible & ~self.ran & ~self.pending

    def begin(self, task: int, candidate: int) -> None:
        """Note that a job runs now."""
        if not self.pending[task, candidate] and not self.ran[task, candidate]:
            self.pending[task, candidate] = True
            self.pending_count += 1

    def withdraw(self, task: int, candidate: int) -> None:
        """Note that a job does not run any more and has no result."""
        self.pending_count -= int(self.pending[task, candidate])
        self.pending[task, candidate] = False

    def finish(self, tasks: Ints, candidates: Ints, losses: Floats, *, free: bool = False) -> None:
        """Take in the losses of jobs; each job ends once.

        free: these losses were known before, and cost nothing.
        """
        self.pending_count -= int(np.count_nonzero(self.pending[tasks, candidates]))
        self.pending[tasks, candidates] = False
        self.ran[tasks, candidates] = True
        self._keep(tasks, candidates, _failures_as_nan(losses))
        if free:
            self.free[tasks, candidates] = True
        else:
            self.used += len(tasks)
        self.log.append((tasks, candidates))

    def _keep(self, tasks: Ints, candidates: Ints, losses: Losses) -> None:
        self.losses[tasks, candidates] = losses
        np.fmax.at(self._worst, tasks, losses)

    def results(self, tasks: Ints, candidates: Ints) -> Floats:
        """Return the losses (tasks, candidates) so far, NaN where a job has not been run.

        A job that failed counts as the worst loss that its task has shown, or that any has.
        """
        at = np.ix_(tasks, candidates)
        losses = self.losses[at].astype(np.float64)
        failed = self.ran[at] & np.isnan(losses)
        if failed.any():
            anywhere = np.nan_to_num(np.fmax.reduce(self._worst))
            worst = np.where(np.isnan(self._worst), anywhere, self._worst)
            losses = np.where(failed, worst[tasks, None], losses)
        return losses


class RecordedJobs(Jobs):
    """Jobs whose losses are there as soon as they are asked for.

    evaluate: runs jobs. progress: told of each job. The other arguments are those of `Jobs`.
    """

    def __init__(
        self,
        tasks: int,
        candidates: Encoded,
        evaluate: Evaluate,
        *,
        budget: int | None = None,
        possible: Bools | None = None,
        progress: Progress = SILENT,
    ) -> None:
        super().__init__(tasks, candidates, budget=budget, possible=possible)
        self._evaluate = evaluate
        self._progress = progress

    def run(self, tasks: Ints, candidates: Ints) -> None:
        """Run jobs, pair by pair. Jobs that were run before cost nothing."""
        new = ~self.ran[tasks, candidates]
        tasks, candidates = tasks[new], candidates[new]
        if len(tasks) > self.remaining or not self.possible[tasks, candidates].all():
            raise UsageError(
                f"jobs must be possible and within the budget, but {len(tasks)} were asked for and "
                f"{self.remaining} are left: ask for fewer or for other jobs",
                rule="jobs-within-budget",
                field="tasks",
                value=len(tasks),
            )
        self.finish(tasks, candidates, self._evaluate(tasks, candidates))
        self._progress.step(len(tasks))


def _failures_as_nan(losses: Floats) -> Losses:
    """The losses as they are kept: models and means know no infinite ones."""
    with np.errstate(over="ignore"):
        kept = np.asarray(losses, dtype=np.float64).astype(np.float32)
    return np.where(np.isfinite(kept), kept, np.float32(np.nan))


def look_up_jobs(
    table: LossTable, budget: int | None = None, *, progress: Progress = SILENT
) -> RecordedJobs:
    """Jobs that are looked up in a table.

    In a table of shared configurations these are the candidates, and a missing entry is a job that
    failed. Where tasks have tried configurations of their own, each is a candidate, and a missing
    entry is a job that cannot be run.
    """
    possible = None if table.has_common_configs else ~np.isnan(table.losses)
    table = table.select_common() if table.has_common_configs else table
    losses = table.losses

    def look_up(tasks: Ints, candidates: Ints) -> Floats:
        return losses[tasks, candidates].astype(np.float64)

    return RecordedJobs(
        len(table.tasks),
        table.configs,
        look_up,
        budget=budget,
        possible=possible,
        progress=progress,
    )
