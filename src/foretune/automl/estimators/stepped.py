"""Trains estimators step by step: rounds of boosted trees, or epochs of networks.

Rows that an estimator does not learn from judge each step. Learning ends when their loss has not
fallen for a while, so the number of steps is no hyperparameter. One trainer for each library knows
how to run its steps and how to drop the last ones.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from foretune._base.arrays import Floats

SEPARATED = 5e-4
"""The least gain in the log loss, as a share of the loss after the first step."""
ESTIMATOR = "estimator"
STEP_NAMES = ("n_estimators", "max_iter")
"""The hyperparameters that fixed the number of steps in the spaces of earlier versions."""


@dataclass(frozen=True, slots=True)
class LearningRows:
    """Rows that an estimator learns from, or that judge its steps."""

    x: Floats
    y: Any
    """Numbers, or codes 0, 1, ... of the classes that are learnt."""
    weights: Floats | None = None
    codes: tuple[int, ...] = ()
    """The places of columns that hold codes of categories, if the estimator learns from these."""


@dataclass(frozen=True, slots=True)
class StepLimits:
    """When learning ends: at the first of these."""

    judging: LearningRows | None = None
    """Learning ends when the loss on these rows has not fallen for a while."""
    steps: int | None = None
    """The most steps; the trainer's own limit if None."""
    seconds: float | None = None
    """The most seconds on the clock."""


@dataclass(frozen=True, slots=True)
class SteppedFit:
    """A fitted estimator, and how it learnt."""

    estimator: Any
    """It predicts with `steps` steps. It may hold later ones, until it is truncated."""
    steps: int
    curve: tuple[float, ...] = ()
    """The loss on the judging rows after each step; empty without such rows."""


@dataclass(slots=True)
class StepWatch:
    """Follows the loss on the judging rows, and says when learning is over."""

    patience: int
    """The fewest steps without a lower loss after which learning ends."""
    until: float = float("inf")
    """The time (`time.monotonic`) at which learning ends."""
    patience_share: float = 0.2
    """The share of the best step by which the patience grows, since late gains come slowly."""
    least_gain: float = 1e-3
    """The share of the loss by which it must fall, or a step counts as one without a gain."""
    least_share: float = 1e-6
    """The same, as a share of the loss after the first step."""
    curve: list[float] = field(default_factory=list)
    best: int = 0
    """The number of steps with the lowest loss so far."""
    gained: int = 0
    """The number of steps at the last gain."""

    def is_over(self, loss: float) -> bool:
        """Take in the loss after the next step; return whether learning is over."""
        self.curve.append(loss)
        if not self.best or loss < self.curve[self.best - 1]:
            self.best = len(self.curve)
        level = self.curve[self.gained - 1]
        least = max(self.least_gain * abs(level), self.least_share * abs(self.curve[0]))
        if not self.gained or loss < level - least:
            self.gained = len(self.curve)
        waited = len(self.curve) - self.gained
        return waited > self.patience + self.patience_share * self.gained or self.is_late

    @property
    def is_late(self) -> bool:
        """Whether the time is over."""
        return time.monotonic() >= self.until


class StepTrainer(ABC):
    """Trains the estimators of one library."""

    most_steps: ClassVar[int]
    patience: ClassVar[int]

    def fit(self, estimator: Any, learning: LearningRows, limits: StepLimits) -> SteppedFit:
        """Fit an estimator within the limits."""
        until = float("inf") if limits.seconds is None else time.monotonic() + limits.seconds
        is_of_classes = np.issubdtype(np.asarray(learning.y).dtype, np.integer)
        watch = StepWatch(self.patience, until)
        if is_of_classes:
            # The log loss of rows that are easy to tell apart falls for ever.
            watch.least_share = SEPARATED
        most = self.most_steps if limits.steps is None else limits.steps
        fitted = self._run_steps(estimator, learning, limits.judging, max(1, most), watch)
        if limits.judging is None:
            return SteppedFit(fitted, self.count_steps(fitted))
        return SteppedFit(fitted, watch.best, tuple(watch.curve))

    @abstractmethod
    def _run_steps(
        self,
        estimator: Any,
        learning: LearningRows,
        judging: LearningRows | None,
        most: int,
        watch: StepWatch,
    ) -> Any:
        """Run at most so many steps, each loss told to the watch; predict with the best ones."""

    @abstractmethod
    def count_steps(self, estimator: Any) -> int:
        """Return the number of steps that a fitted estimator has."""

    @abstractmethod
    def truncate(self, estimator: Any, steps: int) -> Any:
        """Return a fitted estimator with only the first steps."""


def configured_steps(config: Mapping[str, Any]) -> int | None:
    """Return the number of steps that a configuration of an earlier version fixes."""
    from foretune.space.notation import SEPARATOR  # loads ConfigSpace, which takes a second

    stage = f"{ESTIMATOR}{SEPARATOR}{config.get(ESTIMATOR)}{SEPARATOR}"
    found = [config[stage + name] for name in STEP_NAMES if stage + name in config]
    return int(found[0]) if found else None


def best_common_step(curves: Sequence[Sequence[float]]) -> int:
    """Return the number of steps with the lowest mean loss over folds.

    A fold that ended earlier than others counts with its last loss. One number for all folds
    flatters none of them.
    """
    longest = max(map(len, curves))
    whole = [np.pad(np.asarray(each), (0, longest - len(each)), mode="edge") for each in curves]
    return int(np.argmin(np.mean(whole, axis=0))) + 1
