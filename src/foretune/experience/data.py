"""The columns of an experience, without the operations on them.

Every operation is a function in a module of its own, and imports this module. An operation returns
an object of the class that it was given, because `dataclasses.replace` keeps the class. So the
operations need not know `Experience`, which offers them all as methods.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from foretune._base.arrays import Bools, Floats, Ints
from foretune._base.names import suggestion
from foretune.errors import ExperienceError
from foretune.experience.curves import CurveColumns
from foretune.experience.trial import Metric, Status, TaskRecords
from foretune.space import Encoded, Space

MetaFeatures: TypeAlias = Mapping[str, Mapping[str, float]]
"""{task: {name: value}}"""
Splits: TypeAlias = Mapping[str, Mapping[str, Sequence[str]]]
"""{name: {"train" | "validation" | "test": tasks}}"""
Starts: TypeAlias = Mapping[str, Mapping[str, Sequence[int]]]
"""{task: {name: indices of configurations}}"""
METRIC_PREFIX = "metric:"
"""The prefix of a metric's column in a file, and in a frame if another column has the name."""


@dataclass(frozen=True, eq=False, repr=False)
class ExperienceData:
    """N evaluations over many tasks in one space: immutable arrays, the rows sorted by task."""

    space: Space
    metrics: tuple[Metric, ...]
    tasks: tuple[str, ...]
    configs: Encoded
    """The configurations, each once."""
    task_index: NDArray[np.int32]
    """(N,), ascending."""
    config_index: NDArray[np.int32]
    """(N,), rows of `configs`."""
    values: Floats
    """(N, number of metrics), in the metrics' own directions; NaN where not measured."""
    status: NDArray[np.int8]
    seconds: NDArray[np.float32]
    """(N,), NaN where unknown."""
    fidelity: NDArray[np.float32] | None = None
    meta_features: MetaFeatures = field(default_factory=dict)
    splits: Splits = field(default_factory=dict)
    starts: Starts = field(default_factory=dict)
    curves: CurveColumns | None = None
    """What the N evaluations reported while they ran; None if none did."""

    def __post_init__(self) -> None:
        for name in ("task_index", "config_index", "values", "status", "seconds", "fidelity"):
            column = getattr(self, name)
            if column is not None:
                locked = column.view()
                locked.flags.writeable = False
                object.__setattr__(self, name, locked)

    def __len__(self) -> int:
        return len(self.task_index)

    @cached_property
    def losses(self) -> Floats:
        """(N, number of metrics), minimised, NaN where an evaluation did not end well."""
        return self._losses(slice(None))

    def task(self, name: str) -> TaskRecords:
        """Return the evaluations of one task."""
        rows = self.rows(name)
        return TaskRecords(
            name=name,
            table=self.configs,
            config_index=self.config_index[rows],
            losses=self._losses(rows),
            values=self.values[rows],
            status=self.status[rows],
            seconds=self.seconds[rows],
            fidelity=None if self.fidelity is None else self.fidelity[rows],
            curves=None if self.curves is None else self.curves.take(rows),
        )

    @property
    def is_complete(self) -> Bools:
        """(N,), True for trials that ended by themselves and well, however many steps they took."""
        complete: Bools = self.status == Status.DONE
        return complete

    def largest_step(self, task: str) -> float | None:
        """Return the largest step that a trial of a task has reported; None without curves."""
        if self.curves is None:
            return None
        last = self.curves.last_steps[self.rows(task)]
        return None if np.isnan(last).all() else float(np.nanmax(last))

    def rows(self, name: str) -> slice:
        """Return the rows of one task, the same in every column."""
        position = self.position(name)
        return slice(int(self.bounds[position]), int(self.bounds[position + 1]))

    @cached_property
    def bounds(self) -> Ints:
        """(number of tasks + 1,), the first row of each task; the last entry is N."""
        edges = np.arange(len(self.tasks) + 1, dtype=self.task_index.dtype)
        return np.searchsorted(self.task_index, edges).astype(np.int64)

    def position(self, name: str) -> int:
        """Return the index of a task in `tasks`."""
        position = self._positions.get(name)
        if position is None:
            raise ExperienceError(
                f"a task must be one of the {len(self.tasks)} recorded ones, but got '{name}': "
                f"{suggestion(name, self.tasks)}",
                rule="unknown-task",
                field="task",
                value=name,
            )
        return position

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {name: position for position, name in enumerate(self.tasks)}

    def _losses(self, rows: slice) -> Floats:
        losses: Floats = self.values[rows] * np.array([metric.sign for metric in self.metrics])
        losses[self.status[rows] != Status.DONE] = np.nan
        losses[~np.isfinite(losses)] = np.nan
        losses.flags.writeable = False
        return losses


AnyExperience = TypeVar("AnyExperience", bound=ExperienceData)
"""The class of the experience that an operation is given, and of the one that it returns."""
