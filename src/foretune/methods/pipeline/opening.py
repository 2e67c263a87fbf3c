"""The initial pipelines of section 5.3, chosen greedily by rank: each task has a good one."""

from collections.abc import Sequence

import numpy as np

from foretune._base.arrays import Ints
from foretune.methods.past_data import PastTask
from foretune.numerics.greedy import greedy
from foretune.numerics.normalise import share_of_better

PIPELINES = 5
"""I of Algorithm 2."""
MOST_CELLS = 50_000_000
"""The largest table of tasks and configurations."""
BEST_OF_EACH = 20
"""With a larger table, this number of best configurations of each task may be chosen."""


def portfolio(tasks: Sequence[PastTask], k: int = PIPELINES) -> Ints:
    """Return (k,) rows of the configurations that minimise the sum over tasks of the best rank.

    A pipeline that a task has not tried counts as its worst. If a task has tried a pipeline more
    than once, the best rank counts.
    """
    tried = np.unique(np.concatenate([task.rows for task in tasks]))
    if len(tasks) * len(tried) > MOST_CELLS:
        # Tasks share little, so the table would be nearly empty. Only the best of each are kept.
        best = [task.rows[np.argsort(task.z, kind="stable")[:BEST_OF_EACH]] for task in tasks]
        tried = np.unique(np.concatenate(best))
    ranks = np.full((len(tasks), len(tried)), np.nan, dtype=np.float32)
    for row, task in zip(ranks, tasks, strict=True):
        places = np.minimum(np.searchsorted(tried, task.rows), len(tried) - 1)
        kept = tried[places] == task.rows
        shares = share_of_better(task.z).astype(np.float32)
        np.fmin.at(row, places[kept], shares[kept])
    return np.asarray(tried[greedy(ranks, k).chosen])
