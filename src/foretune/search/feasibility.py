"""Failures teach: the probability that a configuration will run at all.

A random forest learns from the trials told so far which of them failed. Failures have sharp edges
(one choice that always crashes, a size above which memory runs out), which trees find after a few
of them; a Gaussian process on the same labels answers an edge with tiny length scales and forgets
what lies behind it. The probability multiplies every acquisition function; without failures it
costs nothing.

Where failure is all but certain the factor becomes a barrier: once the rest of the space is well
known, even a small chance times the large improvement that an unseen region promises would send
trial after trial to fail there.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from foretune._base.arrays import Floats
from foretune.methods.contracts import Observations
from foretune.numerics.forests import grown
from foretune.space import Encoded

TREES = 50
MOST_LEARNT = 1_000
"""The forest sees at most so many trials, evenly over the search: it is grown at every ask."""
LEAST_PROBABILITY = 0.01
HOPELESS = 0.2
"""Below this probability of success a configuration is tried only if there is nothing else."""
BARRIER = 1e3
"""How much a candidate loses for each unit of probability below `HOPELESS`."""


@dataclass(frozen=True, slots=True)
class Feasibility:
    """How likely a configuration is to run, learnt from the trials that failed."""

    trees: list[Any] | None
    """They classify successes; None while nothing has failed, or nothing succeeded."""

    def probability(self, x: Encoded) -> Floats:
        """(len(x),), the probability of success; 1 as long as nothing can be told."""
        if self.trees is None or len(x) == 0:
            return np.ones(len(x))
        codes = x.codes.astype(np.float32)
        votes = [tree.predict(codes)[:, 1] for tree in self.trees]
        share: Floats = np.mean(votes, axis=0)
        return np.maximum(share, LEAST_PROBABILITY)

    def discount(self, x: Encoded) -> Floats:
        """(len(x),), what a candidate's log utility loses for its risk: at most 0."""
        likely = self.probability(x)
        return np.log(likely) - BARRIER * np.maximum(HOPELESS - likely, 0.0)


def learn_feasibility(seen: Observations) -> Feasibility:
    """Fit to which of the told trials failed (believed ones are not told)."""
    told = np.flatnonzero(~seen.believed)
    if len(told) > MOST_LEARNT:
        told = told[np.linspace(0, len(told) - 1, MOST_LEARNT).astype(np.int64)]
    succeeded = seen.is_success[told]
    if succeeded.all() or not succeeded.any():
        return Feasibility(None)
    from sklearn.tree import DecisionTreeClassifier

    codes = seen.configs.take(told).codes.astype(np.float32)
    return Feasibility(grown(DecisionTreeClassifier(), codes, succeeded, trees=TREES, seed=0))
