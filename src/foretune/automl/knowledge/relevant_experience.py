"""Finds the part of past experience that speaks for one table.

It selects by the metric, by what the tasks have tried, and by how similar and how large they are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.stats import rankdata

from foretune._base.arrays import Floats
from foretune.errors import ExperienceError
from foretune.experience import Experience, Metric, Status
from foretune.experience.selection import take_rows
from foretune.methods.zero_shot.table import LEAST_SHARE, LossTable, loss_table
from foretune.numerics.greedy import greedy, missing_as_worst
from foretune.space import Encoded

STAND_INS = {
    "f1_macro": "balanced_accuracy",
    "matthews": "balanced_accuracy",
    "brier": "log_loss",
    "mae": "rmse",
    "mape": "rmse",
    "median_absolute_error": "rmse",
}
"""For each metric, the other one that orders pipelines most similarly."""
ROWS = "log_rows"
"""The meta-feature for the size of a table."""
FEW = 5
"""A table is beyond experience if fewer past datasets than this have as many rows."""
BANDWIDTH = 0.15
"""The width of the similarity, a little less than the distance of most datasets to their nearest
one (decision 013)."""
NORMALISATION = "rank"


def stand_in(metric: str, recorded: Sequence[str]) -> str:
    """Return the recorded metric to use for `metric`: itself, the most similar, or the first."""
    nearest = STAND_INS.get(metric, recorded[0])
    return metric if metric in recorded else nearest if nearest in recorded else recorded[0]


def by_metric(experience: Experience, metric: Metric) -> Experience:
    """Return the evaluations with one metric; a task that lacks it uses another one instead.

    Methods compare values within a task only, so tasks may be measured by different metrics. Rows
    without a useful value are left out, and so are splits.
    """
    recorded = [each.name for each in experience.metrics]
    first = recorded.index(stand_in(metric.name, recorded))
    order = [first, *(column for column in range(len(recorded)) if column != first)]
    losses = np.full(len(experience), np.nan)
    for task in experience.tasks:
        rows = experience.rows(task)
        of_task = experience.losses[rows][:, order]
        measured = np.flatnonzero(np.isfinite(of_task).any(axis=0))
        if len(measured):
            losses[rows] = of_task[:, measured[0]]
    useful = np.flatnonzero(np.isfinite(losses) | (experience.status != Status.DONE))
    if not np.isfinite(losses).any():
        raise ExperienceError(
            "experience must hold an evaluation that succeeded, but none of "
            f"{len(experience)} did: collect more",
            rule="no-success",
            value=len(experience),
        )
    values = (losses * metric.sign)[:, None]
    chosen = take_rows(replace(experience, metrics=(metric,), values=values, splits={}), useful)
    return chosen.only(experience.tasks[index] for index in np.unique(chosen.task_index))


def select_comparable(experience: Experience) -> Experience:
    """Select the tasks that have tried most of the common configurations; all if there are none.

    A search tries configurations of its own, and few other tasks have them, so it says nothing
    about the common ones.
    """
    tried = np.zeros((len(experience.tasks), len(experience.configs)), dtype=bool)
    tried[experience.task_index, experience.config_index] = True
    counts = tried.sum(axis=0)
    common = tried[:, counts >= LEAST_SHARE * counts.max()]
    tasks = np.flatnonzero(common.mean(axis=1) >= LEAST_SHARE)
    return experience.only(experience.tasks[task] for task in tasks) if len(tasks) else experience


def is_beyond(experience: Experience, features: Mapping[str, float]) -> bool:
    """Return whether a table with these meta-features is larger than nearly all past datasets."""
    if ROWS not in features:
        return False
    known = [of[ROWS] for of in experience.meta_features.values() if ROWS in of]
    return sum(rows >= features[ROWS] for rows in known) < FEW


@dataclass(frozen=True, slots=True)
class Recommendation:
    """Configurations for a new dataset, in order, with their results on similar datasets."""

    configs: Encoded
    places: Floats
    """(k,): the share of pipelines that did better, as a mean over similar datasets."""
    together: Floats
    """(k,): the same share for the best of the first 1, 2, ..., k configurations."""
    seconds: Floats
    """(k,): the mean over similar datasets that measured the time."""


def task_similarity(experience: Experience, features: Mapping[str, float]) -> Floats:
    """Return the weight (tasks,) of each past task for a table with these features; the sum is 1.

    Distances use ranks because meta-features have different scales. Without features, all weights
    are equal.
    """
    known = sorted(set(features) & {n for of in experience.meta_features.values() for n in of})
    if not known:
        return np.full(len(experience.tasks), 1.0 / len(experience.tasks))
    rows = [experience.meta_features.get(task, {}) for task in experience.tasks]
    table = np.array([[of.get(name, np.nan) for name in known] for of in [features, *rows]])
    middle = np.nan_to_num(np.nanmedian(table, axis=0))
    ranks = rankdata(np.where(np.isnan(table), middle, table), axis=0) / len(table)
    squares = np.mean((ranks[1:] - ranks[0]) ** 2, axis=1)
    weights = np.exp(-0.5 * (squares - squares.min()) / BANDWIDTH**2)
    shares: Floats = weights / weights.sum()
    return shares


def recommend_configs(
    experience: Experience, k: int, features: Mapping[str, float]
) -> Recommendation:
    """Choose the k recorded configurations that complement each other best on similar datasets."""
    table = loss_table(experience, NORMALISATION)
    table = table.select_common() if table.has_common_configs else table
    weights = task_similarity(experience.only(table.tasks), features)
    picks = greedy(table.losses, k, lambda losses: weights @ losses)
    places = weights @ missing_as_worst(table.losses[:, picks.chosen]).astype(np.float64)
    configs = table.configs.take(picks.chosen)
    return Recommendation(
        configs, places, picks.losses, _seconds(experience, table, weights, configs)
    )


def recommend_each_algorithm(
    experience: Experience, choice: str, features: Mapping[str, float]
) -> dict[str, tuple[dict[str, Any], float]]:
    """Return for each algorithm its best configuration on similar datasets, and its seconds.

    choice: the hyperparameter that chooses the algorithm. The seconds are NaN if unknown.
    """
    table = loss_table(experience, NORMALISATION)
    table = table.select_common() if table.has_common_configs else table
    weights = task_similarity(experience.only(table.tasks), features)
    places = weights @ missing_as_worst(table.losses).astype(np.float64)
    configs = table.configs.dicts()
    best: dict[str, int] = {}
    for row in np.argsort(places, kind="stable").tolist():
        best.setdefault(str(configs[row][choice]), row)
    rows = list(best.values())
    seconds = _seconds(experience, table, weights, table.configs.take(rows))
    return {
        name: (configs[row], float(took))
        for (name, row), took in zip(best.items(), seconds, strict=True)
    }


def _seconds(experience: Experience, table: LossTable, weights: Floats, configs: Encoded) -> Floats:
    """Return the mean seconds (k,) of each configuration; NaN if no task measured them."""
    rows = {key: row for row, key in enumerate(configs.keys().tolist())}
    place = np.array([rows.get(key, -1) for key in experience.configs.keys().tolist()])
    took = np.full((len(table.tasks), len(configs)), np.nan)
    for task, name in enumerate(table.tasks):
        records = experience.task(name)
        at = place[records.config_index]
        took[task, at[at >= 0]] = records.seconds[at >= 0]
    known = np.isfinite(took)
    shares = weights[:, None] * known
    total = shares.sum(axis=0)
    means: Floats = np.divide(
        (shares * np.where(known, took, 0.0)).sum(axis=0),
        total,
        out=np.full(len(configs), np.nan),
        where=total > 0,
    )
    return means
