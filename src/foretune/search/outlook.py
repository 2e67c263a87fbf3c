"""What the told trials say about every candidate, whatever the model is."""

from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

from foretune._base.arrays import Floats, Ints
from foretune.methods.contracts import Observations
from foretune.search.feasibility import Feasibility, learn_feasibility
from foretune.search.novelty import Novelty, distinct_losses, learn_novelty
from foretune.space import Encoded

GOOD_STARTS = 5
"""How many of the best trials so far start a local search of their own."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """Which candidates may fail or repeat a loss, and where to look more closely."""

    feasible: Feasibility
    novel: Novelty
    seen: Encoded
    """The trials that succeeded."""
    around: Encoded
    """The best of them."""

    def discount(self, x: Encoded) -> Floats:
        """(len(x),), what a candidate's log utility loses for its risks: at most 0."""
        return self.feasible.discount(x) + self.novel.discount(x)


def learn_outlook(told: Observations, *, plateaus: bool) -> Outlook:
    """Learn from the told trials. plateaus: whether to look for losses that repeat."""
    good = told.successes()
    distinct = distinct_losses(good.losses)
    return Outlook(
        learn_feasibility(told),
        learn_novelty(good, distinct) if plateaus else Novelty(None),
        good.configs,
        _best_of(good, first=distinct[0], shared=distinct[2]),
    )


def _best_of(good: Observations, *, first: Ints, shared: Ints) -> Encoded:
    """The best trials whose loss is their own: others lie on plateaus, with nothing around.

    By the mean of their ranks: of several objectives each has a unit of its own.
    """
    alone = np.sort(first[shared == 1])
    ranks = rankdata(good.losses[alone], axis=0).mean(axis=1)
    order = np.argsort(ranks, kind="stable")
    return good.configs.take(alone[order[:GOOD_STARTS]])
