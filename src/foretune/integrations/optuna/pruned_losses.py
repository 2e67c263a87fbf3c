"""What a method is told about trials that were pruned before they had a result."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from optuna.trial import FrozenTrial

from foretune._base.arrays import Floats


@dataclass
class PrunedLosses:
    """Counts a pruned trial as bad as the worst complete trial before it.

    Its last value, or an estimate of its end from other curves, led to worse results
    (`benchmarks/optuna_pruned_trials.py`): such values lie close to those of good trials.
    """

    signs: Sequence[float]
    """1 for an objective that is minimised, else -1."""
    worst: Floats | None = None
    """The worst losses of complete trials; None before the first one."""

    def learn(self, trial: FrozenTrial, losses: Floats) -> None:  # noqa: ARG002 - for benchmarks
        """Take in a complete trial, whose losses are finite."""
        self.worst = losses if self.worst is None else np.maximum(self.worst, losses)

    def estimate(self, trial: FrozenTrial) -> tuple[float, ...]:  # noqa: ARG002 - for benchmarks
        """Return the losses to tell for a pruned trial."""
        assert self.worst is not None
        return tuple(self.worst.tolist())
