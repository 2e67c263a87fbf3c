"""HPO-B (Pineda Arango et al., 2021): JSON files of many search spaces.

{search space: {dataset: {"X": configurations in [0, 1], "y": accuracies}}} in one file for each of
training, validation and testing, and the initial designs in `bo-initializations.json`.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from ConfigSpace import UniformFloatHyperparameter

from foretune.errors import ExperienceError
from foretune.experience import Direction, Experience, Metric
from foretune.numerics import Floats
from foretune.plugins import SILENT, Progress, track
from foretune.space import Draft, Space
from foretune.stores import Archive

PARTS = {
    "train": "meta-train-dataset.json",
    "validation": "meta-validation-dataset.json",
    "test": "meta-test-dataset.json",
}
STARTS = "bo-initializations.json"
ACCURACY = Metric("accuracy", Direction.MAX)
ROUNDING = 1e-6


def read(
    source: Path | str,
    *,
    space_id: str | None = None,
    progress: Progress = SILENT,
) -> Experience:
    """Read the accuracies of one search space in the folder (or zip archive, or file) `source`.

    space_id: the search space to read; needed if the files hold several.
    The split "hpob" is the benchmark's own. The initial designs keep their names (test0, ...).
    """
    archive = Archive.at(source)
    found = {part: member for part, name in PARTS.items() if (member := archive.find(name))}
    if not found:
        archive.need(PARTS["test"])
    parts = {
        part: _json(archive, member)
        for part, member in track(found.items(), progress, "reading files", len(found))
    }
    chosen = _choose_space(parts, space_id)
    datasets = {part: tables.get(chosen, {}) for part, tables in parts.items()}
    starts = archive.find(STARTS)
    designs = _json(archive, starts).get(chosen, {}) if starts is not None else {}
    return _experience(chosen, datasets, designs)


def _json(archive: Archive, member: str) -> dict[str, Any]:
    with archive.open(member) as stream:
        try:
            data = json.load(stream)
        except (ValueError, RecursionError) as error:
            raise ExperienceError(
                f"'{member}' must be JSON, but it is not: {error}", rule="not-json", value=member
            ) from error
    if not isinstance(data, dict) or not all(isinstance(of, dict) for of in data.values()):
        raise ExperienceError(
            f"'{member}' must hold search spaces by name, but it does not",
            rule="no-search-spaces",
            value=member,
        )
    return data


def _choose_space(parts: Mapping[str, Mapping[str, Any]], space_id: str | None) -> str:
    known = sorted({name for tables in parts.values() for name in tables})
    if space_id is None and len(known) == 1:
        return known[0]
    if space_id is None:
        raise ExperienceError(
            f"one search space must be chosen, but the source holds {', '.join(known) or 'none'}: "
            "name one of them as space_id",
            rule="choose-search-space",
            field="space_id",
            value=tuple(known),
        )
    if space_id not in known:
        raise ExperienceError(
            f"the search space must be one of {', '.join(known) or 'none'}, but got '{space_id}'",
            rule="unknown-search-space",
            field="space_id",
            value=space_id,
        )
    return space_id


def _experience(
    name: str, datasets: Mapping[str, Mapping[str, Any]], designs: Mapping[str, Any]
) -> Experience:
    tasks = [task for tables in datasets.values() for task in tables]
    tables = [_table(table, task) for of in datasets.values() for task, table in of.items()]
    if len({x.shape[1] for x, _ in tables}) != 1 or len(set(tasks)) < len(tasks):
        raise ExperienceError(
            f"the datasets of search space '{name}' must have configurations of equal length and "
            "lie in one part each, but they do not",
            rule="uneven-datasets",
            field=name,
        )
    x = np.concatenate([configurations for configurations, _ in tables])
    sizes = [len(accuracies) for _, accuracies in tables]
    firsts = dict(zip(tasks, np.cumsum([0, *sizes[:-1]]).tolist(), strict=True))
    made = Draft(name=f"HPO-B {name}")
    made.add(*(UniformFloatHyperparameter(f"x{i}", 0.0, 1.0) for i in range(x.shape[1])))
    space = Space.of(made)
    return Experience.build(
        space,
        [ACCURACY],
        tasks,
        np.repeat(np.arange(len(tasks)), sizes),
        space.from_columns({f"x{i}": column.tolist() for i, column in enumerate(x.T)}, len(x)),
        np.arange(len(x)),
        np.concatenate([accuracies for _, accuracies in tables]),
        splits={"hpob": {part: list(of) for part, of in datasets.items()}},
        starts={
            task: _starts(designs[task], task, first, size)
            for (task, first), size in zip(firsts.items(), sizes, strict=True)
            if task in designs
        },
    )


def _starts(designs: Any, task: str, first: int, size: int) -> dict[str, list[int]]:
    """Return the initial designs of a dataset, whose rows begin at `first` of all."""
    try:
        rows = {seed: [int(row) for row in of] for seed, of in designs.items()}
    except (AttributeError, TypeError, ValueError, ArithmeticError) as error:
        raise ExperienceError(
            f"the initial designs of dataset '{task}' must be lists of its rows by name, but they "
            "are not",
            rule="unreadable-starts",
            field=task,
        ) from error
    if any(not 0 <= row < size for of in rows.values() for row in of):
        raise ExperienceError(
            f"the initial designs of dataset '{task}' must name rows between 0 and {size - 1}, but "
            "they name others",
            rule="unknown-start-rows",
            field=task,
        )
    return {seed: [first + row for row in of] for seed, of in rows.items()}


def _table(table: Any, task: str) -> tuple[Floats, Floats]:
    """Return the configurations (n, d) and accuracies (n,) of one dataset."""
    try:
        x = np.array(table["X"], dtype=np.float64)
        y = np.array(table["y"], dtype=np.float64).reshape(-1)
    except (LookupError, TypeError, ValueError, ArithmeticError) as error:
        raise ExperienceError(
            f"dataset '{task}' must have a matrix 'X' and a column 'y', but it does not",
            rule="no-x-and-y",
            field=task,
        ) from error
    if x.ndim != 2 or len(x) != len(y):
        raise ExperienceError(
            f"dataset '{task}' must have one accuracy a configuration, but it has {len(y)} for "
            f"an 'X' of shape {x.shape}",
            rule="accuracy-count",
            field=task,
        )
    if (x < -ROUNDING).any() or (x > 1 + ROUNDING).any():
        raise ExperienceError(
            f"configurations must lie in [0, 1], but those of dataset '{task}' reach from "
            f"{x.min():g} to {x.max():g}",
            rule="outside-unit-cube",
            field=task,
        )
    return np.clip(x, 0.0, 1.0), y
