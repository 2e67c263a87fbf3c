"""What a method is told about trials that were pruned before they had a result."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from optuna.trial import FrozenTrial

from foretune._base.arrays import Floats


@dataclass
class PrunedLosses:
    """Estimates the losses that pruned trials would have ended with, from trials that ended.

    A loss changes from a step to the end as it did in complete trials (the median of them). A
    pruned trial without a usable report is as bad as the worst complete one.
    """

    signs: Sequence[float]
    """1 for an objective that is minimised, else -1."""
    _worst: Floats | None = None
    _curves: list[tuple[Floats, Floats, float]] = field(default_factory=list)
    """The steps, losses and last loss of complete trials that reported."""

    @property
    def can_estimate(self) -> bool:
        """Whether a trial has ended with a result."""
        return self._worst is not None

    def learn(self, trial: FrozenTrial, losses: Floats) -> None:
        """Take in a complete trial, whose losses are finite."""
        self._worst = losses if self._worst is None else np.maximum(self._worst, losses)
        curve = self._curve(trial)
        if curve is not None:
            self._curves.append((*curve, float(losses[0])))

    def estimate(self, trial: FrozenTrial) -> tuple[float, ...]:
        """Return the losses to tell for a pruned trial."""
        assert self._worst is not None
        curve = self._curve(trial)
        if curve is None or not np.isfinite(curve[1][-1]):
            return tuple(self._worst.tolist())
        step, loss = float(curve[0][-1]), float(curve[1][-1])
        changes = [
            last - losses[place]
            for steps, losses, last in self._curves
            if (place := int(np.searchsorted(steps, step))) < len(steps)
            and np.isfinite(losses[place])
        ]
        if not changes:
            return tuple(self._worst.tolist())
        return (loss + float(np.median(changes)),)

    def _curve(self, trial: FrozenTrial) -> tuple[Floats, Floats] | None:
        """Return the steps and losses of a trial; Optuna has none for several objectives."""
        reports: dict[int, Any] = trial.intermediate_values
        if not reports:
            return None
        steps, values = np.array(sorted(reports.items()), dtype=float).T
        return steps, self.signs[0] * values
