"""How many tasks an adaptive builder works with.

The paper's tables have 40 to 88 tasks for 3,000 jobs. Where there are more tasks, trying one
configuration on all of them eats a budget that would teach more about further configurations; a
random panel of tasks estimates the mean well enough.
"""

import numpy as np

from foretune._base.arrays import Ints
from foretune.methods.zero_shot.jobs import Jobs

FULL_TRIALS = 40
"""The least number of configurations that the budget affords on the whole panel."""
LEAST_TASKS = 20


def panel_of(jobs: Jobs, rng: np.random.Generator) -> Ints:
    """Draw the tasks to work with, in random order, enough of them to spend the budget."""
    order = rng.permutation(len(jobs.possible))
    # Where tasks share no configurations, each has only its own: few jobs, and far fewer than 40.
    possible = np.cumsum(jobs.possible[order].sum(axis=1))
    spent_by = int(np.searchsorted(possible, jobs.budget)) + 1
    size = max(jobs.budget // min(FULL_TRIALS, len(jobs.candidates)), LEAST_TASKS, spent_by)
    return order[:size]
