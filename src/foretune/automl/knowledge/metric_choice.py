"""Experience by one metric: the one asked for, or the nearest that was measured."""

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
"""Which recorded metric orders pipelines most alike."""


def stand_in(metric: str, recorded: Sequence[str]) -> str:
    """The recorded metric that speaks for `metric`: itself, its nearest, or the first."""
    nearest = STAND_INS.get(metric, recorded[0])
    return metric if metric in recorded else nearest if nearest in recorded else recorded[0]


def by_metric(experience: Experience, metric: Metric) -> Experience:
    """The evaluations with `metric` as their only one; a task that lacks it speaks by another.

    Methods compare values within a task only, so that tasks may be measured differently. Rows that
    measured nothing of use are left out, and splits are forgotten.
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
