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

from foretune._base.arrays import Bools, Floats, Ints
from foretune.methods.contracts import Observations
from foretune.numerics.objectives import distinct_rows
from foretune.space import Encoded

STEEPNESS = 4.0
"""How suddenly a plateau ends."""
FAR = 2.5
"""At so many times the reach, the probability of something new is 1 to the last digit."""
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
        # Whatever lies farther away is new for certain, and a search that may stop there is short.
        distances = np.asarray(self.tried.query(x.x, distance_upper_bound=FAR * self.reach)[0])
        return np.log(np.maximum(_newness(distances, self.reach), LEAST_PROBABILITY))


def learn_novelty(told: Observations, distinct: tuple[Ints, Ints, Ints] | None = None) -> Novelty:
    """Learn the reach that makes most likely which trials repeated a loss when they were made.

    distinct: what `distinct_losses` returns for the successful trials, if it is known.
    """
    good = told.successes()
    first, plateau, _ = distinct_losses(good.losses) if distinct is None else distinct
    if len(first) == len(good):
        return Novelty(None)
    new = first[plateau] == np.arange(len(good))
    later = np.arange(1, len(good))[-MOST_LEARNT:]
    distances = _to_earlier(good.configs.x, int(later[0]))
    return Novelty(_tree(good.configs.x), most_likely_reach(distances, new[later]))


def distinct_losses(losses: Floats) -> tuple[Ints, Ints, Ints]:
    """Of losses (n, L): the first row of each distinct one, which of them each row has (n,), and
    how many rows have it.
    """
    if losses.shape[1] > 1:
        return distinct_rows(losses)
    _, first, which, shared = np.unique(
        losses[:, 0], return_index=True, return_inverse=True, return_counts=True
    )
    return first, which, shared


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


def _tree(x: Floats) -> KDTree:
    """A search tree, grown anew after each trial: one that is not balanced is grown faster."""
    return KDTree(x, balanced_tree=False, compact_nodes=False)


def _to_earlier(x: Floats, begin: int) -> Floats:
    """From each row of x (n, d) from `begin` on, the distance to the nearest row before it.

    Rows before `begin` are searched by a tree: comparing with all of them would cost n for each.
    """
    later = np.arange(begin, len(x))
    nearest = np.asarray(_tree(x[:begin]).query(x[later])[1])
    return np.array(
        [
            np.sqrt(np.square(x[[near, *range(begin, row)]] - x[row]).sum(axis=1).min())
            for row, near in zip(later.tolist(), nearest.tolist(), strict=True)
        ]
    )
