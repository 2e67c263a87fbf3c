"""The record of one trial.

A study keeps this record, and its store is the record's one place on disk. A row of an experience,
a line of a journal, a row of the report and the losses that an optimiser is told are views of it:
each is made here, by one method.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from foretune.experience.curves import Curve
from foretune.experience.evaluation import Evaluation, Metric, Status


@dataclass(frozen=True, slots=True)
class Trial:
    """One configuration on its way: it runs, and it ends with a status."""

    number: int
    """Its place in the study, in the order in which trials began. The first is 0."""
    config: dict[str, Any]
    status: Status = Status.RUNNING
    """RUNNING, even while it waits to be run again after its process has died."""
    values: Mapping[str, float] = field(default_factory=dict)
    """{metric: value}, each in its own direction, with all other numbers that the trial
    returned. Those of a paused or stopped trial are its last reported ones."""
    seconds: float = math.nan
    """NaN if unknown."""
    reason: str = ""
    """Why it is not DONE."""
    chosen_by: str = ""
    """Why it was chosen: `Suggestion.reason`."""
    notes: Mapping[str, Any] = field(default_factory=dict)
    """Small JSON values. `abandoned` counts the processes that died while they ran it.
    `repeated_seconds` is what it spent on steps that it had taken before a pause."""
    curve: Curve | None = None
    """What it reported while it ran, by name. A report of a running trial is in its study's store
    at once, but it may be shown here only when the trial pauses or ends."""

    @property
    def is_over(self) -> bool:
        """True if it has ended, well or not."""
        return self.status.is_final

    def evaluation(self, task: str) -> Evaluation:
        """Return what an experience and a journal keep of it, once it is over or paused.

        A paused trial is kept as a stopped one: its curve ends early.
        """
        status = Status.STOPPED if self.status is Status.PAUSED else self.status
        return Evaluation(
            task,
            self.config,
            self.values,
            status,
            self.seconds,
            reason=self.reason,
            curve=self.curve,
        )

    @property
    def last_step(self) -> float | None:
        """The last step that it reported; None if it reported none."""
        return self.curve.steps[-1] if self.curve else None

    def losses(self, metrics: Sequence[Metric]) -> tuple[float, ...]:
        """Return what an optimiser is told: a loss for each metric, NaN if it has no value."""
        return tuple(m.sign * self.values.get(m.name, math.nan) for m in metrics)

    def select_values(self, names: Collection[str]) -> "Trial":
        """Return what a report shows: the same trial with the values of these metrics only."""
        return replace(self, values={n: v for n, v in self.values.items() if n in names})


def best_first(trials: Iterable[Trial], metric: Metric) -> list[Trial]:
    """Return the trials that are DONE, the best first. Of equals, the earlier one comes first."""
    done = [trial for trial in trials if trial.status is Status.DONE]
    return sorted(done, key=lambda trial: (metric.sign * trial.values[metric.name], trial.number))
