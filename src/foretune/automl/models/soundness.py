"""Whether a pipeline that has learnt from all rows is what its trial promised.

Boosting of many classes may diverge on a few rows more or less, and no library says so.
"""

import numpy as np

from foretune.automl.models.evaluation import Protocol, predicted
from foretune.automl.models.members import Member
from foretune.automl.tables.datasets import Table

MOST_ROWS = 1000


def is_sound(
    member: Member, table: Table, protocol: Protocol, *, promised: float, guess: float
) -> bool:
    """Whether it does not fall, on rows that it has learnt from, as far below a guess as its trial
    was above it.

    promised: the first metric of its trial, on rows that it had not learnt from. guess: the same
    without any column.
    """
    scorer = protocol.scorers(table.task)[protocol.metrics[0]]
    rows = np.random.default_rng(protocol.seed).permutation(len(table))[:MOST_ROWS]
    some = table.rows(rows)
    if not scorer.defined(some.y):
        return True
    given = predicted(
        member,
        some.x,
        some.y,
        classes=len(some.classes),
        probabilities=scorer.needs_probabilities,
        weights=some.weights,
    )
    sign = scorer.metric.sign
    gain, lost = sign * (guess - promised), sign * (scorer.score(given) - guess)
    # What is no number is not sound either.
    return bool(gain <= 0.0 or lost <= gain)
