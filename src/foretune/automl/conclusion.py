"""From trials to a model: the best configuration, or a blend of the best, fitted to all rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from foretune.automl.blend import blend
from foretune.automl.datasets import Table, Task
from foretune.automl.members import Member, refit
from foretune.automl.model import Model
from foretune.automl.plan import Plan
from foretune.automl.scores import Predictions, scorer
from foretune.automl.search import predictions_path, ranked
from foretune.errors import UsageError
from foretune.experience.naming import listed
from foretune.run.study import StudyTrial

CANDIDATES_A_MEMBER = 5
"""A blend of K members is chosen among the best 5 K trials."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """A trial that is part of the model."""

    trial: StudyTrial
    weight: float


@dataclass(frozen=True)
class Conclusion:
    """What the trials come to."""

    best: StudyTrial
    members: tuple[Chosen, ...]
    model: Model
    blended: float | None = None
    """What the blend scores on out-of-fold predictions; None where it is one pipeline."""


def concluded(
    plan: Plan,
    table: Table,
    trials: Sequence[StudyTrial],
    *,
    target: str,
    ensemble: int = 1,
    predictions: Path | None = None,
    about: Mapping[str, Any] | None = None,
) -> Conclusion:
    """The model of the best trial, or of at most `ensemble` trials that do best together.

    table: all rows. predictions: the folder of out-of-fold predictions.
    """
    best = ranked(trials, plan)
    if not best:
        reasons = sorted({trial.reason for trial in trials if trial.reason})
        raise UsageError(
            f"a model needs a trial that succeeded, but none of {len(trials)} did "
            f"({'; '.join(reasons[:3]) or 'none has ended'}): allow more time or memory a trial"
        )
    members, blended = (Chosen(best[0], 1.0),), None
    if ensemble > 1 and predictions is not None:
        members, blended = _blended(plan, best, ensemble, predictions)
    fitted = tuple(_fitted(chosen, table, plan.protocol.seed) for chosen in members)
    model = Model.of(table, fitted, target=target, metric=plan.metric.name, about=about)
    return Conclusion(best[0], members, model, blended)


def _blended(
    plan: Plan, best: Sequence[StudyTrial], most: int, folder: Path
) -> tuple[tuple[Chosen, ...], float | None]:
    kept = [
        (trial, predictions_path(folder, trial.config))
        for trial in best[: CANDIDATES_A_MEMBER * most]
    ]
    kept = [(trial, path) for trial, path in kept if path.exists()]
    if len(kept) < 2:
        return (Chosen(best[0], 1.0),), None
    stacked = np.stack([np.load(path, allow_pickle=False).astype(np.float64) for _, path in kept])
    rows = np.concatenate([held for _, held in plan.protocol.splits(plan.table)])
    found = blend(stacked, plan.table.y[rows], plan.metric.name, plan.table.task, most=most)
    members = tuple(
        Chosen(trial, float(weight))
        for (trial, _), weight in zip(kept, found.weights, strict=True)
        if weight > 0
    )
    return members, found.score


def _fitted(chosen: Chosen, table: Table, seed: int) -> Member:
    return replace(refit(chosen.trial.config, table, seed=seed), weight=chosen.weight)


def score_on(model: Model, frame: pd.DataFrame) -> float:
    """The model's metric on a table with a known target; rows without one are left out."""
    known = frame[frame[model.target].notna()].reset_index(drop=True)
    if known.empty:
        raise UsageError(
            f"a test table needs rows with a known '{model.target}', but it has none: add them"
        )
    score = scorer(model.metric, model.task)
    if model.task is Task.REGRESSION:
        y = known[model.target].to_numpy(dtype=np.float64)
        return score.score(Predictions(y, model.predict(known)))
    codes = {name: code for code, name in enumerate(model.classes)}
    texts = [str(value) for value in known[model.target]]
    new = sorted(set(texts) - set(codes))
    if new:
        raise UsageError(
            f"a test table must have the classes of the table of the fit, but '{model.target}' "
            f"has {listed(new)} besides: leave those rows out"
        )
    y = np.array([codes[text] for text in texts], dtype=np.float64)
    certain = model.predict_proba(known)
    return score.score(Predictions(y, certain.argmax(axis=1).astype(np.float64), certain))
