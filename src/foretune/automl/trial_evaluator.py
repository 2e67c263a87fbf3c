"""Evaluates the configuration of a trial, in this process or in a worker process."""

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

from foretune.automl.evaluation import Protocol, evaluate
from foretune.automl.out_of_fold import save_predictions
from foretune.automl.worker_libraries import WORKER_MODULES
from foretune.automl.worker_tables import load_libraries, open_table
from foretune.tables import Table

Config: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class InMemoryEvaluator:
    """Evaluates configurations on a table in memory."""

    libraries: ClassVar = WORKER_MODULES
    table: Table
    protocol: Protocol
    predictions: Path | None = None
    """The folder for out-of-fold predictions, if the model may be a blend."""

    def prepare(self) -> None:
        """Load the libraries while the worker starts."""
        load_libraries()

    def __call__(self, config: Config) -> dict[str, float]:
        """Return the values of all metrics."""
        # `Path.is_dir` would raise if this user may not look into the folder.
        folder = self.predictions if self.predictions and os.path.isdir(self.predictions) else None
        score = evaluate(config, self.table, self.protocol, keep_predictions=folder is not None)
        if folder is not None and score.predictions is not None:
            # A full disk, or a machine that does not share the folder, must not fail the trial.
            with suppress(OSError):
                save_predictions(folder, config, score.predictions)
        return score.values


@dataclass(frozen=True, slots=True)
class TableFileEvaluator:
    """Evaluates configurations on a table in a file, which each worker process opens once."""

    libraries: ClassVar = WORKER_MODULES
    table: Path
    protocol: Protocol
    predictions: Path | None = None

    def prepare(self) -> None:
        """Load the libraries and the table while the worker starts."""
        load_libraries()
        open_table(self.table)

    def __call__(self, config: Config) -> dict[str, float]:
        """Return the values of all metrics."""
        return InMemoryEvaluator(open_table(self.table), self.protocol, self.predictions)(config)
