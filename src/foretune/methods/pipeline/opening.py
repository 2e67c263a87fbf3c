"""The initial pipelines of section 5.3: greedy by rank, so that each task has a good one."""

from collections.abc import Sequence

import numpy as np

from foretune.arrays import Ints
from foretune.learning import PastTask
from foretune.numerics.greedy import greedy
from foretune.numerics.normalise import share_of_better

PIPELINES = 5
"""I of Algorithm 2."""


def portfolio(tasks: Sequence[PastTask], n_configs: int, k: int = PIPELINES) -> Ints:
    """(k,) rows of the configurations that minimise the sum over tasks of the best rank.

    A pipeline that a task does not know counts as its worst there; of one that it knows more than
    once, the best rank counts.
    """
    ranks = np.full((len(tasks), n_configs), np.nan, dtype=np.float32)
    for row, task in zip(ranks, tasks, strict=True):
        np.fmin.at(row, task.rows, share_of_better(task.z).astype(np.float32))
    known = np.flatnonzero(~np.isnan(ranks).all(axis=0))
    return np.asarray(known[greedy(ranks[:, known], k).chosen])
