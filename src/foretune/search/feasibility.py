"""The probability that a configuration runs without failure, learnt from the told trials.

Failures have sharp edges: one choice always crashes, or memory runs out above some size. The trees
of a random forest find such edges after a few failures. A Gaussian process needs tiny length scales
for them, and then forgets what lies behind. The probability multiplies every acquisition function.
Without failures nothing is computed.

If failure is almost certain, a barrier is added. Otherwise a small chance times the large
improvement of an unknown region would send many trials to fail there.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from foretune._base.arrays import Floats
from foretune.methods.contracts import Observations
from foretune.numerics.forests import grow_trees
from foretune.space import Encoded

TREES = 50
MOST_LEARNT = 1_000
"""The most trials that the forest learns from, spread evenly over the search. It is grown at each
ask."""
LEAST_PROBABILITY = 0.01
HOPELESS = 0.2
"""Below this probability of success a configuration is tried only if there is nothing else."""
BARRIER = 1e3
"""The loss of log utility for each unit of probability below `HOPELESS`."""


@dataclass(frozen=True, slots=True)
class Feasibility:
    """Predicts how likely a configuration is to run."""

    trees: list[Any] | None
    """Classifiers of success; None while nothing has failed, or nothing has succeeded."""

    def probability(self, x: Encoded) -> Floats:
        """Return (len(x),), the probability of success; 1 while nothing is known."""
        if self.trees is None or len(x) == 0:
            return np.ones(len(x))
        codes = x.codes.astype(np.float32)
        votes = [tree.predict(codes)[:, 1] for tree in self.trees]
        share: Floats = np.mean(votes, axis=0)
        return np.maximum(share, LEAST_PROBABILITY)

    def discount(self, x: Encoded) -> Floats:
        """Return (len(x),), what is added to a candidate's log utility for its risk: at most 0."""
        likely = self.probability(x)
        return np.log(likely) - BARRIER * np.maximum(HOPELESS - likely, 0.0)


def learn_feasibility(seen: Observations, *, most: int = MOST_LEARNT) -> Feasibility:
    """Learn which of at most `most` told trials failed. Believed ones do not count."""
    told = np.flatnonzero(~seen.believed)
    if len(told) > most:
        told = told[np.linspace(0, len(told) - 1, most).astype(np.int64)]
    succeeded = seen.is_success[told]
    if succeeded.all() or not succeeded.any():
        return Feasibility(None)
    from sklearn.tree import DecisionTreeClassifier

    codes = seen.configs.take(told).codes.astype(np.float32)
    return Feasibility(grow_trees(DecisionTreeClassifier(), codes, succeeded, trees=TREES, seed=0))
