"""Reading the folders of Ray Tune: each experiment is a task, each trial an evaluation.

A trial has `params.json` and `result.json`, which are plain JSON. `progress.csv` is read if there
is no `result.json`. The state files of an experiment hold pickled objects and are not opened.
"""

import csv
import json
import os
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from foretune._base.progress import SILENT, Progress, track
from foretune.errors import ExperienceError
from foretune.experience import Experience
from foretune.stores.files.archive import existing
from foretune.stores.files.run_table import (
    LoggedRun,
    RunReports,
    build_run_experience,
    check_columns,
    flatten_config,
)
from foretune.stores.formats import NO_COLUMNS, TableColumns

PARAMS, RESULTS, TABLE, ERROR = "params.json", "result.json", "progress.csv", "error.txt"
CONFIG, SECONDS, STEP = "config", "time_total_s", "training_iteration"
PART = "{...}"
"""The value of a hyperparameter that is nested here, while other trials have a value or None."""


def read(
    source: Path | str, *, columns: TableColumns = NO_COLUMNS, progress: Progress = SILENT
) -> Experience:
    """Read the trials in the folder of an experiment, or in one with several of them.

    columns: `values` names the metrics that count. `space` is the file of the space; without it,
        the space is inferred. The last report of a trial is its result, and all reports are its
        learning curve. A trial that raised counts as failed. One that never reported has not ended
        and is left out.
    """
    check_columns(columns, "ray", task=False)
    root = existing(source)
    folders = sorted(path.parent for path in root.rglob(PARAMS))
    if not folders:
        raise ExperienceError(
            f"results of Ray Tune are folders with a file {PARAMS}, but '{root}' has none: give "
            "the folder of an experiment, such as ~/ray_results/NAME",
            rule="no-ray-results",
            value=str(root),
        )
    tasks = _tasks({folder.parent for folder in folders}, root)
    reading = track(folders, progress, "reading", len(folders))
    configs = [_object((folder / PARAMS).read_bytes(), folder / PARAMS) for folder in reading]
    runs = [
        _run(folder, tasks[folder.parent], config, columns.values)
        for folder, config in zip(folders, _flat(configs), strict=True)
    ]
    return build_run_experience(runs, columns, str(source))


def _tasks(experiments: Collection[Path], root: Path) -> dict[Path, str]:
    """Return the name of each experiment: its folder, or its path from `root` if names repeat."""
    names = {path: _text(path.resolve().name) for path in experiments}
    times = Counter(names.values())
    return {
        path: name if times[name] == 1 else _text(path.relative_to(root).as_posix())
        for path, name in names.items()
    }


def _text(path: str) -> str:
    """Return a path as text. Bytes that are no characters are written out, as in caf\\xe9."""
    return os.fsencode(path).decode(errors="backslashreplace")


def _flat(configs: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the configurations with one name for each value.

    tune.choice([None, {...}]) becomes a choice under its own name, on which its parts depend.
    """
    flat = [flatten_config(config) for config in configs]
    parts = [set(_parts(config)) for config in configs]
    chosen = set().union(*flat) & set().union(*parts)
    return [
        config | dict.fromkeys(sorted(chosen & own), PART)
        for config, own in zip(flat, parts, strict=True)
    ]


def _parts(config: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """Yield the names of nested parts, as `flatten_config` joins them."""
    for name, value in config.items():
        if isinstance(value, Mapping):
            yield f"{prefix}{name}"
            yield from _parts(value, f"{prefix}{name}/")


def _run(folder: Path, task: str, config: Mapping[str, Any], metrics: Collection[str]) -> LoggedRun:
    failed = (folder / ERROR).exists()
    told = list(_reports(folder))
    values = told[-1] if told else {}
    plain = {name: value for name, value in config.items() if _is_plain(value)}
    return LoggedRun.of(
        task,
        plain,
        values,
        failed=failed,
        seconds=values.get(SECONDS, float("nan")),
        ended=failed or bool(told),
        reports=_at_steps(told, metrics),
    )


def _at_steps(told: Sequence[Mapping[str, float]], metrics: Collection[str]) -> RunReports:
    """Sort reports by step. After a trial was restored, the later of two equal steps counts."""
    with_step = [(report[STEP], report) for report in told if STEP in report]
    return RunReports(
        {
            name: {step: report[name] for step, report in with_step if name in report}
            for name in metrics
        },
        {step: report[SECONDS] for step, report in with_step if SECONDS in report},
    )


def _reports(folder: Path) -> Iterator[dict[str, float]]:
    """Yield the numbers of each whole report. A line that a crash cut short is skipped."""
    results = folder / RESULTS
    if not results.exists():
        yield from _reports_in_table(folder / TABLE)
        return
    for line in results.read_bytes().splitlines():
        try:
            told = _object(line, results)
        except ExperienceError:
            continue
        told.pop(CONFIG, None)
        # Names of nested numbers are joined as Ray Tune joins them, like those of hyperparameters.
        numbers = flatten_config(told).items()
        yield {name: float(value) for name, value in numbers if _is_number(value)}


def _reports_in_table(path: Path) -> Iterator[dict[str, float]]:
    if not path.exists():
        return
    with path.open(encoding="utf-8", errors="replace", newline="") as lines:
        for row in csv.DictReader(lines):
            report = {}
            for name, cell in row.items():
                with suppress(TypeError, ValueError):
                    report[str(name)] = float(cell)
            yield report


def _object(text: bytes, path: Path) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ExperienceError(
            f"'{path}' must be JSON, but it is not: {error}", rule="not-json", value=str(path)
        ) from error
    if not isinstance(found, dict):
        raise ExperienceError(
            f"'{path}' must hold a JSON object, but it holds something else",
            rule="not-json-object",
            value=str(path),
        )
    return found


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_plain(value: object) -> bool:
    """Return whether a value can be one of a hyperparameter. Other lists are program settings."""
    if isinstance(value, list):
        return all(map(_is_plain, value))
    return isinstance(value, bool | int | float | str | None)
