"""Past tasks as scores at common relative steps."""

from dataclasses import dataclass

import numpy as np

from foretune._base.arrays import Floats
from foretune.experience import Experience, Status
from foretune.methods.freeze_thaw.knots import curve_at_knots, fill_missing, place_knots
from foretune.methods.freeze_thaw.units import Unit
from foretune.methods.past_data import draw_by_name

MOST_TASKS = 100
MOST_CONFIGS = 800
"""The most past tasks, and configurations of each, that are read."""
ENOUGH_COMPLETE = 20
"""The number of complete curves from which their covariance is estimated."""


@dataclass(frozen=True, slots=True)
class PastCurves:
    """One past task."""

    x: Floats
    """(n, W)"""
    scores: Floats
    """(n, K), all known or filled."""
    unit: Unit


@dataclass(frozen=True, slots=True)
class _RawTask:
    rows: Floats
    losses: Floats
    """(n, K), NaN where a curve has not come."""


def experience_knots(experience: Experience) -> Floats | None:
    """Return common relative steps for the curves of past tasks; None without curves."""
    curves = experience.curves
    if curves is None or not curves.lengths.any():
        return None
    firsts, counts = [], []
    for name in experience.tasks:
        rows = experience.rows(name)
        offsets = curves.offsets[rows.start : rows.stop + 1]
        steps = curves.steps[offsets[0] : offsets[-1]]
        steps = steps[steps > 0]
        if len(steps):
            firsts.append(float(steps.min() / steps.max()))
            counts.append(int(np.unique(steps).size))
    if not firsts:
        return None
    return place_knots(float(np.median(firsts)), int(np.median(counts)))


def read_past_curves(
    experience: Experience, metric: int, knots: Floats, prior: tuple[Floats, Floats], *, seed: int
) -> list[PastCurves]:
    """Return the past tasks in which a trial has a loss.

    prior: mean (K,) and covariance (K, K) of scores, for what too few curves can tell.
    """
    drawn = draw_by_name(experience.tasks, MOST_TASKS, seed)
    read = [_read_task(experience, experience.tasks[place], metric, knots) for place in drawn]
    raw = [task for task in read if task is not None]
    scored = []
    for task in raw:
        finals = _finals(task.losses)
        if np.isfinite(finals).any():
            unit = Unit.measure(finals)
            scored.append((task.rows, unit.to_scores(task.losses), unit))
    mean, covariance = _curve_statistics([scores for _, scores, _ in scored], prior)
    return [
        PastCurves(x, fill_missing(scores, mean, covariance), unit) for x, scores, unit in scored
    ]


def _read_task(experience: Experience, name: str, metric: int, knots: Floats) -> _RawTask | None:
    """Read the evaluations of one task, with or without a curve."""
    records, curves = experience.task(name), experience.task(name).curves
    sign = experience.metrics[metric].sign
    last = experience.largest_step(name)
    order = np.random.default_rng(0).permutation(len(records.status))[:MOST_CONFIGS]
    rows, losses = [], []
    for row in order.tolist():
        found = np.full(len(knots), np.nan)
        if curves is not None and last and curves.lengths[row]:
            steps, values = curves.at_steps(row, metric)
            found = curve_at_knots(steps, sign * values, last, knots)
        elif records.status[row] == Status.DONE:
            found[-1] = records.losses[row, metric]
        if not np.isnan(found).all():
            rows.append(int(records.config_index[row]))
            losses.append(found)
    if not rows:
        return None
    return _RawTask(experience.configs.take(rows).x.astype(float), np.array(losses))


def _finals(losses: Floats) -> Floats:
    """Return (n,), the losses at the last step or, if few trials came there, the latest ones."""
    finals = losses[:, -1]
    known = ~np.isnan(finals)
    if np.isfinite(finals[known]).sum() >= min(4, len(finals)):
        return finals[known]
    latest = [row[~np.isnan(row)][-1] for row in losses]
    return np.array(latest)


def _curve_statistics(scores: list[Floats], prior: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    """Return mean and covariance of complete curves, or the prior if there are too few."""
    if not scores:
        return prior
    together = np.concatenate(scores)
    complete = together[~np.isnan(together).any(axis=1)]
    if len(complete) < ENOUGH_COMPLETE:
        return prior
    return complete.mean(axis=0), np.cov(complete, rowvar=False).reshape([len(prior[0])] * 2)
