"""The meta-datasets of the DeepPipe paper: PMF, Tensor-OBOE and ZAP, one JSON file each.

A file holds a table of pipelines, one-hot encoded and scaled to [0, 1] by its authors, and the
classification error of each pipeline on each task (NaN if it was not run). Here one-hot groups
become choices, and the flags of algorithms become stages. Scaled numbers stay as they are. Columns
that never vary while their algorithm is chosen are left out, and so are tasks without any known
error.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from ConfigSpace import (
    CategoricalHyperparameter,
    EqualsCondition,
    UniformFloatHyperparameter,
    UniformIntegerHyperparameter,
)
from numpy.typing import NDArray

from foretune.errors import ExperienceError
from foretune.experience import Experience
from foretune.numerics import Bools, Floats, Ints
from foretune.plugins import SILENT, Progress, track
from foretune.space import Draft, Encoded, Space
from foretune.stores import existing
from foretune_lab.archives.deeppipe_layouts import FLAG, LAYOUTS, NONE, DatasetLayout, Encoder
from foretune_lab.archives.matrices import ERROR, with_records

NEEDED = (
    "pipelines",
    "error",
    "list_for_concatenator",
    "list_for_selector",
    "algorithm_domain",
    "tasks_index",
    "init_ids",
)


def read(source: Path | str, *, progress: Progress = SILENT) -> Experience:
    """Read the errors of one `*_meta_dataset.json`, with the paper's splits and initial pipelines.

    Split "0" (also called "paper") has the first group of tasks for validation, the second for
    testing and the rest for training. Further splits go on from there, if the file has the initial
    pipelines for them.
    """
    [data] = track(map(_load, [existing(source)]), progress, "reading the meta-dataset", 1)
    try:
        return _experience(data, source)
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError) as error:
        raise ExperienceError(
            "a meta-dataset of DeepPipe must hold tables of numbers as it was published, but "
            f"'{source}' does not ({error}): get the file again",
            rule="not-published-tables",
            value=str(source),
        ) from error


def _experience(data: dict[str, Any], source: Path | str) -> Experience:
    layout = _layout_of(data, source)
    table = np.asarray(data.pop("pipelines"), dtype=np.float64)
    errors = np.asarray(data.pop("error"), dtype=np.float64)
    errors[errors < 0] = np.nan
    space, configs = _configurations(layout, table, np.asarray(data["list_for_selector"]))
    tasks = _task_names(data, len(errors))
    run = ~np.isnan(errors)
    experience = Experience.from_matrix(
        space,
        configs,
        tasks,
        [ERROR],
        {ERROR.name: errors},
        splits=_splits(data, tasks),
        starts=_starts(data, tasks, run),
    )
    return with_records(experience, run)


def _load(path: Path) -> dict[str, Any]:
    try:
        with path.open(encoding="utf-8") as stream:
            data = json.load(stream)
    except (ValueError, OSError, RecursionError) as error:
        raise ExperienceError(
            f"a meta-dataset must be a JSON file, but '{path}' is not: {error}",
            rule="not-json",
            value=str(path),
        ) from error
    missing = [name for name in NEEDED if not isinstance(data, dict) or not data.get(name)]
    if missing:
        raise ExperienceError(
            f"a meta-dataset of DeepPipe must have the entry '{missing[0]}', but '{path}' does "
            "not: give one of the files *_meta_dataset.json",
            rule="missing-entry",
            field=missing[0],
            value=str(path),
        )
    checked: dict[str, Any] = data
    return checked


def _layout_of(data: dict[str, Any], source: Path | str) -> DatasetLayout:
    widths = tuple(np.diff(data["algorithm_domain"]).tolist())
    for layout in LAYOUTS:
        if layout.widths == widths:
            return layout
    known = ", ".join(layout.name for layout in LAYOUTS)
    raise ExperienceError(
        f"the columns of a meta-dataset must be those of {known}, "
        f"but '{source}' has algorithms with {list(widths)} columns",
        rule="unknown-layout",
        value=source,
    )


# Pipelines


@dataclass
class _Draft:
    """A space under construction, and the cells of its hyperparameters row by row."""

    rows: int
    space: Draft
    cells: dict[str, NDArray[Any]] = field(default_factory=dict)

    def add_choice(self, stage: str, algorithms: list[str], chosen: NDArray[Any]) -> None:
        choices = [*algorithms, NONE] if (chosen == NONE).any() else algorithms
        self.space.add(CategoricalHyperparameter(stage, choices, meta={"stage": True}))
        self.cells[stage] = chosen

    def add(self, stage: str, algorithm: str, name: str, active: Bools, values: Any) -> None:
        """Add a hyperparameter of an algorithm, with its values where it is active."""
        full = ":".join(part for part in (stage, algorithm, name) if part)
        distinct = np.unique(values)
        if len(distinct) <= 1:
            return
        made: Any
        if values.dtype.kind != "f":
            made = CategoricalHyperparameter(full, distinct.tolist())
        elif np.isin(distinct, (0.0, 1.0)).all():
            made = UniformIntegerHyperparameter(full, 0, 1)
        else:
            made = UniformFloatHyperparameter(full, 0.0, 1.0)
        self.space.add(made)
        if stage:
            self.space.add(EqualsCondition(made, self.space[stage], algorithm))
        self.cells[full] = np.full(self.rows, None, dtype=object)
        self.cells[full][active] = values


def _configurations(layout: DatasetLayout, table: Floats, selector: Ints) -> tuple[Space, Encoded]:
    """Return the space of the pipelines and the pipelines in it, in the order of the file."""
    # The authors scaled in single precision, which can overshoot by 2e-7.
    table = np.clip(table, 0.0, 1.0)
    draft = _Draft(len(table), Draft(name=layout.name))
    first = 0
    for position, (stage, encoders) in enumerate(layout.stages.items()):
        parts = []
        for code, encoder in enumerate(encoders):
            rows = selector[:, position] == code
            parts += list(_algorithms(encoder, rows, table, first))
            first += sum(len(columns.split()) for columns in encoder.values())
        if stage:
            chosen = np.full(len(table), NONE, dtype=object)
            for algorithm, rows, _ in parts:
                chosen[rows] = algorithm
            draft.add_choice(stage, [algorithm for algorithm, _, _ in parts], chosen)
        for algorithm, rows, columns in parts:
            for name, values in _hyperparameters(columns, table[rows]):
                draft.add(stage, algorithm, name, rows, values)
    space = Space.of(draft.space)
    cells = {name: column.tolist() for name, column in draft.cells.items()}
    return space, space.from_columns(cells, len(table))


def _algorithms(
    encoder: Encoder, rows: Bools, table: Floats, first: int
) -> Iterator[tuple[str, Bools, dict[str, int]]]:
    """Return each algorithm of an encoder, the rows that chose it, and its columns by name."""
    shared = len(encoder) > 1 or FLAG in encoder.values()
    for algorithm, text in encoder.items():
        names = text.split()
        columns = dict(zip(names, range(first, first + len(names)), strict=True))
        first += len(names)
        used = (table[:, list(columns.values())] != 0).any(axis=1)
        yield algorithm, rows & used if shared else rows, columns


def _hyperparameters(columns: dict[str, int], table: Floats) -> Iterator[tuple[str, NDArray[Any]]]:
    """Return each hyperparameter of an algorithm with its values in the rows of `table`."""
    groups: dict[str, dict[str, int]] = {}
    for name, column in columns.items():
        base, _, choice = name.partition("=")
        if choice:
            groups.setdefault(base, {})[choice] = column
        elif name != FLAG:
            yield name, table[:, column]
    for base, choices in groups.items():
        hot = table[:, list(choices.values())]
        if not (hot.sum(axis=1) == 1).all():
            raise ExperienceError(
                f"the one-hot columns of '{base}' must hold a single one in each row, but they "
                "do not: the file is damaged",
                rule="damaged-one-hot",
                field=base,
            )
        yield base, np.array(list(choices))[hot.argmax(axis=1)]


# Tasks


def _task_names(data: dict[str, Any], n: int) -> list[str]:
    """Return the datasets' own names if the file has them, otherwise their positions."""
    names = data.get("original_dataset_id") or data.get("pipelines_names") or range(n)
    if len(names) != n:
        raise ExperienceError(
            f"a meta-dataset must name each of its {n} tasks, but it has {len(names)} names",
            rule="task-names",
            value=len(names),
        )
    return [str(name) for name in names]


def _splits(data: dict[str, Any], tasks: Sequence[str]) -> dict[str, dict[str, list[str]]]:
    groups = [[tasks[int(task)] for task in group] for group in data["tasks_index"]]
    turns = len(groups) if all(data["init_ids"]) else 1
    splits = {str(turn): _split(groups, turn) for turn in range(turns)}
    return {"paper": splits["0"], **splits}


def _split(groups: list[list[str]], turn: int) -> dict[str, list[str]]:
    validation, test = turn, (turn + 1) % len(groups)
    rest = [group for i, group in enumerate(groups) if i not in (validation, test)]
    return {
        "train": [task for group in rest for task in group],
        "validation": groups[validation],
        "test": groups[test],
    }


def _starts(
    data: dict[str, Any], tasks: Sequence[str], run: Bools
) -> dict[str, dict[str, list[int]]]:
    """Return the initial pipelines of each task that were run on it."""
    starts = {}
    for group in data["init_ids"]:
        for task, pipelines in dict(group).items():
            kept = [int(pipeline) for pipeline in pipelines if run[int(task), int(pipeline)]]
            if kept:
                starts[tasks[int(task)]] = {"paper": kept}
    return starts
