"""Naive greedy (Algorithm 1): few random configurations on all tasks, then the greedy choice."""

from functools import cached_property

import numpy as np

from foretune._base.arrays import Ints
from foretune.errors import MethodError, UsageError
from foretune.methods.zero_shot.builder import Builder, PortfolioJob
from foretune.methods.zero_shot.jobs import Jobs
from foretune.methods.zero_shot.table import least_tasks
from foretune.numerics.greedy import Picks, greedy


class Naive(Builder):
    """Evaluates floor(B / D) random candidates on all D tasks and picks k of them."""

    @cached_property
    def drawn(self) -> Ints:
        """The candidates that the budget affords, in order."""
        check_common_tasks(self.jobs, "naive")
        tasks, candidates = self.jobs.possible.shape
        order = self.random_order()
        costs = np.cumsum(tasks - self.jobs.free[:, order].sum(axis=0))
        affordable = int(np.searchsorted(costs, self.jobs.budget, side="right"))
        wanted = min(self.k, candidates)
        if affordable < wanted:
            raise UsageError(
                f"the naive builder tries each configuration on all {tasks} tasks, so a portfolio "
                f"of {wanted} needs a budget of at least {costs[wanted - 1]} jobs, but got "
                f"{self.jobs.budget}: raise the budget, or use the builder obo or mf",
                rule="budget-of-builder",
                field="budget",
                value=self.jobs.budget,
            )
        return order[:affordable]

    def planned_jobs(self) -> tuple[Ints, Ints]:
        """Return one candidate after the other, on all tasks."""
        tasks = len(self.jobs.possible)
        return np.tile(np.arange(tasks), len(self.drawn)), np.repeat(self.drawn, tasks)

    def next_job(self) -> PortfolioJob | None:
        """Return the next job of the plan."""
        waiting = self.jobs.open[:, self.drawn]
        place = int(waiting.any(axis=0).argmax())
        if not waiting[:, place].any():
            return None
        return PortfolioJob(int(waiting[:, place].argmax()), int(self.drawn[place]))

    def picks(self) -> Picks:
        """Choose among the candidates that were tried on all tasks, if there are any."""
        tried = self.jobs.ran[:, self.drawn].sum(axis=0)
        columns = self.drawn[(tried > 0) & (tried == tried.max())]
        picks = greedy(self.jobs.losses[:, columns], self.k, self.aggregate)
        return Picks(columns[picks.chosen], picks.losses)


def check_common_tasks(jobs: Jobs, builder: str) -> None:
    """Refuse jobs that cannot compare configurations on the same tasks."""
    if jobs.possible.all():
        return
    least = least_tasks(len(jobs.possible))
    rare = int(np.count_nonzero(jobs.possible.sum(axis=0) < least))
    raise MethodError(
        f"the builder {builder} compares configurations that were tried on the same tasks, but "
        f"{rare} of the {len(jobs.candidates)} recorded ones were tried on one task alone, or on "
        f"fewer than half of the {len(jobs.possible)} tasks: use the builder surrogate or obo, "
        "which predict the rest",
        rule="no-common-configs",
        field="builder",
        value=builder,
    )
