"""The probability that a trial gives a new loss, learnt from the losses that repeated.

Some objectives have plateaus, for example rounded scores or whole numbers behind real ones. A trial
on a known plateau repeats a known loss, so it cannot improve. The reach of plateaus is learnt from
the trials: which of them repeated an earlier loss, and how near they were to an earlier trial. The
probability multiplies every acquisition function. If no loss came twice, nothing is computed.
"""

from dataclasses import dataclass

import numpy as np
from scipy.spatial import KDTree

from foretune._base.arrays import Bools, Floats, Ints
from foretune.methods.contracts import Observations
from foretune.numerics.objectives import distinct_rows
from foretune.space import Encoded

STEEPNESS = 4.0
"""How sharply a plateau ends."""
FAR = 2.5
"""From this multiple of the reach on, the probability of a new loss is 1 to the last digit."""
REACHES: Floats = np.geomspace(0.02, 1.5, 24)
CHANCES: Floats = np.array([0.0, 0.01, 0.03, 0.1, 0.2, 0.4, 0.7, 0.9])
"""The chances that a loss repeats far away from all others, as coarse scores do."""
LEAST_PROBABILITY = 1e-3
MOST_LEARNT = 500
"""The number of latest trials that the reach is learnt from."""


@dataclass(frozen=True, slots=True)
class Novelty:
    """Predicts how likely a configuration is to give a new loss."""

    tried: KDTree | None
    """The trials; None while no loss came twice."""
    reach: float = 0.0
    """The distance in the unit cube at which plateaus end."""

    def discount(self, x: Encoded) -> Floats:
        """Return (len(x),), what is added to the log utility of possible repetitions: at most 0."""
        if self.tried is None or len(x) == 0:
            return np.zeros(len(x))
        # All that lies farther away is new, and a search that stops there is short.
        distances = np.asarray(self.tried.query(x.x, distance_upper_bound=FAR * self.reach)[0])
        return np.log(np.maximum(_newness(distances, self.reach), LEAST_PROBABILITY))


def learn_novelty(
    told: Observations,
    distinct: tuple[Ints, Ints, Ints] | None = None,
    *,
    most: int = MOST_LEARNT,
) -> Novelty:
    """Learn the reach that makes most likely which trials repeated a loss when they were made.

    distinct: what `distinct_losses` returns for the successful trials, if it is known.
    """
    good = told.successes()
    first, plateau, _ = distinct_losses(good.losses) if distinct is None else distinct
    if len(first) == len(good):
        return Novelty(None)
    new = first[plateau] == np.arange(len(good))
    later = np.arange(1, len(good))[-most:]
    distances = _to_earlier(good.configs.x, int(later[0]))
    return Novelty(_tree(good.configs.x), most_likely_reach(distances, new[later]))


def distinct_losses(losses: Floats) -> tuple[Ints, Ints, Ints]:
    """Find the distinct rows of losses (n, L).

    Returns the first row of each distinct one, which of them each row has (n,), and how many rows
    have it.
    """
    if losses.shape[1] > 1:
        return distinct_rows(losses)
    _, first, which, shared = np.unique(
        losses[:, 0], return_index=True, return_inverse=True, return_counts=True
    )
    return first, which, shared


def most_likely_reach(distances: Floats, new: Bools) -> float:
    """Return the reach that explains best which trials gave a new loss.

    distances: (n,), from each trial to the nearest before it. new: (n,), whether its loss was new.
    """
    by_distance = np.array([_newness(distances, reach) for reach in REACHES])
    chance = np.clip(by_distance[:, None] * (1.0 - CHANCES)[:, None], 1e-3, 1.0 - 1e-3)
    likelihood = np.log(np.where(new, chance, 1.0 - chance)).sum(axis=2)
    return float(REACHES[np.unravel_index(likelihood.argmax(), likelihood.shape)[0]])


def _newness(distances: Floats, reach: float) -> Floats:
    """Return the probability of a new loss at distances (n,) from the nearest trial."""
    newness: Floats = -np.expm1(-((distances / reach) ** STEEPNESS))
    return newness


def _tree(x: Floats) -> KDTree:
    """Build a search tree. It is not balanced, because that is built faster after each trial."""
    return KDTree(x, balanced_tree=False, compact_nodes=False)


def _to_earlier(x: Floats, begin: int) -> Floats:
    """Return the distance from each row of x (n, d), starting at `begin`, to the nearest before it.

    A tree searches the rows before `begin`, because comparing with all of them takes longer.
    """
    later = np.arange(begin, len(x))
    nearest = np.asarray(_tree(x[:begin]).query(x[later])[1])
    return np.array(
        [
            np.sqrt(np.square(x[[near, *range(begin, row)]] - x[row]).sum(axis=1).min())
            for row, near in zip(later.tolist(), nearest.tolist(), strict=True)
        ]
    )
