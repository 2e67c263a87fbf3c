"""The tables of a live build: a folder of files, each read once and kept for the workers."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path

from foretune._base.files import write_text
from foretune._base.names import quote_names
from foretune._base.progress import SILENT, Progress, track
from foretune.errors import UsageError
from foretune.tables import (
    Task,
    description,
    fingerprint,
    read_frame,
    read_table,
    table_name,
)

SUFFIXES = (".csv", ".tsv", ".parquet", ".pq", ".dat", ".arff")
LEAST_CLASS = 8
"""Rows of classes with fewer members are left out, because they cannot be in every fold."""
INDEX = ".csv"


@dataclass(frozen=True, slots=True)
class TaskTable:
    """A table that workers can open."""

    name: str
    path: str
    """The prepared file."""
    fingerprint: str
    meta_features: dict[str, float]
    version: str
    """Which file it was made from, and with which settings."""


def read_tasks(
    folder: Path,
    target: str,
    task: Task,
    *,
    kept: Path,
    most_rows: int,
    seed: int,
    progress: Progress = SILENT,
) -> list[TaskTable]:
    """Read the tables of a folder, and keep each as a file in `kept`.

    target: the name of the target's column, the same in all tables; or the name of a CSV file with
        the columns `name` and `target`, and perhaps `kind`. Then only tables that it names count.
    most_rows: the number of rows that are drawn from larger tables.
    """
    targets = _targets(folder, target, task)
    kept.mkdir(parents=True, exist_ok=True)
    tables = []
    for name, (path, column) in track(targets.items(), progress, "reading tables", len(targets)):
        place = kept / f"{sha256(name.encode()).hexdigest()[:24]}.npz"
        version = _version(path, column, most_rows, seed)
        found = _read_note(place.with_suffix(".json"))
        if found is None or found.version != version or not place.exists():
            found = _prepare(name, path, column, task, place, most_rows, seed, version)
        tables.append(found)
    return tables


def _targets(folder: Path, target: str, task: Task) -> dict[str, tuple[Path, str]]:
    """Return the file and the target of each table, by the table's name."""
    if not folder.is_dir():
        raise UsageError(
            f"--tasks must be a folder of tables or a .json file, but '{folder}' is neither: "
            "correct the path",
            rule="no-tasks",
            field="tasks",
            value=str(folder),
        )
    index = _index_file(folder, target)
    files = sorted(
        each
        for each in folder.iterdir()
        if each.suffix.lower() in SUFFIXES and not (index and each.samefile(index))
    )
    named = _by_name(files)
    if index is None:
        found = {name: (path, target) for name, path in named.items()}
    else:
        wanted = _read_index(index, task)
        found = {name: (named[name], column) for name, column in wanted.items() if name in named}
    if not found:
        raise UsageError(
            f"a folder of tasks must hold tables for {task} ({', '.join(SUFFIXES)}), but "
            f"'{folder}' holds none{'' if index is None else f' of those in {index.name}'}: name "
            "another folder",
            rule="no-tasks",
            field="tasks",
            value=str(folder),
        )
    return found


def _by_name(files: Sequence[Path]) -> dict[str, Path]:
    named: dict[str, Path] = {}
    for path in files:
        other = named.setdefault(table_name(path), path)
        if other is not path:
            raise UsageError(
                "the tables of a folder must have different names, endings apart, but there are "
                f"{quote_names([other.name, path.name])}: rename or remove one",
                rule="repeated-table",
                field="tasks",
                value=path.name,
            )
    return named


def _index_file(folder: Path, target: str) -> Path | None:
    """Return the file that names the targets; None if `target` is the name of a column."""
    if not target.endswith(INDEX):
        return None
    for path in (folder / target, Path(target)):
        if path.is_file():
            return path
    raise UsageError(
        f"--target must be a column, or a CSV file with the columns name and target, but there is "
        f"no file '{target}' in '{folder}' or here: correct its name",
        rule="no-index",
        field="target",
        value=target,
    )


def _read_index(path: Path, task: Task) -> Mapping[str, str]:
    """Return the target of each table that the index names for this task."""
    frame = read_frame(path)
    missing = [name for name in ("name", "target") if name not in frame.columns]
    if missing:
        raise UsageError(
            f"an index of tables must have the columns name and target, but '{path}' lacks "
            f"{quote_names(missing)}: add them",
            rule="index-columns",
            field="target",
            value=tuple(missing),
        )
    if "kind" in frame.columns:
        frame = frame[frame["kind"].astype(str) == str(task)]
    return dict(zip(frame["name"].astype(str), frame["target"].astype(str), strict=True))


def _version(path: Path, target: str, most_rows: int, seed: int) -> str:
    file = path.stat()
    whole = [str(path.absolute()), file.st_size, file.st_mtime_ns, target, most_rows, seed]
    return json.dumps(whole)


def _read_note(note: Path) -> TaskTable | None:
    try:
        return TaskTable(**json.loads(note.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def _prepare(
    name: str,
    path: Path,
    target: str,
    task: Task,
    place: Path,
    most_rows: int,
    seed: int,
    version: str,
) -> TaskTable:
    """Read a table as `fit` does, and keep it as a file."""
    try:
        table = read_table(path, target, task=task).table
        table = table.without_rare_classes(LEAST_CLASS).sample(most_rows, seed=seed)
    except UsageError as error:
        # Among many files, the one to mend must be named.
        raise UsageError(
            f"'{path}' cannot be a task: {error}; or take the file out of the folder",
            rule="unusable-table",
            field="tasks",
            value=str(path),
        ) from error
    # A note is never beside a table that it does not describe.
    note = place.with_suffix(".json")
    note.unlink(missing_ok=True)
    table.save(place)
    made = TaskTable(name, str(place), fingerprint(table), description(table), version)
    write_text(note, json.dumps(asdict(made)))
    return made
