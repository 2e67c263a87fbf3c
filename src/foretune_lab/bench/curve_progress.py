"""How far a run on learning curves has come: the best loss, or the hypervolume of several."""

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from foretune.numerics import Floats, pareto_front
from foretune_lab.bench.metrics import hypervolume


class CurveProgress(Protocol):
    """What the steps of a run have reached so far."""

    best: float
    """With one objective the lowest loss, with several the hypervolume."""

    @property
    def regret(self) -> float:
        """0 is the best possible."""

    def take(self, losses: Floats) -> None:
        """Take in the losses at a step."""


@dataclass(frozen=True, slots=True)
class LossScale:
    """The losses at the end of the curves of a task."""

    lowest: float
    median: float

    def regret(self, loss: float) -> float:
        """Return 0 for the lowest loss, 1 for the median or a worse one."""
        if not math.isfinite(loss):
            return 1.0
        if self.median <= self.lowest:
            return float(loss > self.lowest)
        return float(np.clip((loss - self.lowest) / (self.median - self.lowest), 0.0, 1.0))


class BestLoss:
    """The lowest loss of one objective."""

    def __init__(self, scale: LossScale) -> None:
        self._scale = scale
        self.best = math.inf

    @property
    def regret(self) -> float:
        """See `LossScale.regret`."""
        return self._scale.regret(self.best)

    def take(self, losses: Floats) -> None:
        """Take in the loss at a step; one that is not finite counts for nothing."""
        if math.isfinite(losses[0]):
            self.best = min(self.best, float(losses[0]))


@dataclass(frozen=True, slots=True)
class FrontScale:
    """The Pareto front of the losses at the end of the curves of a task."""

    front: Floats
    """(members, objectives)"""
    reference: Floats
    """(objectives,), the largest of each."""

    @classmethod
    def of(cls, ends: Floats) -> "FrontScale":
        """Measure the losses (n, objectives) at the ends of curves."""
        known = ends[np.isfinite(ends).all(axis=1)]
        return cls(np.unique(known[pareto_front(known)], axis=0), known.max(axis=0))


class CoveredVolume:
    """The hypervolume that the losses at all steps so far dominate."""

    def __init__(self, scale: FrontScale) -> None:
        self._scale = scale
        self._whole = hypervolume(scale.front, scale.reference)
        self._front = np.empty((0, len(scale.reference)))
        self.best = 0.0

    @property
    def regret(self) -> float:
        """The share of the hypervolume of the front of complete runs that is missing.

        Losses in the middle of curves count, too: a cheap and short run is a choice.
        """
        return max(0.0, 1.0 - self.best / self._whole) if self._whole > 0 else 0.0

    def take(self, losses: Floats) -> None:
        """Take in the losses at a step, if all are finite."""
        if not np.isfinite(losses).all() or (self._front <= losses).all(axis=1).any():
            return
        self._front = np.vstack([self._front[~(self._front >= losses).all(axis=1)], losses])
        self.best = hypervolume(self._front, self._scale.reference)
