"""A tuner that decides after every few steps which configuration, new or paused, goes on next.

DyHPO and DPL are such tuners: they differ in the model of learning curves that ranks candidates.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from foretune.errors import ExhaustedError
from foretune.methods import Decision, StepDecision
from foretune.numerics import Floats, Ints
from foretune.search import Suggestion, Told
from foretune.space import Encoded

SPREAD = 5.0
"""Losses are cut if they lie further above the median than this many times its distance to the
best loss."""


@dataclass(frozen=True, slots=True)
class SeenCurves:
    """What all configurations of a pool have reported so far."""

    x: Floats
    """(N, W), the pool in the unit cube."""
    levels: int
    """The number of levels of a complete trial."""
    curves: Mapping[int, Sequence[float]]
    """{member of the pool: its loss at each level so far}; losses are between 0 and 1."""

    @property
    def best(self) -> float:
        """The lowest loss at any level."""
        return min(min(curve) for curve in self.curves.values())

    def best_at(self, level: int) -> float:
        """Return the lowest loss at a level (from 0), or at any level if no trial reached it."""
        reached = [curve[level] for curve in self.curves.values() if len(curve) > level]
        return min(reached, default=self.best)

    def next_levels(self, members: Ints) -> Ints:
        """Return (m,), the level (from 0) that each member reaches next."""
        return np.array([len(self.curves.get(member, ())) for member in members.tolist()])

    def pad_losses(self, members: Ints, lengths: Ints) -> Floats:
        """Return (m, levels), the first losses of each member's curve; 0 where there is none.

        lengths: (m,), how many losses of each curve.
        """
        rows = np.zeros((len(members), self.levels))
        for row, (member, length) in enumerate(
            zip(members.tolist(), lengths.tolist(), strict=True)
        ):
            rows[row, :length] = self.curves.get(member, ())[:length]
        return rows

    def points(self) -> tuple[Ints, Ints, Floats]:
        """Return the member, the level (from 0) and the loss of every report."""
        found = [
            (member, level, loss)
            for member, curve in self.curves.items()
            for level, loss in enumerate(curve)
        ]
        members, levels, losses = (np.array(column) for column in zip(*found, strict=True))
        return members, levels, losses


class StepModel(Protocol):
    """A model of learning curves, which may remember things from earlier decisions."""

    def score(self, seen: SeenCurves, candidates: Ints) -> Floats:
        """Return (m,), the value of the next level of each candidate; the highest one goes on."""


def unit_losses(curves: Mapping[int, Sequence[float]]) -> dict[int, list[float]]:
    """Return the curves with losses between 0 (the best) and 1; outliers are cut."""
    losses = np.concatenate([np.asarray(curve, dtype=float) for curve in curves.values()])
    best, median = losses.min(), float(np.median(losses))
    highest = min(losses.max(), median + SPREAD * (median - best)) or losses.max()
    width = highest - best if highest > best else 1.0
    return {
        member: np.clip((np.asarray(curve) - best) / width, 0.0, 1.0).tolist()
        for member, curve in curves.items()
    }


class StepTuner:
    """Asks a model which configuration of a pool takes its next steps.

    The first trial is drawn at random. A trial that diverges is stopped.

    Arguments:
        pool: all configurations.
        levels: the steps at which it decides, ascending; the last one is that of complete trials.
        model: ranks the candidates.
        seed: decides the first trial.
    """

    def __init__(
        self, pool: Encoded, levels: Sequence[float], model: StepModel, *, seed: int
    ) -> None:
        self._pool, self._levels, self._model = pool, tuple(levels), model
        self._first = np.random.default_rng(seed).permutation(len(pool))
        self._curves: dict[int, list[float]] = {}
        self._steps: dict[int, float] = {}
        """{member: the last step that it has reported}"""
        self._running: set[int] = set()
        self._ended: set[int] = set()

    def ask(self) -> list[Suggestion]:
        """Suggest a new configuration, or a paused one that goes on."""
        free = [
            member
            for member in self._first.tolist()
            if member not in self._running and member not in self._ended
        ]
        if not free:
            raise ExhaustedError(
                f"a suggestion needs a configuration that is not complete, but all "
                f"{len(self._pool)} are or are running: end the search",
                rule="enough-untried-configs",
                field="pool",
                value=len(self._pool),
            )
        member = free[0]
        reported = {each: curve for each, curve in self._curves.items() if curve}
        if reported:
            seen = SeenCurves(self._pool.x, len(self._levels), unit_losses(reported))
            candidates = np.array(free, dtype=np.int64)
            member = int(candidates[np.argmax(self._model.score(seen, candidates))])
        self._running.add(member)
        self._curves.setdefault(member, [])
        config = self._pool.take([member]).dicts()[0]
        return [Suggestion(member, config, "steps", member, self._steps.get(member))]

    def tell_step(self, id_: int, step: float, losses: float) -> StepDecision:
        """Take in a report. A trial pauses at each level."""
        self._steps[id_] = step
        if not math.isfinite(losses):
            return StepDecision(Decision.STOP, "diverged")
        curve = self._curves[id_]
        if step < self._levels[min(len(curve), len(self._levels) - 1)] * (1 - 1e-9):
            return StepDecision(Decision.CONTINUE)
        if len(curve) < len(self._levels):
            curve.append(losses)
        self._running.discard(id_)
        return StepDecision(Decision.PAUSE, "waits for the next decision")

    def tell(self, outcomes: Iterable[Told]) -> None:
        """Take in how trials ended."""
        for outcome in outcomes:
            if outcome.id is not None:
                self._running.discard(outcome.id)
                self._ended.add(outcome.id)
