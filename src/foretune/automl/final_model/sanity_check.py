"""Checks that a pipeline that has learnt from all rows is about as good as its trial.

Boosting of many classes may diverge when a few rows change, and no library reports it.
"""

import numpy as np

from foretune.automl.baseline import guess
from foretune.automl.estimators.fitted_pipeline import Member
from foretune.automl.evaluation import Protocol, for_scorer
from foretune.tables import Table

MOST_ROWS = 1000
MARGIN = 0.1
"""A pipeline may be worse than a guess by this share of the guess's score. A pipeline that diverges
is far worse."""


def is_sound(
    member: Member, table: Table, protocol: Protocol, *, promised: float, guessed: float
) -> bool:
    """Return whether a member is not much worse than a guess, on rows that it has learnt from.

    promised: the first metric of its trial, on rows that it had not learnt from. guessed: the same
    metric of a guess without any column. The member may be as much worse than a guess as its trial
    was better.
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
    # A score that is not a number fails this comparison too.
    return bool(gain <= 0.0 or lost <= max(gain, MARGIN * abs(least)))
