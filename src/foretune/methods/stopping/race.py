"""The reports of all trials of one search, in the order in which they came."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum

from foretune.errors import UsageError


class RunState(Enum):
    """The state of a trial in the race."""

    RUNNING = "running"
    PAUSED = "paused"
    STOPPED = "stopped"
    DONE = "done"
    FAILED = "failed"


@dataclass(slots=True)
class Runner:
    """One trial of a race: its reports and its state."""

    number: int
    """The place in the order in which trials were started, from 0."""
    steps: list[float] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    """One for each step, minimised; NaN or infinite if the trial diverged."""
    state: RunState = RunState.RUNNING

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
        seen = zip(self.steps, self.losses, strict=True)
        return min(
            (loss for own, loss in seen if own <= step and not math.isnan(loss)), default=math.inf
        )


class Race:
    """The trials of one search and their reports, as a stopping policy reads them.

    A policy decides by this record only. The record can be filled again from a study on disk.
    """

    def __init__(self) -> None:
        self._runners: dict[int, Runner] = {}
        """{id of the trial: its record}"""

    def __len__(self) -> int:
        return len(self._runners)

    def __iter__(self) -> Iterator[tuple[int, Runner]]:
        return iter(self._runners.items())

    def __getitem__(self, trial: int) -> Runner:
        return self._runners[trial]

    def __contains__(self, trial: int) -> bool:
        return trial in self._runners

    def start(self, trial: int) -> None:
        """Add a trial that starts to run."""
        if trial in self._runners:
            raise UsageError(
                f"a trial starts once, but {trial} has started before: resume it instead",
                rule="trial-started-twice",
                field="trial",
                value=trial,
            )
        self._runners[trial] = Runner(len(self._runners))

    def forget(self, trial: int) -> None:
        """Remove a trial that never ran.

        A trial that reported, or that others followed, keeps its place and counts as failed.
        """
        runner = self._runners.get(trial)
        if runner is None:
            return
        if runner.steps or runner.number != len(self._runners) - 1:
            runner.state = RunState.FAILED
        else:
            del self._runners[trial]

    def report(self, trial: int, step: float, loss: float) -> None:
        """Add the loss of a trial at a step, later than its earlier steps."""
        runner = self._runners[trial]
        if not step > runner.last_step and not (step == 0 and not runner.steps):
            raise UsageError(
                f"the steps of a trial must ascend, but trial {trial} reported {step:g} after "
                f"{runner.last_step:g}: report each step once, in order",
                rule="steps-ascend",
                field="step",
                value=step,
            )
        runner.steps.append(step)
        runner.losses.append(loss)

    def move(self, trial: int, state: RunState) -> None:
        """Record that a trial was paused, resumed, stopped, or has ended."""
        self._runners[trial].state = state

    def losses_at(self, step: float, trials: set[int] | None = None) -> dict[int, float]:
        """Return {trial: loss} of all trials, or of some, that have reached a step."""
        reached = (
            (trial, runner.loss_at(step))
            for trial, runner in self
            if trials is None or trial in trials
        )
        return {trial: loss for trial, loss in reached if loss is not None}
