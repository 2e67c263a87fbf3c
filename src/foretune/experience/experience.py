"""`Experience`: the columns of `ExperienceData` with every operation as a method.

Looking at an experience needs neither pandas nor pyarrow: the methods that need them import them
when they are called.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from foretune._base.arrays import Bools
from foretune._base.progress import SILENT, Progress
from foretune.experience import combine, selection
from foretune.experience.alignment.carry_over import carry_over
from foretune.experience.alignment.translation import rename_configs
from foretune.experience.build import (
    EvaluationColumns,
    columns_of_matrices,
    copy_columns,
    from_columns,
)
from foretune.experience.checks import Notes, annotate
from foretune.experience.curves import CurveColumns
from foretune.experience.data import ExperienceData, MetaFeatures, Splits, Starts
from foretune.experience.trial import Direction, Evaluation, Metric
from foretune.space import Encoded, Space

if TYPE_CHECKING:
    import pandas as pd


class Experience(ExperienceData):
    """N evaluations over many tasks in one space: immutable arrays, the rows sorted by task.

    Made by `build`, `from_matrix`, `from_frame` or `open`, which check what they are given.
    """

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
        curves: CurveColumns | None = None,
    ) -> Self:
        """Build a checked table from columns of N rows in any order, which are copied.

        Equal configurations are merged. An evaluation without a finite value counts as failed,
        whatever `status` says.
        """
        columns = EvaluationColumns(
            task_index, config_index, values, status, seconds, fidelity, curves
        )
        notes = Notes(meta_features or {}, splits or {}, starts or {})
        return copy_columns(from_columns(cls, space, metrics, tasks, configs, columns, notes))

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
    ) -> Self:
        """Build a table from one (tasks, configurations) matrix for each metric; NaN is a gap.

        `failed` marks evaluations that were tried and failed. `seconds` says how long each took.
        """
        shape = (len(tasks), len(configs))
        columns = columns_of_matrices(metrics, matrices, shape, seconds=seconds, failed=failed)
        notes = Notes(meta_features or {}, splits or {}, starts or {})
        return from_columns(cls, space, metrics, tasks, configs, columns, notes)

    @classmethod
    def from_frame(  # noqa: PLR0913 - one argument a column
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
        curves: str | None = None,
    ) -> Self:
        """Build a table from a data frame with one evaluation a row.

        Hyperparameters stand in columns of their names, empty where inactive, or as JSON objects
        in `config_column`. The other arguments name columns; columns that are not named are
        left out. Durations of pandas are read in seconds.

        space: anything that `Space.of` reads.
        curves: how the columns of learning curves begin, such as "curve:". They are called by the
            metrics, "step" and "seconds", and hold a list for each evaluation. Without steps,
            these are 1, 2, 3 and so on.

        Example:
            >>> Experience.from_frame(
            ...     past.space, past.to_frame(), task="task", metrics={"loss": "min"},
            ...     status="status", seconds="seconds", curves="curve:",
            ... )
        """
        from foretune.experience.data_frame import FrameColumns, read_frame

        columns = FrameColumns(task, metrics, config_column, status, seconds, fidelity, curves)
        return read_frame(cls, Space.of(space), frame, columns)

    @classmethod
    def open(cls, path: str | Path, *, progress: Progress = SILENT) -> Self:
        """Read a file that `save` has written."""
        from foretune.experience.parquet_reader import read_experience

        return read_experience(cls, Path(path), progress)

    # Writing it

    def save(self, path: str | Path, *, progress: Progress = SILENT) -> None:
        """Write one Parquet file; a file that is already there is replaced in one step."""
        from foretune.experience.parquet_writer import write_experience

        write_experience(self, Path(path), progress)

    def to_frame(self) -> pd.DataFrame:
        """Return one readable row for each evaluation, with everything that is known of it."""
        from foretune.experience.data_frame import to_frame

        return to_frame(self)

    # Parts of it

    def only(self, tasks: Iterable[str]) -> Self:
        """Return the evaluations of these tasks, which keep their order."""
        return selection.take_tasks(self, tasks)

    def without(self, tasks: Iterable[str]) -> Self:
        """Return the evaluations of all other tasks."""
        return selection.drop_tasks(self, tasks)

    def compact(self) -> Self:
        """Drop the configurations that neither an evaluation nor an initial design has.

        Parts of an experience share its table of configurations; files hold their own.
        """
        return selection.compact(self)

    def with_metrics(self, names: Sequence[str]) -> Self:
        """Return only these metrics, in this order, without rows that measured none of them."""
        return selection.select_metrics(self, names)

    # Changes

    def with_meta_features(self, meta_features: MetaFeatures) -> Self:
        """Return the same evaluations with these meta-features of the tasks."""
        return annotate(self, Notes(meta_features, self.splits, self.starts))

    def with_splits(self, splits: Splits) -> Self:
        """Return the same evaluations with these named splits."""
        return annotate(self, Notes(self.meta_features, splits, self.starts))

    def renamed(
        self, names: Mapping[str, str], *, choices: Mapping[str, Mapping[Any, Any]] | None = None
    ) -> Self:
        """Give hyperparameters other names, {old: new}, and choices, {hyperparameter: {old: new}}.

        `Space.renamed` follows the same rules.

        Example:
            >>> past.renamed({"learning_rate": "lr"}, choices={"optimizer": {"adam": "Adam"}})
        """
        configs = rename_configs(self.configs, names, choices)
        return replace(self, space=configs.space, configs=configs)

    def in_space(
        self,
        space: Any,
        *,
        assumed: Mapping[str, Any] | None = None,
        missing: str = "default",
    ) -> Self:
        """Return the evaluations as configurations of a space that has changed since.

        Runs with values that the space does not have are left out; see `alignment/carry_over`.

        space: anything that `Space.of` reads.
        assumed: the values that the runs had for hyperparameters they did not record.
        missing: what to do where a value is missing and none is assumed. "default" takes the
            default of the space, "marginalise" draws a random value for each configuration, and
            "drop" leaves the run out.

        Example:
            >>> past.in_space(space, assumed={"dropout": 0.0}, missing="drop")
        """
        return carry_over(self, Space.of(space), assumed=assumed, missing=missing).experience

    def append(self, evaluations: Iterable[Evaluation]) -> Self:
        """Return this experience with further evaluations, of known or of new tasks."""
        return combine.append(self, evaluations)

    def merge(self, other: ExperienceData) -> Self:
        """Return the evaluations of both, each once.

        The spaces are equal, or one has hyperparameters or algorithms that the other lacks: then
        the other's configurations get their defaults.
        """
        return combine.merge(self, other)
