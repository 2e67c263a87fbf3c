"""The reports of all trials of one search, in the order in which they came."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

from foretune.errors import UsageError
from foretune.experience.trial import Status


@dataclass(slots=True)
class RaceEntry:
    """One trial of a race: its reports and its status."""

    number: int
    """The place in the order in which trials were started, from 0."""
    steps: list[float] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    """One for each step, minimised; NaN or infinite if the trial diverged."""
    status: Status = Status.RUNNING
    _sums: list[float] = field(default_factory=list)
    """Of the losses up to each step; infinite after one that is not finite."""
    _lowest: list[float] = field(default_factory=list)
    """The lowest loss up to each step."""

    def add(self, step: float, loss: float) -> None:
        """Add a report."""
        self.steps.append(step)
        self.losses.append(loss)
        sum_before = self._sums[-1] if self._sums else 0.0
        best_before = self._lowest[-1] if self._lowest else math.inf
        self._sums.append(sum_before + (loss if math.isfinite(loss) else math.inf))
        self._lowest.append(best_before if math.isnan(loss) else min(best_before, loss))

    @property
    def last_step(self) -> float:
        """The last step that was reported; 0 before the first report."""
        return self.steps[-1] if self.steps else 0.0

    def loss_at(self, step: float) -> float | None:
        """Return the loss of the first report at or after a step; None if it was not reached.

        A loss that is not finite counts as the worst one.
        """
        place = bisect_left(self.steps, step)
        if place == len(self.steps):
            return None
        loss = self.losses[place]
        return loss if math.isfinite(loss) else math.inf

    def best_until(self, step: float) -> float:
        """Return the lowest loss up to a step; infinity if there is none."""
        count = bisect_right(self.steps, step)
        return self._lowest[count - 1] if count else math.inf

    def average_until(self, step: float) -> float:
        """Return the mean loss up to a step; infinity if one is not finite, or if there is none."""
        count = bisect_right(self.steps, step)
        return self._sums[count - 1] / count if count else math.inf


class Race:
    """The trials of one search and their reports, as a stopping policy reads them.

    A policy decides by this record only. The record can be filled again from a study on disk.
    """

    def __init__(self) -> None:
        self._entries: dict[int, RaceEntry] = {}
        """{id of the trial: its record}"""

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[tuple[int, RaceEntry]]:
        return iter(self._entries.items())

    def __getitem__(self, trial: int) -> RaceEntry:
        return self._entries[trial]

    def __contains__(self, trial: int) -> bool:
        return trial in self._entries

    def start(self, trial: int) -> None:
        """Add a trial that starts to run."""
        if trial in self._entries:
            raise UsageError(
                f"a trial starts once, but {trial} has started before: resume it instead",
                rule="trial-started-twice",
                field="trial",
                value=trial,
            )
        self._entries[trial] = RaceEntry(len(self._entries))

    def place(self, trial: int, number: int) -> None:
        """Give a trial its place in the order of the start, which a study with others knows."""
        self._entries[trial].number = number

    def forget(self, trial: int) -> None:
        """Remove a trial that never ran.

        A trial that reported, or that others followed, keeps its place and counts as failed.
        """
        entry = self._entries.get(trial)
        if entry is None:
            return
        if entry.steps or entry.number != len(self._entries) - 1:
            entry.status = Status.FAILED
        else:
            del self._entries[trial]

    def report(self, trial: int, step: float, loss: float) -> None:
        """Add the loss of a trial at a step, later than its earlier steps."""
        entry = self._entries[trial]
        if not step > entry.last_step and not (step == 0 and not entry.steps):
            raise UsageError(
                f"the steps of a trial must ascend, but trial {trial} reported {step:g} after "
                f"{entry.last_step:g}: report each step once, in order",
                rule="steps-ascend",
                field="step",
                value=step,
            )
        entry.add(step, loss)

    def move(self, trial: int, status: Status) -> None:
        """Record that a trial was paused, resumed, stopped, or has ended."""
        self._entries[trial].status = status

    def losses_at(self, step: float, trials: set[int] | None = None) -> dict[int, float]:
        """Return {trial: loss} of all trials, or of some, that have reached a step."""
        reached = (
            (trial, entry.loss_at(step))
            for trial, entry in self
            if trials is None or trial in trials
        )
        return {trial: loss for trial, loss in reached if loss is not None}
