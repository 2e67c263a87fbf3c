"""What the told trials say about candidates, independent of the model."""

from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

from foretune._base.arrays import Floats, Ints
from foretune.methods.contracts import Observations
from foretune.search.feasibility import Feasibility, learn_feasibility
from foretune.search.novelty import Novelty, distinct_losses, learn_novelty
from foretune.space import Encoded

GOOD_STARTS = 5
"""The number of best trials that local searches start from."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """The risks of candidates to fail or to repeat a loss, and the trials to search around."""

    feasible: Feasibility
    novel: Novelty
    seen: Encoded
    """The trials that succeeded."""
    around: Encoded
    """The best of them."""

    def discount(self, x: Encoded) -> Floats:
        """Return (len(x),), what is added to a candidate's log utility for its risks: at most 0."""
        return self.feasible.discount(x) + self.novel.discount(x)


def learn_outlook(told: Observations, *, plateaus: bool) -> Outlook:
    """Learn from the told trials. plateaus: look for losses that repeat."""
    good = told.successes()
    distinct = distinct_losses(good.losses)
    return Outlook(
        learn_feasibility(told),
        learn_novelty(good, distinct) if plateaus else Novelty(None),
        good.configs,
        _best_of(good, first=distinct[0], shared=distinct[2]),
    )


def _best_of(good: Observations, *, first: Ints, shared: Ints) -> Encoded:
    """Return the best trials with a unique loss. Others lie on plateaus.

    Trials are ordered by the mean of their ranks, because objectives have different units.
    """
    alone = np.sort(first[shared == 1])
    ranks = rankdata(good.losses[alone], axis=0).mean(axis=1)
    order = np.argsort(ranks, kind="stable")
    return good.configs.take(alone[order[:GOOD_STARTS]])
