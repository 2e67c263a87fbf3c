"""What trials reported step by step, and what past tasks reported, as the page draws it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from foretune._base.arrays import Floats
from foretune.experience import Experience, Metric, Status
from foretune.experience.trial import Trial
from foretune.report.curves import Range, visible_range

MOST_POINTS = 40_000
"""Points of all curves together. More would make the page slow and look the same."""
FEWEST_A_CURVE, MOST_A_CURVE = 6, 200
BAND_STEPS = 100
BAND_CURVES = 1_000
BAND = (0.1, 0.5, 0.9)
"""The quantiles of past values at a step."""


@dataclass(frozen=True, slots=True)
class PastBand:
    """What complete past trials reached at each step: the middle 80% and the median."""

    steps: Sequence[float]
    low: Sequence[float]
    middle: Sequence[float]
    high: Sequence[float]
    trials: int
    tasks: int


@dataclass(frozen=True, slots=True)
class DrawnCurves:
    """The curves of the drawn trials, point after point, of the first metric."""

    lengths: Sequence[int]
    """The number of points of each trial."""
    steps: Floats
    values: Floats
    """NaN where nothing was measured or the trial diverged."""
    shown: Range
    """The range of values that the picture shows."""


def draw_curves(trials: Sequence[Trial], metric: Metric) -> DrawnCurves | None:
    """Return the curves of these trials, with fewer points if there are many; None without any."""
    reported = sum(trial.curve is not None for trial in trials)
    if not reported:
        return None
    most = int(np.clip(MOST_POINTS // reported, FEWEST_A_CURVE, MOST_A_CURVE))
    curves = [_thin_points(trial, metric.name, most) for trial in trials]
    steps = np.concatenate([steps for steps, _ in curves])
    values = np.concatenate([values for _, values in curves])
    ends = [
        float(values[-1])
        for trial, (_, values) in zip(trials, curves, strict=True)
        if trial.status is Status.DONE and len(values) and np.isfinite(values[-1])
    ]
    best = sorted(ends, key=lambda end: metric.sign * end)[:1]
    shown = visible_range(values, metric.direction, best)
    return DrawnCurves([len(steps) for steps, _ in curves], steps, values, shown)


def summarise_past(past: Experience | None, metric: Metric) -> PastBand | None:
    """Return the band of past curves of a metric; None if no past trial has a curve of it."""
    names = [] if past is None else [each.name for each in past.metrics]
    if past is None or past.curves is None or metric.name not in names:
        return None
    curves, column = past.curves, names.index(metric.name)
    rows = _complete_rows(past)
    if not len(rows):
        return None
    rows = np.random.default_rng(0).permutation(rows)[:BAND_CURVES]
    own = [curves.at_steps(int(row), column) for row in rows]
    every = np.unique(np.concatenate([steps for steps, _ in own]))
    grid = every[_spread(len(every), BAND_STEPS)]
    values = np.array([_values_on(grid, steps, values) for steps, values in own])
    known = np.isfinite(values).any(axis=0)
    low, middle, high = np.nanquantile(values[:, known], BAND, axis=0)
    tasks = len(np.unique(past.task_index[rows]))
    return PastBand(
        grid[known].tolist(), low.tolist(), middle.tolist(), high.tolist(), len(rows), tasks
    )


def _complete_rows(past: Experience) -> NDArray[np.intp]:
    """Return the evaluations that reached the last step of their task."""
    assert past.curves is not None
    last = np.where(past.status == Status.DONE, past.curves.last_steps, np.nan)
    ends = np.full(len(past.tasks), -np.inf)
    reached = np.isfinite(last)
    np.maximum.at(ends, past.task_index[reached], last[reached])
    return np.flatnonzero(reached & (last == ends[past.task_index]))


def _values_on(grid: Floats, steps: Floats, values: Floats) -> Floats:
    """Return the values at other steps, NaN outside of the curve."""
    known = np.isfinite(values)
    if not known.any():
        return np.full(len(grid), np.nan)
    found: Floats = np.interp(grid, steps[known], values[known], left=np.nan, right=np.nan)
    return found


def _thin_points(trial: Trial, metric: str, most: int) -> tuple[Floats, Floats]:
    """Return the steps and values of a trial at some of its points."""
    if trial.curve is None or metric not in trial.curve.values:
        return np.empty(0), np.empty(0)
    places = _spread(len(trial.curve), most)
    steps = np.asarray(trial.curve.steps, dtype=np.float64)[places]
    values = np.asarray(trial.curve.values[metric], dtype=np.float64)[places]
    return steps, np.where(np.isfinite(values), values, np.nan)


def _spread(n: int, most: int) -> NDArray[np.int64]:
    """Return at most so many places of n, with both ends, half of them among the first ones."""
    if n <= most:
        return np.arange(n)
    half = most // 2
    spread = np.concatenate([np.geomspace(1, n, half) - 1, np.linspace(0, n - 1, most - half)])
    return np.unique(spread.round().astype(np.int64))
