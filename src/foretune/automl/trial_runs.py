"""Searching a table: the trials, where they run, and which of them are best."""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from foretune._base.files import replace_file
from foretune._base.progress import SILENT, Progress
from foretune.automl.equivalent_configs import PipelineEquivalence
from foretune.automl.evaluation import EvaluationScore, evaluate
from foretune.automl.evaluation import Protocol as Scoring
from foretune.automl.knowledge.default_configs import customary, is_beyond
from foretune.automl.knowledge.knowledge import FitKnowledge
from foretune.automl.plan import DEFAULT_METHOD, FitOptions, FitPlan
from foretune.automl.table_evaluator import load_libraries, open_table
from foretune.experience.trial import Trial, best_first
from foretune.methods.auto.learn import PORTFOLIO_TRIALS
from foretune.methods.contracts import Prior, Target
from foretune.run.executor import Executor
from foretune.run.study import Study
from foretune.run.tuning_loop import SILENT_WATCH, Budget, Watch, tune
from foretune.search.optimizer import Optimizer
from foretune.search.registry import method
from foretune.space import Encoded
from foretune.tables.table import Table

Config: TypeAlias = dict[str, Any]
Runs: TypeAlias = Executor[Config, dict[str, float]]
"""Where trials run: in this process, in worker processes, or wherever else."""
Ending: TypeAlias = Literal["trials", "time", "exhausted", "stopped"]
"""Why a search ended; `stopped` is Ctrl-C."""


class StoppedBeforeAnyTrial(KeyboardInterrupt):
    """Ctrl-C before a trial had ended."""


@dataclass(frozen=True, slots=True)
class InMemoryEvaluator:
    """Evaluates configurations on a table in memory."""

    table: Table
    scoring: Scoring
    predictions: Path | None = None
    """The folder for out-of-fold predictions, where the model may be a blend."""

    def prepare(self) -> None:
        """Load the libraries while the worker starts."""
        load_libraries()

    def __call__(self, config: Config) -> dict[str, float]:
        """The values of all metrics."""
        # Not `Path.is_dir`, which raises where another user's folder may not be looked into.
        folder = self.predictions if self.predictions and os.path.isdir(self.predictions) else None
        score = evaluate(config, self.table, self.scoring, keep_predictions=folder is not None)
        if folder is not None:
            # A machine that does not share the folder, or whose disk is full, scores all the same.
            with suppress(OSError):
                keep_predictions(folder, config, score)
        return score.values


@dataclass(frozen=True, slots=True)
class TableFileEvaluator:
    """Evaluates configurations on a table in a file, which each worker process opens once."""

    table: Path
    scoring: Scoring
    predictions: Path | None = None

    def prepare(self) -> None:
        """Load the libraries and the table while the worker starts."""
        load_libraries()
        open_table(self.table)

    def __call__(self, config: Config) -> dict[str, float]:
        """The values of all metrics."""
        return InMemoryEvaluator(open_table(self.table), self.scoring, self.predictions)(config)


def keep_predictions(folder: Path, config: Config, score: EvaluationScore) -> None:
    """Write a trial's out-of-fold predictions, in one step."""
    if score.predictions is None:
        raise ValueError("the score holds no predictions")
    predictions = score.predictions.astype(prediction_dtype(score.predictions.shape[1]))

    def write(path: Path) -> None:
        with path.open("wb") as file:
            np.save(file, predictions, allow_pickle=False)

    replace_file(predictions_path(folder, config), write, is_private=True)


def prediction_dtype(columns: int) -> np.dtype[np.floating[Any]]:
    """The type of kept predictions: half as many digits are enough for probabilities, but numbers,
    a single column, may have a large offset.
    """
    return np.dtype(np.float32 if columns > 1 else np.float64)


def predictions_path(folder: Path, config: Config) -> Path:
    """Where the predictions of a configuration lie."""
    text = repr(sorted((name, repr(value)) for name, value in config.items()))
    return folder / f"{sha256(text.encode()).hexdigest()[:24]}.npy"


def rank_trials(trials: Sequence[Trial], plan: FitPlan) -> list[Trial]:
    """The trials that succeeded, the best first; of equals, the earlier one."""
    return best_first(trials, plan.metric)


@dataclass(frozen=True, slots=True)
class StartKnowledge:
    """What is known before the first trial."""

    prior: Prior
    start: Encoded | None
    """What is tried first, where that is not the method's own beginning."""
    meta_features: Mapping[str, float]
    """Of the table."""


def load_start_knowledge(
    wishes: FitOptions,
    knowledge: FitKnowledge | None,
    meta_features: Mapping[str, float],
    *,
    progress: Progress = SILENT,
) -> StartKnowledge:
    """What past datasets say about a table of these meta-features, by the method asked for."""
    chosen = method(wishes.method)
    if knowledge is None:
        return StartKnowledge(
            chosen.learn(None, seed=wishes.seed, progress=progress), None, meta_features
        )
    start = opening_configs(wishes, knowledge, meta_features)
    prior = knowledge.prior(chosen, seed=wishes.seed, progress=progress, begins=start is None)
    return StartKnowledge(prior, start, meta_features)


def opening_configs(
    wishes: FitOptions, knowledge: FitKnowledge, meta_features: Mapping[str, float]
) -> Encoded | None:
    """What the default method tries first: what suited datasets like this one, the cheapest first.

    Then what is customary, where few datasets were as large. None where the method has its own
    beginning, or nothing is known.
    """
    if wishes.method != DEFAULT_METHOD or knowledge.experience is None:
        return None
    found = knowledge.suggest(PORTFOLIO_TRIALS, meta_features)
    first = found.configs.take(np.argsort(found.seconds, kind="stable"))
    other = customary(first.space) if is_beyond(knowledge.experience, meta_features) else None
    return first if other is None else Encoded.concat([first, other])


def run_trials(
    plan: FitPlan,
    wishes: FitOptions,
    known: StartKnowledge,
    study: Study,
    runs: Runs,
    budget: Budget,
    *,
    watch: Watch = SILENT_WATCH,
) -> tuple[Ending, str]:
    """Run trials until the budget is used up or Ctrl-C is pressed; they are in the study.

    Returns why it ended, and what the method relied on. Ctrl-C before any trial has ended is
    passed on: there is nothing to make a model of.
    """
    target = Target(
        plan.space,
        (plan.metric.name,),
        meta_features=known.meta_features,
        effect=PipelineEquivalence.on(plan.table),
    )
    chosen = method(wishes.method)
    optimizer = Optimizer(target, chosen, known.prior, seed=wishes.seed, start=known.start)
    try:
        ending: Ending = tune(study, optimizer, runs, budget, watch=watch)
    except KeyboardInterrupt:
        if not any(trial.is_over for trial in study.trials()):
            raise StoppedBeforeAnyTrial from None
        ending = "stopped"
    return ending, optimizer.explain()
