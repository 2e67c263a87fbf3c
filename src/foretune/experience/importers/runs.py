"""Runs that a tracking tool has recorded: a task, a configuration, and whatever numbers it logged.

Such tools know neither the space nor which number is to become small or large. The space is
inferred from the configurations as for tables, or given; the metrics are named by the user.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from math import isfinite
from typing import Any

import numpy as np
from ConfigSpace import ConfigurationSpace

from foretune.errors import ExperienceError, UsageError
from foretune.experience import Experience, Metric, Status
from foretune.experience.importers.archive import existing
from foretune.experience.importers.inference import explain_missing, infer_space, present_mask
from foretune.experience.importers.registry import TableColumns, direction_of
from foretune.space import Encoded, Parameter, Space

MOST_NAMED = 12
MOST_CHOSEN_NUMBERS = 10
"""Numbers that are sometimes None are taken as choices if they are at most so many."""


@dataclass(frozen=True)
class Run:
    """One run that has ended."""

    task: str
    config: Mapping[str, Any]
    values: Mapping[str, float]
    """By the name of the metric."""
    failed: bool = False
    seconds: float = float("nan")
    nothing: Collection[str] = ()
    """Hyperparameters that were recorded as None, and so are not in `config`."""


def experience_of(runs: Sequence[Run], columns: TableColumns, source: str) -> Experience:
    """The runs as an experience; one without all the metrics counts as failed.

    columns: the metrics (`values`) and perhaps the file of the space; nothing else applies.
    """
    if not runs:
        raise ExperienceError(f"an experience needs a run that has ended, but '{source}' has none")
    metrics = _metrics(runs, columns.values, source)
    runs, done = _told_in_full(runs, [_succeeded(run, metrics) for run in runs])
    if not any(done):
        raise ExperienceError(
            f"an experience needs a run that succeeded, but there is none in '{source}'"
        )
    space, configs = _configurations(runs, columns)
    tasks = list(dict.fromkeys(run.task for run in runs))
    nothing = [float("nan")] * len(metrics)
    return Experience.build(
        space,
        metrics,
        tasks,
        [tasks.index(run.task) for run in runs],
        configs,
        np.arange(len(runs)),
        [
            [run.values[m.name] for m in metrics] if good else nothing
            for run, good in zip(runs, done, strict=True)
        ],
        status=[Status.DONE if good else Status.FAILED for good in done],
        seconds=[run.seconds for run in runs],
    )


def check_columns(columns: TableColumns, kind: str, *, task: bool) -> None:
    """Refuse what only tables have."""
    given = {
        "config_column": columns.config_column,
        "status": columns.status,
        "seconds": columns.seconds,
        "task": None if task else columns.task,
    }
    for name, value in given.items():
        if value is not None:
            raise UsageError(
                f"the option '{name}' belongs to table, but the kind is '{kind}': leave it out"
            )


def flattened(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """A nested configuration with one name a value, its parts joined by `/`."""
    flat: dict[str, Any] = {}
    for name, value in config.items():
        if isinstance(value, Mapping):
            flat |= flattened(value, f"{prefix}{name}/")
        else:
            flat[f"{prefix}{name}"] = value
    return flat


def _metrics(runs: Sequence[Run], wanted: Mapping[str, str], source: str) -> tuple[Metric, ...]:
    known = dict.fromkeys(name for run in runs for name in run.values)
    shown = ", ".join(f"'{name}'" for name in list(known)[:MOST_NAMED]) or "none"
    if not wanted:
        raise ExperienceError(
            f"it must be said which metric counts and which way is better, but '{source}' does not "
            f"tell: name one of {shown}, such as --value NAME:min"
        )
    for name in wanted:
        if name not in known:
            raise ExperienceError(
                f"a metric must be one that the runs logged, but got '{name}': choose among {shown}"
            )
    return tuple(Metric(name, direction_of(name, direction)) for name, direction in wanted.items())


def _succeeded(run: Run, metrics: Sequence[Metric]) -> bool:
    known = (run.values.get(metric.name, float("nan")) for metric in metrics)
    return not run.failed and all(map(isfinite, known))


def _told_in_full(runs: Sequence[Run], done: Sequence[bool]) -> tuple[list[Run], list[bool]]:
    """Without runs that failed before they had logged all their hyperparameters.

    What belongs to a whole configuration, those that succeeded tell.
    """
    told = [frozenset((*run.config, *run.nothing)) for run in runs]
    whole = set(compress(told, done))
    kept = [(r, g) for r, g, its in zip(runs, done, told, strict=True) if its in whole]
    return [run for run, _ in kept], [good for _, good in kept]


def _configurations(runs: Sequence[Run], columns: TableColumns) -> tuple[Space, Encoded]:
    """The space of all runs, and their configurations in it."""
    names = dict.fromkeys(name for run in runs for name in run.config)
    cells = {name: [run.config.get(name) for run in runs] for name in names}
    if columns.space is None:
        space = Space.of(_inferred(cells, runs))
        return space, space.from_columns(cells, len(runs))
    space = Space.from_json(existing(columns.space).read_text(encoding="utf-8"))
    known = {p.name: [_cell(run, p) for run in runs] for p in space.parameters}
    configs = space.from_columns(known, len(runs), fill_defaults=True, drop_inactive=True)
    _check_nothing(runs, space, configs)
    return space, configs


def _inferred(cells: Mapping[str, Sequence[Any]], runs: Sequence[Run]) -> ConfigurationSpace:
    """The space that the runs come from.

    None is a gap where another hyperparameter says when, else a choice like others.
    """
    present = {name: present_mask(column) for name, column in cells.items()}
    explained = explain_missing(cells, present)
    nothing = [
        name
        for name, here in present.items()
        if name not in explained
        and not here.all()
        and all(name in run.nothing for run in compress(runs, ~here))
    ]
    for name in nothing:
        _check_choices(name, cells[name])
        present[name] = np.ones(len(runs), dtype=np.bool_)
    return infer_space(cells, activities=explain_missing(cells, present), nothing=nothing)


def _check_choices(name: str, column: Sequence[Any]) -> None:
    """Refuse many different numbers beside None: as choices they would all be equally far apart."""
    gaps = sum(value is None for value in column)
    different = {value for value in column if isinstance(value, (int, float))}
    if len(different) > MOST_CHOSEN_NUMBERS:
        raise ExperienceError(
            f"a hyperparameter is a number or a choice, but '{name}' is None in {gaps} of "
            f"{len(column)} runs and has {len(different)} different numbers in the others: log a "
            "number for None, or leave these runs out"
        )


def _cell(run: Run, parameter: Parameter) -> Any:
    """What a run says of a hyperparameter; None stands for the default unless it is a choice."""
    name = parameter.name
    if name in run.config or name in run.nothing or None not in parameter.choices:
        return run.config.get(name)
    return parameter.default


def _check_nothing(runs: Sequence[Run], space: Space, configs: Encoded) -> None:
    """Refuse None where the space has no such choice: the default would stand for it."""
    for column, parameter in enumerate(space.parameters):
        said = np.array([parameter.name in run.nothing for run in runs])
        wrong = said & configs.active[:, column]
        if wrong.any() and None not in parameter.choices:
            raise ExperienceError(
                f"a hyperparameter must have a value of the space, but '{parameter.name}' is None "
                f"in {np.count_nonzero(wrong)} of {len(runs)} runs: make None a choice of it, or "
                "leave these runs out"
            )
