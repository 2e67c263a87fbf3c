"""The record of one trial, its evaluation, and the metrics that it measures.

A study keeps this record, and its store is the record's one place on disk. A row of an experience,
a line of a journal, a row of the report and the losses that an optimiser is told are views of it:
each is made here, by one method.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum, StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from foretune._base.arrays import Bools, Floats
from foretune.errors import ExperienceError, UsageError
from foretune.experience.curves import Curve, CurveColumns

if TYPE_CHECKING:
    # Whoever runs trials imports this module, and needs no space.
    from foretune.space import Encoded


class Direction(StrEnum):
    """Whether a lower or a higher value of a metric is better."""

    MIN = "min"
    MAX = "max"


class Status(IntEnum):
    """Whether a trial runs, or how it ended. An experience holds only trials that ended."""

    PAUSED = -2
    """Waits to be resumed where its last report was."""
    RUNNING = -1
    DONE = 0
    FAILED = 1
    TIMEOUT = 2
    STOPPED = 3
    """Ended early on request. Its values are those of its last step, so they do not compare with
    those of a complete trial: it has no loss, but it has a curve."""

    @property
    def is_final(self) -> bool:
        """True if a trial of this status has ended."""
        return self >= 0


FINAL_STATUSES = tuple(status for status in Status if status.is_final)
"""The statuses that an evaluation can have."""


def status_of(given: Any) -> Status:
    """Return the status for a `Status`, its number, or its name in any case.

    An unknown status is refused. If it counted as a failure, its result would be lost silently.
    """
    if isinstance(given, str):
        word = given.strip().upper()
        found = next((each for each in FINAL_STATUSES if each.name == word), None)
    else:
        known = isinstance(given, int | np.integer) and not isinstance(given, bool)
        found = next((each for each in FINAL_STATUSES if known and each == given), None)
    if found is None:
        raise UsageError(
            f"a status must be one of {', '.join(each.name for each in FINAL_STATUSES)}, but got "
            f"{given!r}: give Status.DONE if the trial ended well",
            rule="unknown-status",
            field="status",
            value=given,
        )
    return found


@dataclass(frozen=True, slots=True)
class Metric:
    """The name of a metric, and the direction in which it is better."""

    name: str
    direction: Direction = Direction.MIN

    def __post_init__(self) -> None:
        ways = [way.value for way in Direction]
        if self.direction not in ways:
            raise ExperienceError(
                f"the direction of a metric must be {' or '.join(map(repr, ways))}, but got "
                f"{self.direction!r} for '{self.name}': choose one",
                rule="unknown-direction",
                field=self.name,
                value=self.direction,
            )
        object.__setattr__(self, "direction", Direction(self.direction))

    @property
    def sign(self) -> float:
        """The factor that turns a value into a loss."""
        return 1.0 if self.direction is Direction.MIN else -1.0


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One row of an experience, for people and for programs that run trials."""

    task: str
    config: Mapping[str, Any]
    values: Mapping[str, float]
    status: Status = Status.DONE
    seconds: float | None = None
    fidelity: float | None = None
    reason: str = ""
    """Why it is not DONE."""
    curve: Curve | None = None
    """What the trial reported while it ran."""


@dataclass(frozen=True)
class TaskRecords:
    """All n evaluations of one task, in the order they were recorded."""

    name: str
    table: "Encoded"
    """The configurations of the whole experience, each once."""
    config_index: NDArray[np.int32]
    """(n,), the row of `table` that was evaluated."""
    losses: Floats
    """(n, number of metrics), minimised, NaN where not measured."""
    values: Floats
    """(n, number of metrics), in the metrics' own directions."""
    status: NDArray[np.int8]
    seconds: NDArray[np.float32]
    fidelity: NDArray[np.float32] | None = None
    curves: CurveColumns | None = None
    """What the n evaluations reported while they ran; None if no evaluation of any task did."""

    def __len__(self) -> int:
        return len(self.config_index)

    @cached_property
    def configs(self) -> "Encoded":
        """The n configurations, row by row beside `losses` (unlike `table`)."""
        return self.table.take(self.config_index.astype(np.int64))

    @property
    def is_success(self) -> Bools:
        """(n,), True where every metric was measured."""
        finite: Bools = np.logical_and.reduce(np.isfinite(self.losses), axis=1)
        return finite

    @property
    def is_full_fidelity(self) -> Bools:
        """(n,), True for the successes at the highest fidelity that each configuration has.

        Losses of different fidelities do not compare, so code that compares configurations on
        this task reads these rows. An unknown fidelity is the lowest.
        """
        if self.fidelity is None:
            return self.is_success
        known = self.is_success & ~np.isnan(self.fidelity)
        fidelity = np.where(known, self.fidelity, -np.inf)
        highest = np.full(len(self.table), -np.inf)
        np.maximum.at(highest, self.config_index, fidelity)
        at_highest: Bools = self.is_success & (fidelity == highest[self.config_index])
        return at_highest


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
