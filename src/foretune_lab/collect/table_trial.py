"""A trial of a collection: one configuration on one prepared table, in a worker process."""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeAlias

from foretune.automl import Protocol, evaluate, load_libraries, open_table

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
        """Return the values of all metrics."""
        task, config = trial
        return evaluate(config, open_table(table_path(self.folder, task)), self.protocol).values


def table_path(folder: Path, task: str) -> Path:
    """Return the file of a task's table. Its name is a hash, because a task may have any name."""
    return folder / f"{sha256(task.encode()).hexdigest()[:24]}.npz"
