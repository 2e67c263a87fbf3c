"""The curves of trials in an Optuna storage."""

import math
from collections.abc import Sequence

import numpy as np

from foretune.experience import Metric
from foretune.experience.curves import (
    Curve,
    CurveColumns,
    build_curves,
    join_points,
    stack_curves,
)
from foretune.stores.optuna.database import StoredTrial
from foretune.stores.optuna.stored_curves import read_points


def stack_trial_curves(
    trials: Sequence[StoredTrial], metrics: Sequence[str]
) -> CurveColumns | None:
    """Return the curves. Optuna keeps intermediate values only if there is one objective.

    Trials of Foretune's studies have all metrics and seconds at all steps.
    """
    if any(trial.points for trial in trials):
        return stack_curves([_curve(trial, metrics) for trial in trials], metrics)
    return _curves_of_one_metric(trials, len(metrics))


def _curve(trial: StoredTrial, metrics: Sequence[str]) -> Curve | None:
    if trial.points:
        curve = join_points(read_points(trial.points))
        return None if curve is None else curve.only(metrics)
    if len(metrics) > 1 or not trial.reports:
        return None
    steps = sorted(trial.reports)
    return Curve(steps, {metrics[0]: [trial.reports[step] for step in steps]})


def _curves_of_one_metric(trials: Sequence[StoredTrial], objectives: int) -> CurveColumns | None:
    lengths = [len(trial.reports) for trial in trials]
    if objectives > 1 or not any(lengths):
        return None
    points = [point for trial in trials for point in sorted(trial.reports.items())]
    steps, values = np.array(points, dtype=np.float64).T
    return build_curves(lengths, steps, values)


def last_values(trial: StoredTrial, metrics: Sequence[Metric]) -> list[float]:
    """Return what a trial without a result reported last."""
    curve = _curve(trial, [metric.name for metric in metrics])
    last = {} if curve is None else curve.last_values
    return [last.get(metric.name, math.nan) for metric in metrics]
