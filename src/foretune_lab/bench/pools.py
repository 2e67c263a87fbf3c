"""The recorded configurations of one task, and the facts about them that a report needs."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from foretune.experience import Experience
from foretune.numerics import Floats, pareto_front
from foretune.space import Encoded
from foretune_lab.bench.metrics import random_search_minimum


@dataclass(frozen=True, slots=True)
class TaskPool:
    """The configurations that can be chosen on one task, each of them once, and their losses."""

    task: str
    configs: Encoded
    losses: Floats
    """(n, objectives), minimised; a row of NaN if the evaluation failed."""


def pool_of(experience: Experience, task: str) -> TaskPool:
    """Return the pool of one task that has a success.

    If a configuration was recorded more than once, it counts at its highest fidelity, with the mean
    of its successes there.
    """
    records = experience.task(task)
    chosen, place = np.unique(records.config_index, return_inverse=True)
    usable = records.is_full_fidelity
    totals = np.zeros((len(chosen), records.losses.shape[1]))
    np.add.at(totals, place.ravel()[usable], records.losses[usable])
    counts = np.bincount(place.ravel()[usable], minlength=len(chosen))[:, None]
    losses = np.divide(totals, counts, out=np.full(totals.shape, np.nan), where=counts > 0)
    return TaskPool(task, experience.configs.take(chosen.astype(np.int64)), losses)


@dataclass(frozen=True, slots=True)
class PoolFacts:
    """The facts about a pool that the metrics need, small enough to be stored with the results."""

    size: int
    low: float
    """The lowest loss of the first objective."""
    high: float
    random: Floats
    """(trials,), the expected best of exact random search."""
    front: Floats
    """(members, objectives), the Pareto front."""
    reference: Floats
    """(objectives,), the maximum of each."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and lists, for JSON."""
        return {
            "size": self.size,
            "low": self.low,
            "high": self.high,
            "random": self.random.tolist(),
            "front": self.front.tolist(),
            "reference": self.reference.tolist(),
        }

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> "PoolFacts":
        """Read what `to_dict` gave."""
        return cls(
            int(plain["size"]),
            float(plain["low"]),
            float(plain["high"]),
            np.asarray(plain["random"], dtype=np.float64),
            np.asarray(plain["front"], dtype=np.float64),
            np.asarray(plain["reference"], dtype=np.float64),
        )


def facts_of(pool: TaskPool, trials: int) -> PoolFacts:
    """Return what a report of `trials` trials must know about the pool."""
    first = pool.losses[:, 0]
    return PoolFacts(
        size=len(first),
        low=float(np.nanmin(first)),
        high=float(np.nanmax(first)),
        random=random_search_minimum(first, trials),
        front=np.unique(pool.losses[pareto_front(pool.losses)], axis=0),
        reference=np.nanmax(pool.losses, axis=0),
    )
