"""Evaluates the configuration of a trial, in this process or in a worker process."""

import math
import os
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

from foretune.automl.estimators.fitted_pipeline import refit
from foretune.automl.evaluation import EvaluationScore, FoldEvaluation, Protocol
from foretune.automl.final_model.fold_models import save_fold_models
from foretune.automl.knowledge.default_configs import CHOICE
from foretune.automl.out_of_fold import save_predictions
from foretune.automl.worker_libraries import WORKER_MODULES
from foretune.automl.worker_tables import load_libraries, open_table
from foretune.errors import ForetuneError
from foretune.run.running_trial import RunningTrial
from foretune.tables import Table

Config: TypeAlias = dict[str, Any]
STEADY = frozenset(
    {"elastic_net", "extra_trees", "knn", "lda", "logistic", "naive_bayes", "rf", "svm"}
)
"""The estimators whose pipelines hardly change with a few rows. The mean of several gains little,
so one pipeline learns from all rows at the end of the trial, and predicts several times faster.
Boosting and networks gain from the mean, and the rows of their folds end their learning."""


@dataclass(frozen=True, slots=True)
class InMemoryEvaluator:
    """Evaluates configurations on a table in memory."""

    libraries: ClassVar = WORKER_MODULES
    table: Table
    protocol: Protocol
    predictions: Path | None = None
    """The folder for out-of-fold predictions, if the model may be a blend."""
    keeps_models: bool = False
    """Whether that folder gets the pipelines of the folds too, so that a model is made of them."""
    fold_seconds: float | None = None
    """When a pipeline that learns in steps ends, if it is not finished before."""

    def prepare(self) -> None:
        """Load the libraries while the worker starts."""
        load_libraries()

    def __call__(self, config: Config, trial: RunningTrial | None = None) -> dict[str, float]:
        """Return the values of all metrics. The trial reports each fold, and may end after it."""
        # `Path.is_dir` would raise if this user may not look into the folder.
        folder = self.predictions if self.predictions and os.path.isdir(self.predictions) else None
        evaluation = FoldEvaluation(
            config,
            self.table,
            self.protocol,
            is_kept=folder is not None,
            fit=partial(refit, seconds=self.fold_seconds),
        )
        for place in range(len(evaluation.splits)):
            value = evaluation.run_fold(place)[self.protocol.metrics[0]]
            if trial is not None and len(evaluation.splits) > 1 and math.isfinite(value):
                trial.report(place + 1, value)
                if trial.should_stop():
                    return evaluation.score().values
        score = evaluation.score()
        if folder is not None:
            self._keep(folder, config, score)
        return score.values

    def _keep(self, folder: Path, config: Config, score: EvaluationScore) -> None:
        """Write what a final model is made of; a trial does not fail if that is not possible.

        The disk may be full, and a library may write pipelines that no model file can hold.
        """
        if score.predictions is None:
            return
        if self.keeps_models:
            members, seconds = score.members, score.predict_seconds
            if str(config.get(CHOICE)) in STEADY:
                members = (refit(config, self.table, seed=self.protocol.seed),)
                seconds /= len(score.members)
            with suppress(OSError, ForetuneError):
                columns = self.table.x.shape[1]
                save_fold_models(folder, members, columns=columns, predict_seconds=seconds)
        with suppress(OSError):
            save_predictions(folder, config, score.predictions)


@dataclass(frozen=True, slots=True)
class TableFileEvaluator:
    """Evaluates configurations on a table in a file, which each worker process opens once."""

    libraries: ClassVar = WORKER_MODULES
    table: Path
    protocol: Protocol
    predictions: Path | None = None
    keeps_models: bool = False
    fold_seconds: float | None = None

    def prepare(self) -> None:
        """Load the libraries and the table while the worker starts."""
        load_libraries()
        open_table(self.table)

    def __call__(self, config: Config, trial: RunningTrial | None = None) -> dict[str, float]:
        """Return the values of all metrics."""
        table = open_table(self.table)
        here = InMemoryEvaluator(
            table, self.protocol, self.predictions, self.keeps_models, self.fold_seconds
        )
        return here(config, trial)
