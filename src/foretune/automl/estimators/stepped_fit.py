"""Fits a pipeline whose estimator learns step by step."""

from dataclasses import replace
from typing import Any

import numpy as np

from foretune._base.arrays import Bools
from foretune.automl.estimators.stepped import LearningRows, StepLimits, SteppedFit, StepTrainer
from foretune.automl.estimators.stepped_boosters import (
    CatBoostTrainer,
    HistTrainer,
    LightGBMTrainer,
    XGBoostTrainer,
)

HELD_EACH = 6
"""One row of so many judges the steps if no other rows do."""
TRAINERS: dict[str, type[StepTrainer]] = {
    "CatBoostClassifier": CatBoostTrainer,
    "CatBoostRegressor": CatBoostTrainer,
    "HistGradientBoostingClassifier": HistTrainer,
    "HistGradientBoostingRegressor": HistTrainer,
    "LGBMClassifier": LightGBMTrainer,
    "LGBMRegressor": LightGBMTrainer,
    "XGBClassifier": XGBoostTrainer,
    "XGBRegressor": XGBoostTrainer,
}
"""The trainer of each class of estimators, by its name, so that no library is imported here."""
NETWORKS = ("NetworkClassifier", "NetworkRegressor")


def trainer_of(estimator: Any) -> StepTrainer | None:
    """Return the trainer of an estimator; None if it does not learn in steps."""
    name = type(estimator).__name__
    if name in NETWORKS:
        from foretune.automl.estimators.network import NetworkTrainer  # needs scikit-learn

        return NetworkTrainer()
    return TRAINERS[name]() if name in TRAINERS else None


def fit_in_steps(
    pipeline: Any, learning: LearningRows, limits: StepLimits, *, seed: int
) -> SteppedFit:
    """Fit a pipeline whose estimator learns in steps, in place.

    Without judging rows and without a number of steps, a part of the rows finds the number first.
    """
    trainer = trainer_of(pipeline[-1])
    if trainer is None:
        raise TypeError("the estimator does not learn in steps")
    if limits.judging is None and limits.steps is None:
        from sklearn.base import clone

        first, held = _hold_some_out(learning, seed)
        half = None if limits.seconds is None else limits.seconds / 2
        trying = StepLimits(held, seconds=half)
        found = fit_in_steps(clone(pipeline), first, trying, seed=seed)
        limits = StepLimits(steps=found.steps, seconds=half)
    x, judging = learning.x, limits.judging
    if len(pipeline) > 1:
        x = pipeline[:-1].fit_transform(x, learning.y)
        judging = judging and replace(judging, x=pipeline[:-1].transform(judging.x))
    fit = trainer.fit(
        pipeline[-1], replace(learning, x=x), StepLimits(judging, limits.steps, limits.seconds)
    )
    pipeline.steps[-1] = (pipeline.steps[-1][0], fit.estimator)
    return fit


def _hold_some_out(rows: LearningRows, seed: int) -> tuple[LearningRows, LearningRows]:
    """Return most of the rows, and those that judge steps; rows of rare classes are learnt from."""
    order = np.random.default_rng(seed).permutation(len(rows.y))
    order = order[np.argsort(rows.y[order], kind="stable")]
    place = np.arange(len(order))
    if np.issubdtype(np.asarray(rows.y).dtype, np.integer):
        # Places are counted within each class, so that every class is learnt.
        place = place - np.searchsorted(rows.y[order], rows.y[order])
    is_held = np.zeros(len(order), dtype=np.bool_)
    is_held[order[place % HELD_EACH == HELD_EACH - 1]] = True
    return _select(rows, ~is_held), _select(rows, is_held)


def _select(rows: LearningRows, chosen: Bools) -> LearningRows:
    weights = None if rows.weights is None else rows.weights[chosen]
    return LearningRows(rows.x[chosen], rows.y[chosen], weights, rows.codes)
