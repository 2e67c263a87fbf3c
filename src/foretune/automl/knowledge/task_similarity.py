"""Finds past datasets that are similar to a new one, and the configurations that suited them."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

from foretune._base.arrays import Floats
from foretune.experience import Experience
from foretune.methods.zero_shot.table import LossTable, loss_table
from foretune.numerics.greedy import greedy, missing_as_worst
from foretune.space import Encoded

BANDWIDTH = 0.15
"""The width of the similarity, a little less than the distance of most datasets to their nearest
one (decision 013)."""
NORMALISATION = "rank"


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
