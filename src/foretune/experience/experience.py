"""The table of evaluations and its rows.

The methods of `Experience` that build, save or combine tables live in files of their own and are
imported when they are called: looking at a table needs neither pandas nor pyarrow.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum, StrEnum
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from foretune._base.arrays import Bools, Floats, Ints
from foretune._base.names import quote_names, suggestion
from foretune._base.progress import SILENT, Progress
from foretune.errors import ExperienceError, UsageError
from foretune.space import Encoded, Space

if TYPE_CHECKING:
    import pandas as pd

MetaFeatures: TypeAlias = Mapping[str, Mapping[str, float]]
"""{task: {name: value}}"""
Splits: TypeAlias = Mapping[str, Mapping[str, Sequence[str]]]
"""{name: {"train" | "validation" | "test": tasks}}"""
Starts: TypeAlias = Mapping[str, Mapping[str, Sequence[int]]]
"""{task: {name: indices of configurations}}"""
METRIC_PREFIX = "metric:"
"""Before the name of a metric's column in a file, and in a frame where another has the name."""


class Direction(StrEnum):
    """Whether less or more of a metric is better."""

    MIN = "min"
    MAX = "max"


class Status(IntEnum):
    """How an evaluation ended."""

    DONE = 0
    FAILED = 1
    TIMEOUT = 2


def status_of(given: Any) -> Status:
    """The status that is meant: one, its number, or its name in any case.

    A status that is not understood must not pass for a failure: its result would be lost unseen.
    """
    if isinstance(given, str):
        found = Status.__members__.get(given.strip().upper())
    else:
        known = isinstance(given, int | np.integer) and not isinstance(given, bool)
        found = next((each for each in Status if known and each == given), None)
    if found is None:
        raise UsageError(
            f"a status must be one of {', '.join(each.name for each in Status)}, but got "
            f"{given!r}: give Status.DONE where the trial ended well"
        )
    return found


@dataclass(frozen=True, slots=True)
class Metric:
    """What was measured, and in which direction it is better."""

    name: str
    direction: Direction = Direction.MIN

    def __post_init__(self) -> None:
        ways = [way.value for way in Direction]
        if self.direction not in ways:
            raise ExperienceError(
                f"the direction of a metric must be {' or '.join(map(repr, ways))}, but got "
                f"{self.direction!r} for '{self.name}': choose one"
            )
        object.__setattr__(self, "direction", Direction(self.direction))

    @property
    def sign(self) -> float:
        """What a value is multiplied with to be minimised."""
        return 1.0 if self.direction is Direction.MIN else -1.0


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One row, for people and for programs that run trials."""

    task: str
    config: Mapping[str, Any]
    values: Mapping[str, float]
    status: Status = Status.DONE
    seconds: float | None = None
    fidelity: float | None = None


@dataclass(frozen=True)
class TaskRecords:
    """All n evaluations of one task, in the order they were recorded."""

    name: str
    table: Encoded
    """The experience's configurations, of all tasks."""
    config_index: NDArray[np.int32]
    """(n,), the row of `table` that was evaluated."""
    losses: Floats
    """(n, number of metrics), minimised, NaN where not measured."""
    values: Floats
    """(n, number of metrics), in the metrics' own directions."""
    status: NDArray[np.int8]
    seconds: NDArray[np.float32]
    fidelity: NDArray[np.float32] | None = None

    def __len__(self) -> int:
        return len(self.config_index)

    @cached_property
    def configs(self) -> Encoded:
        """The n configurations, row by row beside `losses` (not the table of all tasks)."""
        return self.table.take(self.config_index.astype(np.int64))

    @property
    def is_success(self) -> Bools:
        """(n,), True where every metric was measured."""
        finite: Bools = np.logical_and.reduce(np.isfinite(self.losses), axis=1)
        return finite

    @property
    def is_full_fidelity(self) -> Bools:
        """(n,), True for the successes at the highest fidelity that each configuration has.

        Losses of different fidelities do not compare: whoever reads what configurations gave on
        this task reads these. An unknown fidelity is the lowest.
        """
        if self.fidelity is None:
            return self.is_success
        known = self.is_success & ~np.isnan(self.fidelity)
        fidelity = np.where(known, self.fidelity, -np.inf)
        highest = np.full(len(self.table), -np.inf)
        np.maximum.at(highest, self.config_index, fidelity)
        at_highest: Bools = self.is_success & (fidelity == highest[self.config_index])
        return at_highest


@dataclass(frozen=True, eq=False, repr=False)
class Experience:
    """N evaluations over many tasks in one space: immutable arrays, the rows sorted by task.

    Made by `build`, `from_matrix`, `from_frame` or `open`, which check what they are given.
    """

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

    def __post_init__(self) -> None:
        for name in ("task_index", "config_index", "values", "status", "seconds", "fidelity"):
            column = getattr(self, name)
            if column is not None:
                locked = column.view()
                locked.flags.writeable = False
                object.__setattr__(self, name, locked)

    def __len__(self) -> int:
        return len(self.task_index)

    def __repr__(self) -> str:
        metrics = ", ".join(f"{metric.name}:{metric.direction}" for metric in self.metrics)
        return (
            f"Experience({len(self.tasks)} tasks, {len(self.configs)} configurations, "
            f"{len(self)} evaluations of {metrics})"
        )

    # Making one

    @classmethod
    def build(  # noqa: PLR0913 - one argument a column
        cls,
        space: Space,
        metrics: Sequence[Metric],
        tasks: Sequence[str],
        task_index: ArrayLike,
        configs: Encoded,
        config_index: ArrayLike,
        values: ArrayLike,
        *,
        status: ArrayLike | None = None,
        seconds: ArrayLike | None = None,
        fidelity: ArrayLike | None = None,
        meta_features: MetaFeatures | None = None,
        splits: Splits | None = None,
        starts: Starts | None = None,
    ) -> Experience:
        """A checked table from columns of N rows in any order, which are copied.

        Equal configurations are merged. An evaluation without a finite value counts as failed,
        whatever `status` says.
        """
        from foretune.experience.annotations import Notes
        from foretune.experience.build import EvaluationColumns, copy_arrays, from_columns

        columns = EvaluationColumns(task_index, config_index, values, status, seconds, fidelity)
        notes = Notes(meta_features or {}, splits or {}, starts or {})
        return copy_arrays(from_columns(space, metrics, tasks, configs, columns, notes))

    @classmethod
    def from_matrix(  # noqa: PLR0913 - one argument a matrix
        cls,
        space: Space,
        configs: Encoded,
        tasks: Sequence[str],
        metrics: Sequence[Metric],
        matrices: Mapping[str, NDArray[np.floating[Any]]],
        *,
        seconds: NDArray[np.floating[Any]] | None = None,
        failed: Bools | None = None,
        meta_features: MetaFeatures | None = None,
        splits: Splits | None = None,
        starts: Starts | None = None,
    ) -> Experience:
        """A table from one (tasks, configurations) matrix a metric, NaN where nothing is recorded.

        `failed` marks evaluations that were tried and failed; `seconds` says how long each took.
        """
        from foretune.experience.annotations import Notes
        from foretune.experience.build import columns_of_matrices, from_columns

        shape = (len(tasks), len(configs))
        columns = columns_of_matrices(metrics, matrices, shape, seconds=seconds, failed=failed)
        notes = Notes(meta_features or {}, splits or {}, starts or {})
        return from_columns(space, metrics, tasks, configs, columns, notes)

    @classmethod
    def from_frame(
        cls,
        space: Any,
        frame: pd.DataFrame,
        *,
        task: str,
        metrics: Mapping[str, Direction],
        config_column: str | None = None,
        status: str | None = None,
        seconds: str | None = None,
        fidelity: str | None = None,
    ) -> Experience:
        """A table from a data frame with one evaluation a row.

        Hyperparameters stand in columns of their names, empty where inactive, or as JSON objects
        in `config_column`. The other arguments name columns; columns that are not named are
        left out. Durations, as pandas has them, are read in seconds.

        space: as `Space.of` takes it.
        """
        from foretune.experience.data_frame import FrameColumns, experience_of

        columns = FrameColumns(task, metrics, config_column, status, seconds, fidelity)
        return experience_of(space, frame, columns)

    def to_frame(self) -> pd.DataFrame:
        """One readable row an evaluation: task, hyperparameters, metrics, status, seconds."""
        from foretune.experience.data_frame import frame_of

        return frame_of(self)

    # Looking at it

    @cached_property
    def losses(self) -> Floats:
        """(N, number of metrics), minimised, NaN where an evaluation did not end well."""
        return self._losses(slice(None))

    def task(self, name: str) -> TaskRecords:
        """The evaluations of one task."""
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
        )

    def rows(self, name: str) -> slice:
        """Where the evaluations of one task are in every column."""
        return self._slice(self._position(name))

    def _slice(self, position: int) -> slice:
        return slice(int(self._bounds[position]), int(self._bounds[position + 1]))

    @cached_property
    def _bounds(self) -> Ints:
        """(number of tasks + 1,), where each task's rows begin; the last is N."""
        edges = np.arange(len(self.tasks) + 1, dtype=self.task_index.dtype)
        return np.searchsorted(self.task_index, edges).astype(np.int64)

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {name: position for position, name in enumerate(self.tasks)}

    def _position(self, name: str) -> int:
        position = self._positions.get(name)
        if position is None:
            raise ExperienceError(
                f"a task must be one of the {len(self.tasks)} recorded ones, but got '{name}': "
                f"{suggestion(name, self.tasks)}"
            )
        return position

    def _losses(self, rows: slice) -> Floats:
        losses: Floats = self.values[rows] * np.array([metric.sign for metric in self.metrics])
        losses[self.status[rows] != Status.DONE] = np.nan
        losses[~np.isfinite(losses)] = np.nan
        losses.flags.writeable = False
        return losses

    # Parts of it

    def only(self, tasks: Iterable[str]) -> Experience:
        """The evaluations of these tasks, which keep their order here."""
        wanted = {self._position(name) for name in tasks}
        return self._of_positions(sorted(wanted))

    def without(self, tasks: Iterable[str]) -> Experience:
        """The evaluations of all other tasks."""
        unwanted = {self._position(name) for name in tasks}
        return self._of_positions([p for p in range(len(self.tasks)) if p not in unwanted])

    def _of_positions(self, positions: list[int]) -> Experience:
        counts = np.diff(self._bounds)[positions]
        if counts.sum() == 0:
            raise ExperienceError(
                "a selection of tasks must hold at least one evaluation, but it is empty: "
                f"choose among {quote_names(self.tasks)}"
            )
        rows = [self._slice(position) for position in positions]

        def picked(column: NDArray[Any]) -> NDArray[Any]:
            return np.concatenate([column[row] for row in rows])

        tasks = tuple(self.tasks[position] for position in positions)
        kept = set(tasks)
        return replace(
            self,
            tasks=tasks,
            task_index=np.repeat(np.arange(len(tasks), dtype=np.int32), counts),
            config_index=picked(self.config_index),
            values=picked(self.values),
            status=picked(self.status),
            seconds=picked(self.seconds),
            fidelity=None if self.fidelity is None else picked(self.fidelity),
            meta_features={name: of for name, of in self.meta_features.items() if name in kept},
            splits=_restrict_splits(self.splits, kept),
            starts={name: of for name, of in self.starts.items() if name in kept},
        )

    def compact(self) -> Experience:
        """The same evaluations, without configurations that neither they nor initial designs have.

        Parts of an experience share its table of configurations; files hold their own.
        """
        from foretune.experience.build import compact

        return compact(self)

    def with_metrics(self, names: Sequence[str]) -> Experience:
        """Only these metrics, in this order; rows that measured none of them are left out."""
        from foretune.experience.build import select_metrics

        return select_metrics(self, names)

    def with_meta_features(self, meta_features: MetaFeatures) -> Experience:
        """The same evaluations with these meta-features of the tasks."""
        from foretune.experience.annotations import Notes, annotate

        return annotate(self, Notes(meta_features, self.splits, self.starts))

    def with_splits(self, splits: Splits) -> Experience:
        """The same evaluations with these named splits."""
        from foretune.experience.annotations import Notes, annotate

        return annotate(self, Notes(self.meta_features, splits, self.starts))

    def renamed(
        self, names: Mapping[str, str], *, choices: Mapping[str, Mapping[Any, Any]] | None = None
    ) -> Experience:
        """The same evaluations, in whose space these hyperparameters have other names, {old: new},
        and these choices, {hyperparameter: {old: new}}; see `Space.renamed`.

        Example:
            >>> past.renamed({"learning_rate": "lr"}, choices={"optimizer": {"adam": "Adam"}})
        """
        from foretune.experience.alignment.translation import rename_configs

        configs = rename_configs(self.configs, names, choices)
        return replace(self, space=configs.space, configs=configs)

    def in_space(self, space: Any, *, assumed: Mapping[str, Any] | None = None) -> Experience:
        """What these runs say about a space that has changed since; see `carrying`.

        Runs with values that the space does not have are left out. Of a hyperparameter that is new
        they say nothing, unless it is said which value they had.

        space: anything that `Space.of` reads.
        assumed: the values that the runs had of hyperparameters they did not record.

        Example:
            >>> past.in_space(space, assumed={"dropout": 0.0})
        """
        from foretune.experience.alignment.carry_over import carry_over

        return carry_over(self, Space.of(space), assumed=assumed).experience

    # More of it

    def append(self, evaluations: Iterable[Evaluation]) -> Experience:
        """This experience and further evaluations, of known or of new tasks."""
        from foretune.experience.combine import append

        return append(self, evaluations)

    def merge(self, other: Experience) -> Experience:
        """The evaluations of both, each once.

        The spaces are equal, or one has hyperparameters or algorithms that the other lacks: then
        the other's configurations get their defaults.
        """
        from foretune.experience.combine import merge

        return merge(self, other)

    # On disk

    def save(self, path: str | Path, *, progress: Progress = SILENT) -> None:
        """Write one Parquet file; a file that is already there is replaced in one step."""
        from foretune.experience.parquet_file import save

        save(self, Path(path), progress)

    @classmethod
    def open(cls, path: str | Path, *, progress: Progress = SILENT) -> Experience:
        """Read a file that `save` has written."""
        from foretune.experience.parquet_file import read

        return read(Path(path), progress)


def _restrict_splits(splits: Splits, tasks: set[str]) -> Splits:
    """The splits as far as they concern `tasks`; those that name none of them are left out."""
    left = {
        name: {part: tuple(t for t in of if t in tasks) for part, of in parts.items()}
        for name, parts in splits.items()
    }
    return {name: parts for name, parts in left.items() if any(parts.values())}
