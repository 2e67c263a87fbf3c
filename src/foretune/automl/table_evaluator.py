"""What a worker process does with one trial of a collection."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

from foretune.automl.evaluation import Protocol, evaluate
from foretune.automl.spaces import OPTIONAL
from foretune.tables.table import Table

LIBRARIES = ("sklearn.compose", "sklearn.ensemble", "sklearn.neural_network", *OPTIONAL)
OPEN_TABLES = 8

TableJob: TypeAlias = tuple[str, Mapping[str, Any]]
"""A task and a configuration."""


@dataclass(frozen=True, slots=True)
class TableTrial:
    """Evaluates trials on the prepared tables of a folder."""

    folder: Path
    protocol: Protocol

    def prepare(self) -> None:
        """Load the libraries while the worker starts."""
        load_libraries()

    def __call__(self, trial: TableJob) -> dict[str, float]:
        """The values of all metrics."""
        task, config = trial
        return evaluate(config, open_table(table_path(self.folder, task)), self.protocol).values


def load_libraries() -> None:
    """Import what trials need, so that the first one is not charged for it."""
    for library in LIBRARIES:
        if find_spec(library) is not None:
            import_module(library)


def table_path(folder: Path, task: str) -> Path:
    """The file of a task's table. It depends on a hash, so a name may hold any characters."""
    return folder / f"{sha256(task.encode()).hexdigest()[:24]}.npz"


@lru_cache(maxsize=OPEN_TABLES)
def open_table(path: Path) -> Table:
    """A table by its file, kept open for the next trial."""
    return Table.open(path)
