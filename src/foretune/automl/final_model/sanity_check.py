"""Whether a pipeline that has learnt from all rows is what its trial promised.

Boosting of many classes may diverge on a few rows more or less, and no library says so.
"""

import numpy as np

from foretune.automl.baseline import guess
from foretune.automl.estimators.fitted_pipeline import Member
from foretune.automl.evaluation import Protocol, for_scorer
from foretune.tables.table import Table

MOST_ROWS = 1000
MARGIN = 0.1
"""By which share of a guess's score a pipeline may be worse than it: what diverges is far worse."""


def is_sound(
    member: Member, table: Table, protocol: Protocol, *, promised: float, guessed: float
) -> bool:
    """Whether it is not, on rows that it has learnt from, much worse than a guess.

    promised: the first metric of its trial, on rows that it had not learnt from. guessed: the same
    of a guess without any column. As far as the trial was above that, it may be below.
    """
    metric = protocol.metrics[0]
    scorer = protocol.scorers(table.task)[metric]
    rows = np.random.default_rng(protocol.seed).permutation(len(table))[:MOST_ROWS]
    some = table.rows(rows)
    if not scorer.is_defined(some.y):
        return True
    given = for_scorer(member, scorer, some, some.x)
    sign, least = scorer.metric.sign, scorer.score(guess(metric, table, some))
    gain, lost = sign * (guessed - promised), sign * (scorer.score(given) - least)
    # What is no number is not sound either.
    return bool(gain <= 0.0 or lost <= max(gain, MARGIN * abs(least)))
