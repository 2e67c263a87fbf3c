"""Reduces experience to one metric: the requested one, or the most similar recorded one."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from foretune.errors import ExperienceError
from foretune.experience import Experience, Metric, Status
from foretune.experience.selection import take_rows

STAND_INS = {
    "f1_macro": "balanced_accuracy",
    "matthews": "balanced_accuracy",
    "brier": "log_loss",
    "mae": "rmse",
    "mape": "rmse",
    "median_absolute_error": "rmse",
}
"""For each metric, the other one that orders pipelines most similarly."""


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
            f"{len(experience)} did: collect other",
            rule="no-success",
            value=len(experience),
        )
    values = (losses * metric.sign)[:, None]
    chosen = take_rows(replace(experience, metrics=(metric,), values=values, splits={}), useful)
    return chosen.only(experience.tasks[index] for index in np.unique(chosen.task_index))
