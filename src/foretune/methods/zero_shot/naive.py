"""Naive greedy (Algorithm 1): few random configurations on all tasks, then the greedy choice."""

import numpy as np

from foretune.errors import MethodError, UsageError
from foretune.methods.zero_shot.jobs import Jobs
from foretune.methods.zero_shot.table import least_tasks
from foretune.numerics.greedy import Aggregate, Picks, greedy


def naive(jobs: Jobs, k: int, aggregate: Aggregate, *, seed: int) -> Picks:
    """Evaluate floor(B / D) random candidates on all D tasks and pick k of them."""
    check_common_tasks(jobs, "naive")
    tasks, candidates = jobs.possible.shape
    affordable = jobs.remaining // tasks
    wanted = min(k, candidates)
    if affordable < wanted:
        raise UsageError(
            f"the naive builder tries each configuration on all {tasks} tasks, so a portfolio of "
            f"{wanted} needs a budget of at least {wanted * tasks} jobs, but got {jobs.remaining}: "
            "raise the budget, or use the builder obo or mf",
            rule="budget-of-builder",
            field="budget",
            value=jobs.remaining,
        )
    drawn = np.random.default_rng(seed).permutation(candidates)[:affordable]
    for candidate in drawn:
        jobs.run(np.arange(tasks), np.full(tasks, candidate))
    picks = greedy(jobs.losses[:, drawn], k, aggregate)
    return Picks(drawn[picks.chosen], picks.losses)


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
