"""Results of a replay: one Parquet file for each suite, with all that a report needs."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from foretune.errors import ExperienceError, ForetuneError, UsageError
from foretune.numerics import Floats, Ints
from foretune.plugins import replace_file
from foretune.report import count_text
from foretune_lab.bench.curve_replay import ROW
from foretune_lab.bench.curve_settings import CurveSettings
from foretune_lab.bench.metrics import best_so_far
from foretune_lab.bench.pools import PoolFacts
from foretune_lab.bench.shared_grid import RUN, find_shared_grid, list_finished_runs

FORMAT_VERSION = 2
"""Version 2 has results on learning curves; all others are still written as version 1."""
COLUMNS = ["suite", *RUN, "trial", "value", "best", "suggest_seconds", "learn_seconds"]
_METADATA_KEY = b"foretune.results"


@dataclass(frozen=True, slots=True)
class ReplaySettings:
    """The settings that must be equal for runs to be in one file."""

    suite: str
    trials: int
    """0 on learning curves, where the budget counts."""
    split: str
    objectives: tuple[str, ...]
    directions: tuple[str, ...]
    """`min` or `max` for each objective; recorded values are turned so that all are minimised."""
    experience: str
    """The fingerprint of the experience that was replayed."""
    start: str = "none"
    """The start of all runs; older files, from before there was a choice, do not say."""
    notes: str | None = None
    """The fingerprint of the other parts of the experience that the runs used: see
    `fingerprint_of_notes`. Empty if they used nothing else; None if an older file does not
    say."""
    curves: CurveSettings | None = None
    """Set if runs were played on learning curves."""

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> "ReplaySettings":
        """Read what `dataclasses.asdict` gave and JSON has stored."""
        lists = {name: tuple(plain[name]) for name in ("objectives", "directions")}
        curves = plain.get("curves")
        played = None if curves is None else CurveSettings.from_dict(curves)
        return cls(**{**plain, **lists, "curves": played})

    @property
    def columns(self) -> list[str]:
        """The columns that the rows of results have."""
        return COLUMNS if self.curves is None else ROW

    def difference(self, other: "ReplaySettings") -> str:
        """Return, in words, the first thing in which `other` differs; empty if nothing does."""
        others = other._by_name()
        for name, mine in self._by_name().items():
            theirs = others.get(name)
            if mine == theirs or name == "notes":
                continue
            if name == "experience":
                return "another experience"
            return f"{name} {_format_setting(mine)} instead of {_format_setting(theirs)}"
        return _difference_of_notes(self.notes, other.notes)

    def _by_name(self) -> dict[str, Any]:
        """Return all settings by name, also those of curves."""
        plain = {name: value for name, value in asdict(self).items() if name != "curves"}
        return {**plain, **({} if self.curves is None else self.curves.flat())}


@dataclass(frozen=True, slots=True)
class Results:
    """The runs of one suite."""

    settings: ReplaySettings
    pools: Mapping[str, PoolFacts]
    """The facts about each task."""
    rows: pd.DataFrame
    """One row for each trial: `COLUMNS`, and `value_NAME` for each of several objectives. On
    learning curves one row for each decision, in their order: `ROW`."""
    held_out: int | None = None
    """The number of tasks that could have been replayed; None if it is not known."""

    @property
    def runs(self) -> set[tuple[str, str, int]]:
        """The finished runs, as (task, method, seed)."""
        return list_finished_runs(self.rows)


@dataclass(frozen=True, slots=True)
class Curves:
    """The runs that all methods of a suite share, as arrays."""

    settings: ReplaySettings
    methods: tuple[str, ...]
    tasks: tuple[str, ...]
    seeds: tuple[int, ...]
    pools: tuple[PoolFacts, ...]
    """One for each task."""
    values: Floats
    """(methods, tasks, seeds, trials, objectives), losses; NaN if failed, or after the pool."""
    suggest_seconds: Floats
    """(methods,), the mean seconds of a suggestion."""
    learn_seconds: Floats
    """(methods,), the mean seconds of learning once."""
    left_out: int
    """The number of runs of these methods with other tasks and seeds."""
    held_out: int | None
    """The number of tasks that could have been replayed; None if it is not known."""

    @property
    def suite(self) -> str:
        """The name of the suite."""
        return self.settings.suite

    @property
    def objectives(self) -> tuple[str, ...]:
        """The names of the metrics."""
        return self.settings.objectives

    @property
    def averaging_note(self) -> str:
        """What the means are taken over, in words."""
        return f"{count_text(len(self.tasks), 'task')} and {count_text(len(self.seeds), 'seed')}"

    @property
    def best(self) -> Floats:
        """(methods, tasks, seeds, trials), the best loss of the first objective so far."""
        return best_so_far(self.values[..., 0])

    @property
    def trials(self) -> int:
        """The number of trials of a run."""
        return int(self.values.shape[3])


def save(results: Results, path: Path) -> None:
    """Write the file in one step: it is there as a whole, or not at all."""
    metadata = {
        "version": 1 if results.settings.curves is None else FORMAT_VERSION,
        "settings": asdict(results.settings),
        "pools": {task: facts.to_dict() for task, facts in results.pools.items()},
        "held_out": results.held_out,
    }
    order = RUN if results.settings.curves is not None else [*RUN, "trial"]
    ordered = results.rows.sort_values(order, ignore_index=True, kind="stable")
    table = pa.Table.from_pandas(ordered, preserve_index=False)
    table = table.replace_schema_metadata({_METADATA_KEY: json.dumps(metadata).encode()})
    replace_file(path, lambda unfinished: pq.write_table(table, unfinished, compression="zstd"))


def read(path: Path) -> Results:
    """Read a file that `save` has written."""
    if not path.is_file():
        raise UsageError(
            f"results must be an existing file, but there is no '{path}': correct its path, or "
            "make it with `foretune bench run`",
            rule="missing-results",
            field="results",
            value=path,
        )
    try:
        table = pq.read_table(path)
    except (pa.ArrowException, OSError) as error:
        raise ExperienceError(
            f"results must be a Parquet file, but '{path}' cannot be read ({error}): "
            "run the benchmark again",
            rule="unreadable-results",
            field="results",
            value=path,
        ) from error
    try:
        return _decode_results(path, table)
    except ForetuneError:
        raise
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError) as error:
        raise ExperienceError(
            f"results must be whole, but what '{path}' says of its runs cannot be read "
            f"({type(error).__name__}: {error}): run the benchmark again",
            rule="damaged-results",
            field="results",
            value=path,
        ) from error


def _decode_results(path: Path, table: pa.Table) -> Results:
    metadata = json.loads((table.schema.metadata or {}).get(_METADATA_KEY, b"{}"))
    rows = table.to_pandas()
    _check(path, metadata, rows)
    pools = {task: PoolFacts.from_dict(facts) for task, facts in metadata["pools"].items()}
    settings = ReplaySettings.from_dict(metadata["settings"])
    for task in rows["task"].unique():
        if task not in pools and settings.curves is None:
            raise LookupError(f"nothing is known of the task {task}")
    return Results(settings, pools, rows, metadata.get("held_out"))


def merge(parts: Sequence[Results]) -> list[Results]:
    """Return the results of several files; those of one suite are joined."""
    suites: dict[str, Results] = {}
    for part in parts:
        suite = part.settings.suite
        suites[suite] = _join_results(suites[suite], part) if suite in suites else part
    return list(suites.values())


def curves_of(results: Results, methods: Iterable[str] | None = None) -> Curves:
    """Arrange the runs that all methods share as arrays; methods in the order they are named."""
    grid = find_shared_grid(results.rows, results.settings.suite, methods)
    names, tasks, seeds = grid.methods, grid.tasks, grid.seeds
    kept = grid.select(results.rows)
    return Curves(
        settings=results.settings,
        methods=names,
        tasks=tasks,
        seeds=seeds,
        pools=tuple(results.pools[task] for task in tasks),
        values=_fill_grid(kept, names, tasks, seeds, results.settings),
        suggest_seconds=_mean_by_method(kept, "suggest_seconds", names),
        learn_seconds=_mean_by_method(kept[kept["trial"] == 1], "learn_seconds", names),
        left_out=grid.left_out,
        held_out=results.held_out,
    )


def value_columns(objectives: Sequence[str]) -> list[str]:
    """Return the columns of the losses: `value`, or one column for each of several objectives."""
    return ["value"] if len(objectives) == 1 else [f"value_{name}" for name in objectives]


def _fill_grid(
    rows: pd.DataFrame,
    methods: tuple[str, ...],
    tasks: tuple[str, ...],
    seeds: tuple[int, ...],
    settings: ReplaySettings,
) -> Floats:
    """Return (methods, tasks, seeds, trials, objectives) losses."""
    columns = value_columns(settings.objectives)
    shape = (len(methods), len(tasks), len(seeds), int(rows["trial"].max()), len(columns))
    values = np.full(shape, np.nan)
    places = (
        _places(methods, rows["method"]),
        _places(tasks, rows["task"]),
        _places(seeds, rows["seed"]),
        rows["trial"].to_numpy() - 1,
    )
    values[places] = rows[columns].to_numpy(dtype=np.float64)
    return values


def _places(names: Sequence[str] | Sequence[int], column: "pd.Series[Any]") -> Ints:
    """Return the position of each of the column's entries in `names`."""
    position = {name: place for place, name in enumerate(names)}
    return np.asarray(column.map(position), dtype=np.int64)


def _mean_by_method(rows: pd.DataFrame, column: str, methods: tuple[str, ...]) -> Floats:
    means = rows.groupby("method", observed=True)[column].mean()
    ordered: Floats = means.loc[list(methods)].to_numpy(dtype=np.float64)
    return ordered


def _join_results(first: Results, second: Results) -> Results:
    difference = first.settings.difference(second.settings)
    if difference:
        raise UsageError(
            f"results of the suite '{first.settings.suite}' can be joined only when they were made "
            f"alike, but got {difference}: report them apart, or name the suites differently",
            rule="equal-settings",
            field="results",
            value=difference,
        )
    twice = first.runs & second.runs
    if twice:
        task, method, seed = min(twice)
        raise UsageError(
            f"a run may stand in one file only, but method '{method}' on task '{task}' with seed "
            f"{seed} stands in two: leave one file out",
            rule="repeated-run",
            field="results",
            value=(method, task, seed),
        )
    rows = pd.concat([first.rows, second.rows], ignore_index=True)
    return replace(first, rows=rows, pools={**first.pools, **second.pools})


def _check(path: Path, metadata: Mapping[str, Any], rows: pd.DataFrame) -> None:
    version = metadata.get("version")
    if version is None:
        raise ExperienceError(
            f"results must be written by `foretune bench run`, but '{path}' is another Parquet "
            "file: give the file named by --out",
            rule="not-results",
            field="results",
            value=path,
        )
    if version > FORMAT_VERSION:
        raise ExperienceError(
            f"results must be of version {FORMAT_VERSION} or older, but '{path}' has version "
            f"{version}: install a newer foretune",
            rule="results-version",
            field="results",
            value=version,
        )
    wanted = COLUMNS if metadata["settings"].get("curves") is None else ROW
    missing = [column for column in wanted if column not in rows.columns]
    if missing or rows.empty:
        raise ExperienceError(
            f"results must hold runs with the columns {', '.join(wanted)}, but '{path}' "
            f"{'lacks ' + ', '.join(missing) if missing else 'is empty'}: run the benchmark again",
            rule="results-columns",
            field="results",
            value=tuple(missing),
        )


def _difference_of_notes(mine: str | None, theirs: str | None) -> str:
    """Return `Settings.difference`, when all other settings are known to be equal.

    Runs that used no notes fit an older file, which does not say: under the same name, its split
    and its start needed no notes either.
    """
    if mine == theirs or {mine, theirs} == {None, ""}:
        return ""
    if mine is None or theirs is None:
        return "settings that do not say which split, initial designs or meta-features were used"
    return "another content of the split, the initial designs or the meta-features"


def _format_setting(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple | list) else str(value)
