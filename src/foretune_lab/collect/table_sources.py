"""The sources of the tables of a collection: the catalogue, or a folder of files."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from foretune.errors import UsageError
from foretune.plugins import quote_names
from foretune.tables import Table, Task, read_parts, read_table, table_name
from foretune_lab.collect import catalogue

CATALOGUE = "catalogue:"
SUFFIXES = (".csv", ".tsv", ".parquet", ".pq", ".dat", ".arff")


@dataclass(frozen=True, slots=True)
class TableSource:
    """A table that has not been read yet."""

    name: str
    family: str
    """The family, equal for variants of one dataset."""
    load: Callable[[], Table]
    version: str = ""
    """The version of the source. If it differs, a table that was prepared before is out of date."""


def sources(given: str, task: Task, *, target: str | None = None) -> list[TableSource]:
    """Return the tables that `given` names: `catalogue:GROUP`, `catalogue:NAME,NAME`, or a folder.

    target: the column to predict in the files of a folder. Default: the last one.
    """
    is_listed = given.startswith(CATALOGUE)
    if is_listed:
        names = given.removeprefix(CATALOGUE).split(",")
        entries = [entry for name in names for entry in catalogue.group(name)]
        found = [
            TableSource(entry.name, entry.family, partial(catalogue.load, entry))
            for entry in dict.fromkeys(entries)
            if entry.task is task
        ]
    else:
        files = sorted(f for f in Path(given).glob("*") if f.suffix.lower() in SUFFIXES)
        _check_names(files)
        found = [
            TableSource(
                table_name(f), table_name(f), partial(_read, f, target, task), _version(f, target)
            )
            for f in files
        ]
    if not found:
        what = "holds none" if is_listed or Path(given).is_dir() else "is no folder"
        raise UsageError(
            f"datasets must be 'catalogue:GROUP' or a folder of CSV or Parquet files for "
            f"{task}, but '{given}' {what}: choose another",
            rule="no-datasets",
            field="datasets",
            value=given,
        )
    return found


def _check_names(files: Sequence[Path]) -> None:
    """Refuse files of the same name, because one would be taken for the other."""
    named: dict[str, list[str]] = {}
    for file in files:
        named.setdefault(table_name(file), []).append(file.name)
    for same in named.values():
        if len(same) > 1:
            raise UsageError(
                "the tables of a folder must have different names, endings apart, but there are "
                f"{quote_names(same)}: rename or remove all but one",
                rule="repeated-table",
                field="datasets",
                value=tuple(same),
            )


def _version(path: Path, target: str | None) -> str:
    """Return the version of a file and of its target, without reading the file."""
    file = path.stat()
    return json.dumps([str(path.absolute()), file.st_size, file.st_mtime_ns, target])


def _read(path: Path, target: str | None, task: Task) -> Table:
    # The file may be large, and its first part has the name of its last column.
    target = target or str(next(read_parts(path)).columns[-1])
    try:
        # As for a fit, so that data which is refused there is not evaluated here.
        return read_table(path, target, task=task).table
    except UsageError as error:
        # Among many files, the one to mend must be named.
        raise UsageError(
            f"'{path}' cannot be evaluated: {error}",
            rule="unusable-table",
            field="datasets",
            value=path,
        ) from error
