"""The runs that a tracking tool has recorded: a task, a configuration, and logged numbers.

Such tools know neither the space nor the direction of a metric. The user names the metrics. The
space is given, or inferred from the configurations.
"""

import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from math import isfinite
from typing import Any

import numpy as np

from foretune._base.arrays import Bools
from foretune._base.names import quote_names
from foretune.errors import ExperienceError, ForetuneWarning, UsageError
from foretune.experience import Experience, Metric, Status
from foretune.experience.curves import Curve, stack_curves
from foretune.space import Encoded, Parameter, Space
from foretune.space.text_format import parse_space
from foretune.stores.files.archive import existing
from foretune.stores.files.cell_columns import ColumnCells, is_missing
from foretune.stores.files.dropped_rows import NOT_ENDED, TOLD_IN_PART, say_left_out
from foretune.stores.files.failed_rows import find_whole_configs as find_whole_rows
from foretune.stores.files.plain_values import as_choice
from foretune.stores.files.space_inference import infer_space
from foretune.stores.formats import TableColumns, check_ignore_names, direction_of

MOST_NAMED = 12
LEAST_STEPS = 2
MOST_LISTS = 30
"""Lists count as choices if at most this many differ."""


@dataclass(frozen=True)
class RunReports:
    """What one run logged at its steps."""

    values: Mapping[str, Mapping[float, float]]
    """{metric: {step: value}}"""
    seconds: Mapping[float, float]
    """{step: seconds spent until then}"""

    def curve(self, metrics: Sequence[Metric]) -> Curve | None:
        """Return the learning curve, or None if the metrics have fewer than two steps.

        One step alone is no curve: many programs log their result that way.
        """
        known = {metric.name: self.values.get(metric.name, {}) for metric in metrics}
        steps = sorted({step for one in known.values() for step in one if step >= 0})
        if len(steps) < LEAST_STEPS:
            return None
        nan = float("nan")
        return Curve(
            steps,
            {name: [one.get(step, nan) for step in steps] for name, one in known.items()},
            [self.seconds.get(step, nan) for step in steps],
        )


@dataclass(frozen=True)
class LoggedRun:
    """One run of a tracking tool."""

    task: str
    config: Mapping[str, Any]
    values: Mapping[str, float]
    """The value of each metric."""
    failed: bool = False
    seconds: float = float("nan")
    nothing: Collection[str] = ()
    """Hyperparameters that were recorded as None or NaN. They are not in `config`."""
    ended: bool = True
    reports: "RunReports | None" = None
    """What the run logged at its steps."""

    def names(self, parameter: str) -> bool:
        """Return whether the run names a hyperparameter, with a value or as None."""
        return parameter in self.config or parameter in self.nothing

    @staticmethod
    def of(
        task: str,
        params: Mapping[str, Any],
        values: Mapping[str, float],
        *,
        failed: bool,
        seconds: float,
        ended: bool = True,
        reports: "RunReports | None" = None,
    ) -> "LoggedRun":
        """Make a run of its logged parameters, which may be lists, None or NaN."""
        nothing = frozenset(name for name, value in params.items() if is_missing(value))
        config = {name: as_choice(params[name]) for name in params if name not in nothing}
        return LoggedRun(task, config, values, failed, seconds, nothing, ended, reports)


def build_run_experience(
    runs: Sequence[LoggedRun], columns: TableColumns, source: str
) -> Experience:
    """Return the runs as an experience. A run without all the metrics counts as failed.

    Runs that have not ended, or that failed too early, are left out.

    columns: the metrics (`values`) and perhaps the file of the space. Nothing else applies.
    """
    runs = _only(runs, [run.ended for run in runs], NOT_ENDED)
    if not runs:
        raise ExperienceError(
            f"an experience needs a run that has ended, but '{source}' has none",
            rule="nothing-ended",
            value=source,
        )
    metrics = _metrics(runs, columns.values, source)
    runs = _without(runs, columns.ignored)
    done = [_is_success(run, metrics) for run in runs]
    if not any(done):
        raise ExperienceError(
            f"an experience needs a run that succeeded, but there is none in '{source}'",
            rule="nothing-succeeded",
            value=source,
        )
    kept = has_full_config(runs, done)
    runs, done = _only(runs, kept, TOLD_IN_PART), list(compress(done, kept))
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
        curves=stack_curves(
            [None if run.reports is None else run.reports.curve(metrics) for run in runs],
            [metric.name for metric in metrics],
        ),
    )


def check_columns(columns: TableColumns, kind: str, *, task: bool) -> None:
    """Refuse options that only tables have."""
    given = {
        "config_column": columns.config_column,
        "config_prefix": columns.config_prefix,
        "status": columns.status,
        "seconds": columns.seconds,
        "step": columns.step,
        "fidelity": columns.fidelity,
        "task": None if task else columns.task,
    }
    for name, value in given.items():
        if value is not None:
            raise UsageError(
                f"the option '{name}' belongs to table, but the kind is '{kind}': leave it out",
                rule="foreign-option",
                field=name,
                value=kind,
            )


def flatten_config(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return a nested configuration with one name for each value. Its parts are joined by `/`."""
    flat: dict[str, Any] = {}
    for name, value in config.items():
        if isinstance(value, Mapping):
            flat |= flatten_config(value, f"{prefix}{name}/")
        else:
            flat[f"{prefix}{name}"] = value
    return flat


def _metrics(
    runs: Sequence[LoggedRun], wanted: Mapping[str, str], source: str
) -> tuple[Metric, ...]:
    known = dict.fromkeys(name for run in runs for name in run.values)
    shown = ", ".join(f"'{name}'" for name in list(known)[:MOST_NAMED]) or "none"
    if not wanted:
        raise ExperienceError(
            f"a metric and its direction must be named, because '{source}' does not say which one "
            f"counts: name one of {shown}, such as --value NAME:min",
            rule="unnamed-metric",
            value=source,
        )
    for name in wanted:
        if name not in known:
            raise ExperienceError(
                f"a metric must be one that runs logged, but got '{name}': choose among {shown}",
                rule="unknown-metric",
                field="values",
                value=name,
            )
    return tuple(Metric(name, direction_of(name, direction)) for name, direction in wanted.items())


def _without(runs: Sequence[LoggedRun], ignored: Sequence[str]) -> list[LoggedRun]:
    """Return the runs without the ignored parameters."""
    known = dict.fromkeys(name for run in runs for name in (*run.config, *run.nothing))
    check_ignore_names(ignored, list(known))
    return [
        replace(
            run,
            config={name: run.config[name] for name in run.config if name not in ignored},
            nothing=frozenset(run.nothing).difference(ignored),
        )
        for run in runs
    ]


def _is_success(run: LoggedRun, metrics: Sequence[Metric]) -> bool:
    known = (run.values.get(metric.name, float("nan")) for metric in metrics)
    return not run.failed and all(map(isfinite, known))


def _only(runs: Sequence[LoggedRun], wanted: Sequence[bool], others: str) -> list[LoggedRun]:
    """Keep the wanted runs, and warn of the others."""
    lost = [run.task for run, good in zip(runs, wanted, strict=True) if not good]
    say_left_out("runs", others, lost, stacklevel=5)
    return list(compress(runs, wanted))


def has_full_config(runs: Sequence[LoggedRun], done: Sequence[bool]) -> list[bool]:
    """Return which runs had logged all their hyperparameters before they ended."""
    names = dict.fromkeys(name for run in runs for name in (*run.config, *run.nothing))
    cells = {name: ColumnCells.of([run.config.get(name) for run in runs]) for name in names}
    told = {name: np.array([run.names(name) for run in runs]) for name in names}
    whole: list[bool] = find_whole_rows(cells, told, np.array(done)).tolist()
    return whole


def _configurations(runs: Sequence[LoggedRun], columns: TableColumns) -> tuple[Space, Encoded]:
    """Return the space of all runs, and their configurations in it."""
    if columns.space is None:
        cells = _hyperparameters(runs)
        space = Space.of(infer_space(cells, told=_is_named(cells, runs)))
        return space, space.from_columns(cells, len(runs))
    space = parse_space(existing(columns.space).read_text(encoding="utf-8", errors="replace"))
    known = {p.name: [_cell(run, p) for run in runs] for p in space.parameters}
    configs = space.from_columns(known, len(runs), fill_defaults=True, drop_inactive=True)
    _check_nothing(runs, space, configs)
    return space, configs


def _hyperparameters(runs: Sequence[LoggedRun]) -> dict[str, list[Any]]:
    """Return the values of each hyperparameter, None where a run has none.

    A list that never changes, or that changes with nearly every run, is a setting of the program.
    """
    cells = _all_cells(runs)
    lists = {
        name: len({run.config.get(name) for run in runs if run.names(name)})
        for name, column in cells.items()
        if any(isinstance(value, tuple) for value in column)
    }
    many = [name for name, different in lists.items() if different > MOST_LISTS]
    if many:
        warnings.warn(
            ForetuneWarning(
                f"{quote_names(many)} hold more than {MOST_LISTS} different lists, too many for "
                "choices: "
                "they are left out",
                rule="too-many-lists",
                value=tuple(many),
            ),
            stacklevel=2,
        )
    return {name: cells[name] for name in cells if 1 < lists.get(name, 2) <= MOST_LISTS}


def _all_cells(runs: Sequence[LoggedRun]) -> dict[str, list[Any]]:
    names = dict.fromkeys(name for run in runs for name in run.config)
    return {name: [run.config.get(name) for run in runs] for name in names}


def _is_named(cells: Mapping[str, Sequence[Any]], runs: Sequence[LoggedRun]) -> dict[str, Bools]:
    """Return where runs name a hyperparameter, for those that some runs name as None."""
    return {
        name: np.array([run.names(name) for run in runs])
        for name in cells
        if any(name in run.nothing for run in runs)
    }


def _cell(run: LoggedRun, parameter: Parameter) -> Any:
    """Return a run's value. A None that is no choice stands for the default."""
    name = parameter.name
    if run.names(name) or None not in parameter.choices:
        return run.config.get(name)
    return parameter.default


def _check_nothing(runs: Sequence[LoggedRun], space: Space, configs: Encoded) -> None:
    """Refuse None if the space has no such choice: the default would take its place."""
    for column, parameter in enumerate(space.parameters):
        said = np.array([parameter.name in run.nothing for run in runs])
        wrong = said & configs.active[:, column]
        if wrong.any() and None not in parameter.choices:
            raise ExperienceError(
                f"a hyperparameter must have a value of the space, but '{parameter.name}' is None "
                f"in {np.count_nonzero(wrong)} of {len(runs)} runs: make None a choice of it, or "
                "leave these runs out",
                rule="none-outside-space",
                field=parameter.name,
            )
