"""One task with its recorded learning curves as a plain file, so that peers need NumPy alone."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from benchmarks.peers.objective import Floats, Problem

ETA = 3
"""One of three trials goes on from each level to the next, for all peers that have levels."""


@dataclass(frozen=True)
class CurveProblem:
    """The curves of all recorded configurations of a task.

    Peers see whole numbers as steps: the steps themselves if all are whole, else 1, 2, 3 ...
    """

    problem: Problem
    """Its space and configurations; its losses are those at the ends of the curves."""
    offsets: Floats
    """(n + 1,): the index at which each curve begins, and the end of the last curve."""
    steps: Floats
    losses: Floats
    """Minimised; NaN where a trial diverged."""
    clock: Floats
    """The cost of a trial up to each point."""
    complete_cost: float
    """The cost of a complete run."""
    first_step: float
    """The smallest step at which a trial may be compared with others."""

    def curve(self, place: int) -> "PeerCurve":
        """Return the curve of one recorded configuration."""
        points = slice(int(self.offsets[place]), int(self.offsets[place + 1]))
        steps = self.steps[points]
        whole = bool((self.steps == np.round(self.steps)).all())
        ticks = steps if whole else np.arange(1.0, len(steps) + 1)
        return PeerCurve(ticks.astype(int), self.losses[points], self.clock[points])

    @property
    def ticks(self) -> tuple[int, int]:
        """The first step at which trials are compared, and the last step, as peers count them."""
        lengths = np.diff(self.offsets)
        longest = int(lengths.argmax())
        steps = self.steps[int(self.offsets[longest]) : int(self.offsets[longest + 1])]
        first = int(np.flatnonzero(steps >= self.first_step)[0])
        ticks = self.curve(longest).ticks
        return int(ticks[first]), int(ticks[-1])

    def save(self, path: Path) -> None:
        """Write two NPZ files."""
        self.problem.save(path)
        np.savez_compressed(
            path.with_suffix(".curves.npz"),
            offsets=self.offsets,
            steps=self.steps,
            losses=self.losses,
            clock=self.clock,
            complete_cost=self.complete_cost,
            first_step=self.first_step,
        )

    @classmethod
    def load(cls, path: Path) -> "CurveProblem":
        """Read what `save` has written."""
        with np.load(path.with_suffix(".curves.npz"), allow_pickle=False) as arrays:
            columns = {name: arrays[name] for name in ("offsets", "steps", "losses", "clock")}
            numbers = {name: float(arrays[name]) for name in ("complete_cost", "first_step")}
        return cls(Problem.load(path), **columns, **numbers)


@dataclass(frozen=True)
class PeerCurve:
    """The curve of one configuration, as a peer's trial reports it."""

    ticks: np.ndarray[tuple[int], np.dtype[np.int64]]
    """Ascending whole numbers."""
    losses: Floats
    clock: Floats
