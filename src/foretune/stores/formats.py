"""The table of importers, and the function that calls them.

An importer is a module with a function `read(source, *, progress, ...) -> Experience`. It is
imported when it is first used.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from foretune._base.names import suggestion
from foretune._base.progress import SILENT, Progress
from foretune.errors import ExperienceError, UsageError
from foretune.experience import Direction, Experience


@dataclass(frozen=True)
class TableColumns:
    """The meaning of a table's columns, or the metrics and the space of runs (`mlflow`, `ray`)."""

    task: str | None = None
    """The column that names the task."""
    values: Mapping[str, str] = field(default_factory=dict)
    """The columns of the metrics, each with "min" or "max". A column of lists holds learning
    curves; the last number of a list is the value."""
    config_column: str | None = None
    """The column with whole configurations as JSON. Without it, each hyperparameter has a
    column."""
    config_prefix: str | None = None
    """The prefix of the columns of hyperparameters. It is no part of the hyperparameters' names."""
    status: str | None = None
    """The column with the outcome: DONE, FAILED, TIMEOUT, STOPPED, or a state of another tool."""
    seconds: str | None = None
    """The column with the run time, or with lists of the seconds spent until each step."""
    step: str | None = None
    """The column of the steps of learning curves: lists like those of the metrics, or one number a
    row if each step has a row. Without it, the steps of lists are 1, 2, 3 and so on."""
    shorten: bool = False
    """Whether lists end with their last number. Otherwise a trial whose list ends without a number
    has failed."""
    fidelity: str | None = None
    """The column that says how much an evaluation was given, such as epochs or a share of rows."""
    space: Path | None = None
    """A JSON file of the search space. Without it, the space is inferred from the values."""
    ignored: Sequence[str] = ()
    """Columns that are no hyperparameters, if the space is inferred."""

    def __post_init__(self) -> None:
        if self.space is not None and self.ignored:
            raise UsageError(
                "columns can be ignored only if the space is inferred, but got a space and "
                f"'{self.ignored[0]}': remove it from the space",
                rule="ignored-beside-space",
                field="ignored",
                value=self.ignored[0],
            )
        if self.config_column is not None and self.config_prefix is not None:
            raise UsageError(
                "hyperparameters stand in one column or in several, but got the column "
                f"'{self.config_column}' and the prefix '{self.config_prefix}': give one of them",
                rule="config-column-and-prefix",
                field="config_column",
                value=self.config_column,
            )

    @property
    def in_use(self) -> list[str]:
        """The columns that have another meaning than a hyperparameter."""
        named = (self.task, *self.values, self.config_column, self.status, self.seconds)
        return [name for name in (*named, self.step, self.fidelity) if name is not None]


NO_COLUMNS = TableColumns()


def direction_of(column: str, given: str) -> Direction:
    """Return the direction that the user wrote for a metric."""
    try:
        return Direction(given)
    except ValueError:
        raise ExperienceError(
            f"a metric must be minimised or maximised, but '{column}' got '{given}': "
            "write min or max",
            rule="unknown-direction",
            field=column,
            value=given,
        ) from None


def check_ignore_names(ignored: Sequence[str], known: Sequence[str]) -> None:
    """Refuse to ignore a column that is not there."""
    for name in ignored:
        if name not in known:
            raise ExperienceError(
                f"what is ignored must be there, but '{name}' is not: {suggestion(name, known)}",
                rule="unknown-ignored",
                field="ignored",
                value=name,
            )


@dataclass(frozen=True)
class Importer:
    """A format that can be read."""

    name: str
    summary: str
    source: str
    """What the argument SOURCE is for this importer."""
    module: str
    options: tuple[str, ...] = ()
    """The keyword arguments of `import_experience` that it understands."""

    @property
    def read(self) -> Callable[..., Experience]:
        """The function that reads the format."""
        function: Callable[..., Experience] = import_module(self.module).read
        return function


_OWN_IMPORTERS: dict[str, Importer] = {
    importer.name: importer
    for importer in (
        Importer(
            "table",
            "one evaluation a row",
            "a CSV or Parquet file",
            "foretune.stores.files.evaluation_table",
            ("columns",),
        ),
        Importer(
            "optuna",
            "one task a study",
            "a storage URL or a journal file",
            "foretune.stores.optuna.study_reader",
            ("studies", "missing"),
        ),
        Importer(
            "mlflow",
            "one task an experiment",
            "a tracking URI",
            "foretune.stores.mlflow.reader",
            ("columns", "studies"),
        ),
        Importer(
            "ray",
            "one task an experiment of Ray Tune",
            "the folder of one experiment or of several",
            "foretune.stores.ray.reader",
            ("columns",),
        ),
    )
}
PLUGINS = "foretune.importers"
"""The group of entry points with which other packages add formats. Each entry is an `Importer`."""


class ImporterRegistry(Mapping[str, Importer]):
    """The formats that can be read: Foretune's own, then those of installed packages."""

    @cached_property
    def _all(self) -> dict[str, Importer]:
        others = sorted(entry_points(group=PLUGINS), key=lambda entry: entry.name)
        return {**_OWN_IMPORTERS, **{each.name: each.load() for each in others}}

    def __getitem__(self, name: str) -> Importer:
        return self._all[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)


IMPORTERS = ImporterRegistry()
"""All formats by name."""


def import_experience(
    kind: str,
    source: Path | str,
    *,
    columns: TableColumns = NO_COLUMNS,
    space_id: str | None = None,
    studies: Sequence[str] = (),
    missing: str | None = None,
    progress: Progress = SILENT,
) -> Experience:
    """Read `source`, which has the format `kind`.

    columns: what the columns mean (table); the metrics and the space (mlflow, ray).
    space_id: which search space to read (hpob).
    studies: which studies (optuna) or experiments (mlflow) to read; all if none is named.
    missing: what to do with trials that lack a value (optuna), as for `Experience.in_space`. By
        default they get the default value.
    """
    importer = IMPORTERS.get(kind)
    if importer is None:
        raise ExperienceError(
            f"a source must be of a known kind, but got '{kind}': choose one of "
            f"{', '.join(IMPORTERS)}",
            rule="unknown-source-kind",
            field="kind",
            value=kind,
        )
    options: dict[str, Any] = {
        "columns": columns,
        "space_id": space_id,
        "studies": studies,
        "missing": missing,
    }
    for name, value in options.items():
        if name not in importer.options and value and value != NO_COLUMNS:
            takers = ", ".join(i.name for i in IMPORTERS.values() if name in i.options)
            raise UsageError(
                f"the option '{name}' belongs to {takers}, but the kind is '{kind}': leave it out",
                rule="foreign-option",
                field=name,
                value=kind,
            )
    taken = {name: options[name] for name in importer.options}
    return importer.read(source, progress=progress, **taken)
