"""Oboe (Yang et al., 2019): 219 models of 12 algorithms on 418 OpenML datasets.

There are two CSV matrices of datasets by models: the balanced error and the run time. A column's
name is the model as a Python dict, {'algorithm': ..., 'hyperparameters': {...}}.
"""

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from foretune.errors import ExperienceError
from foretune.experience import Experience
from foretune.plugins import SILENT, Progress, track
from foretune.space import Encoded, Space
from foretune.stores import Activity, Archive, infer_space
from foretune_lab.archives.matrices import ERROR

ERRORS, SECONDS, SIZES = "error_matrix.csv", "runtime_matrix.csv", "dataset_sizes.csv"
ALGORITHM = "algorithm"


def read(source: Path | str, *, progress: Progress = SILENT) -> Experience:
    """Read errors and run times from the oboe wheel, or a folder that holds its `Oboe` files.

    The sizes of the datasets become meta-features if the source has them.
    """
    archive = Archive.at(source)
    members = [archive.need(name) for name in (ERRORS, SECONDS)]
    errors, seconds = (_matrix(archive, m) for m in track(members, progress, "reading", 2))
    if list(errors.columns) != list(seconds.columns) or list(errors.index) != list(seconds.index):
        raise ExperienceError(
            f"'{ERRORS}' and '{SECONDS}' must have the same rows and columns, but they differ",
            rule="matrices-differ",
        )
    space, configs = infer_model_space([[_model(str(name))] for name in errors.columns], "Oboe")
    tasks = [str(name) for name in errors.index]
    return Experience.from_matrix(
        space,
        configs,
        tasks,
        [ERROR],
        {ERROR.name: errors.to_numpy()},
        seconds=seconds.to_numpy(),
        meta_features=_sizes(archive, tasks),
    )


@dataclass(frozen=True)
class ModelPart:
    """The algorithm that a configuration chose at one stage, and its hyperparameters."""

    stage: str
    algorithm: str
    hyperparameters: Mapping[str, Any]

    def prefix_names(self) -> dict[str, Any]:
        """Return the hyperparameters under names that are unique in the space.

        Python's None is a value here (for example no limit), not a gap, and is written as such.
        """
        return {
            f"{self.stage}:{self.algorithm}:{key}": "None" if value is None else value
            for key, value in self.hyperparameters.items()
        }


def infer_model_space(models: Sequence[Sequence[ModelPart]], name: str) -> tuple[Space, Encoded]:
    """Return the space of models that have one part for each stage, and the models in it."""
    configs = []
    activities: dict[str, Activity] = {}
    for parts in models:
        config: dict[str, Any] = {part.stage: part.algorithm for part in parts}
        for part in parts:
            named = part.prefix_names()
            config |= named
            activities |= dict.fromkeys(named, Activity(part.stage, (part.algorithm,)))
        configs.append(config)
    names = dict.fromkeys(key for config in configs for key in config)
    columns = {key: [config.get(key) for config in configs] for key in names}
    stages = {part.stage for parts in models for part in parts}
    space = Space.of(infer_space(columns, name, stages=stages, activities=activities))
    return space, space.from_columns(columns, len(models))


def _matrix(archive: Archive, member: str) -> pd.DataFrame:
    with archive.open(member) as stream:
        try:
            matrix = pd.read_csv(stream, index_col=0, dtype={0: str}).astype(np.float64)
        except ValueError as error:
            raise ExperienceError(
                f"'{member}' cannot be read as a CSV matrix: {error}",
                rule="not-a-matrix",
                value=member,
            ) from error
    if matrix.empty:
        raise ExperienceError(
            f"the matrix '{member}' must have rows and columns, but it is empty",
            rule="empty-matrix",
            value=member,
        )
    return matrix


def _model(text: str) -> ModelPart:
    try:
        model = ast.literal_eval(text)
        return ModelPart(ALGORITHM, str(model["algorithm"]), dict(model["hyperparameters"]))
    except (ValueError, SyntaxError, KeyError, TypeError, AttributeError) as error:
        raise ExperienceError(
            "a column must be named {'algorithm': ..., 'hyperparameters': {...}}, "
            f"but got {text!r}",
            rule="pipeline-name",
            value=text,
        ) from error


def _sizes(archive: Archive, tasks: Sequence[str]) -> dict[str, dict[str, float]]:
    """Read rows and columns of the datasets; the file omits leading zeros of their numbers."""
    member = archive.find(SIZES)
    if member is None:
        return {}
    sizes = _matrix(archive, member)
    if sizes.shape[1] < 2:
        raise ExperienceError(
            f"'{member}' must have a column of rows and one of columns",
            rule="matrix-without-names",
            value=member,
        )
    known = {
        str(name): {"instances": rows, "features": columns}
        for name, rows, columns in sizes.iloc[:, :2].itertuples()
    }
    short = {task: task.lstrip("0") for task in tasks}
    return {task: known[name] for task, name in short.items() if name in known}
