"""Repetitions teach: the probability that a trial will tell something new.

Some objectives have plateaus: rounded scores, a table's nearest recorded configuration, whole
numbers behind real ones. A trial on a known plateau gives a loss that is known already, so it
cannot improve on anything. How far plateaus reach is learnt from the trials themselves: from which
of them repeated an earlier loss, and how near they were to an earlier trial. The probability of
something new multiplies every acquisition function; where no loss was met twice it costs nothing.
"""

from dataclasses import dataclass

import numpy as np
from scipy.spatial import KDTree

from foretune.arrays import Bools, Floats
from foretune.contracts import Observations
from foretune.space import Encoded

STEEPNESS = 4.0
"""How suddenly a plateau ends."""
REACHES: Floats = np.geomspace(0.02, 1.5, 24)
CHANCES: Floats = np.array([0.0, 0.01, 0.03, 0.1, 0.2, 0.4, 0.7, 0.9])
"""That a loss repeats however far the trial is from all others: coarse scores do."""
LEAST_PROBABILITY = 1e-3
MOST_LEARNT = 500
"""So many of the latest trials say how far plateaus reach."""


@dataclass(frozen=True, slots=True)
class Novelty:
    """How likely a configuration is to show a loss of its own."""

    tried: KDTree | None
    """The trials; None while no loss was met twice."""
    reach: float = 0.0
    """The distance in the unit cube at which plateaus end."""

    def discount(self, x: Encoded) -> Floats:
        """(len(x),), what a candidate's log utility loses for what it may repeat: at most 0."""
        if self.tried is None or len(x) == 0:
            return np.zeros(len(x))
        distances = np.asarray(self.tried.query(x.x)[0])
        return np.log(np.maximum(_newness(distances, self.reach), LEAST_PROBABILITY))


def learn_novelty(told: Observations) -> Novelty:
    """The reach that makes most likely which trials repeated a loss when they were made."""
    good = told.successes()
    _, first, plateau = np.unique(good.losses, axis=0, return_index=True, return_inverse=True)
    if len(first) == len(good):
        return Novelty(None)
    new = first[plateau.ravel()] == np.arange(len(good))
    later = np.arange(1, len(good))[-MOST_LEARNT:]
    distances = np.array([_to_nearest(good.configs.x[:row], good.configs.x[row]) for row in later])
    return Novelty(KDTree(good.configs.x), most_likely_reach(distances, new[later]))


def most_likely_reach(distances: Floats, new: Bools) -> float:
    """distances: (n,), from each trial to the nearest before it; new: (n,), not a repetition."""
    by_distance = np.array([_newness(distances, reach) for reach in REACHES])
    chance = np.clip(by_distance[:, None] * (1.0 - CHANCES)[:, None], 1e-3, 1.0 - 1e-3)
    likelihood = np.log(np.where(new, chance, 1.0 - chance)).sum(axis=2)
    return float(REACHES[np.unravel_index(likelihood.argmax(), likelihood.shape)[0]])


def _newness(distances: Floats, reach: float) -> Floats:
    """The probability of a new loss at distances (n,) from the nearest trial."""
    newness: Floats = -np.expm1(-((distances / reach) ** STEEPNESS))
    return newness


def _to_nearest(before: Floats, x: Floats) -> float:
    return float(np.sqrt(np.square(before - x).sum(axis=1).min()))
