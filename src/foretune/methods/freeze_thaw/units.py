"""The unit of a task's losses, and how it is found from a few points of curves.

A score is 0 for the median configuration of a task at its last step, and about -1 for its best
ones. Above the median, scores grow as logarithms, because poor and diverged trials differ without
meaning. A past task is known in full, so its unit is measured. The unit of a new task is the most
probable one under the process that past tasks have taught: its covariance does not depend on the
unit, so one factorisation serves the whole search.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.linalg.blas import dtrsv
from scipy.optimize import minimize

from foretune._base.arrays import Bools, Floats

CAP = 3.0
"""The score of a trial that diverged, and the highest score."""
BEST_SHARE = 0.05
"""The share of configurations whose mean is the score -1."""
DEGREES = 3.0
"""Degrees of freedom of Student's t: a task may have a unit that no past task had."""
LEAST_SPREAD = 0.3
"""The least standard deviation of the logarithm of scales."""
STARTS = (-2.0, -1.0, 0.0, 1.0)
"""Scales to start the search from, as logarithms of multiples of the usual scale."""
USUAL_GAIN = 0.15
"""How far below the median loss the best ones usually lie, as a share of it. The first reports of a
task may hardly differ, and still say little about its scale."""
RANGE = 12.0
"""The logarithm of the largest multiple of the usual scale."""
ITERATIONS = 30


@dataclass(frozen=True, slots=True)
class Unit:
    """A location and a scale, in the task's own losses."""

    location: float
    scale: float

    @classmethod
    def measure(cls, finals: Floats) -> Self:
        """Return the unit of a task from the losses at its last step (n,)."""
        good = np.sort(finals[np.isfinite(finals)])
        if not len(good):
            return cls(0.0, 1.0)
        location = float(np.median(np.where(np.isfinite(finals), finals, good[-1])))
        scale = location - float(good[: max(1, int(len(good) * BEST_SHARE))].mean())
        if not scale > 1e-12 * max(abs(location), 1e-300):
            scale = float(good.std()) or 1.0
        return cls(location, scale)

    def to_scores(self, losses: Floats) -> Floats:
        """Return the scores of losses of any shape; NaN stays NaN, and infinity is the cap."""
        with np.errstate(invalid="ignore"):
            raw = (losses - self.location) / self.scale
        return np.where(raw <= 0.0, raw, np.minimum(np.log1p(np.maximum(raw, 0.0)), CAP))

    def to_losses(self, scores: Floats) -> Floats:
        """Return the losses of scores, those above the cap as the cap."""
        raw = np.where(scores <= 0.0, scores, np.expm1(np.clip(scores, 0.0, CAP)))
        return self.location + self.scale * raw


@dataclass(frozen=True, slots=True)
class UnitPrior:
    """Which units past tasks had: medians and standard deviations over tasks."""

    location: float
    location_spread: float
    log_scale: float
    log_scale_spread: float

    @classmethod
    def of_tasks(cls, units: list[Unit]) -> Self:
        """Return the prior from the units of past tasks."""
        locations = np.array([unit.location for unit in units])
        scales = np.log([unit.scale for unit in units])
        spread = max(float(locations.std()), float(np.exp(np.median(scales))))
        return cls(
            float(np.median(locations)),
            spread,
            float(np.median(scales)),
            max(float(scales.std()), LEAST_SPREAD),
        )

    @classmethod
    def of_losses(cls, losses: Floats) -> Self:
        """Return a wide prior around finite losses (n,) of the task itself."""
        middle = float(np.median(losses))
        width = max(0.5 * float(np.ptp(losses)), USUAL_GAIN * abs(middle)) or 1.0
        return cls(middle, width, float(np.log(width)), 1.0)

    def penalty(self, location: float, log_scale: float) -> tuple[float, float, float]:
        """Return the negative log density, and its two derivatives."""
        first = _student(location, self.location, self.location_spread)
        second = _student(log_scale, self.log_scale, self.log_scale_spread)
        return first[0] + second[0], first[1], second[1]


def _student(value: float, centre: float, spread: float) -> tuple[float, float]:
    z = (value - centre) / spread
    slope = (DEGREES + 1.0) * z / (DEGREES + z * z) / spread
    return 0.5 * (DEGREES + 1.0) * float(np.log1p(z * z / DEGREES)), slope


def fit_unit(
    losses: Floats, diverged: Bools, expected: Floats, cholesky: Floats, prior: UnitPrior
) -> tuple[Unit, float]:
    """Return the most probable unit of losses (n,), and the log density of the losses with it.

    diverged: (n,), which of the losses have the score of the cap instead.
    expected, cholesky: mean (n,) and factor (n, n) of the scores' covariance.
    """
    if diverged.all():
        return Unit(prior.location, float(np.exp(prior.log_scale))), 0.0
    problem = _UnitSearch(np.where(diverged, 0.0, losses), ~diverged, expected, cholesky, prior)
    start = min(problem.starts(), key=lambda vector: problem(vector)[0])
    size = float(np.exp(start[1]))
    scaling = np.array([size, 1.0])  # The location has the unit of the losses.

    def scaled(vector: Floats) -> tuple[float, Floats]:
        value, gradient = problem(vector * scaling)
        return value, gradient * scaling

    limits = (prior.log_scale - RANGE, prior.log_scale + RANGE)
    found = minimize(
        scaled,
        start / scaling,
        jac=True,
        method="L-BFGS-B",
        bounds=[(None, None), limits],
        options={"maxiter": ITERATIONS},
    )
    location, log_scale = (found.x * scaling).tolist()
    return Unit(location, float(np.exp(log_scale))), -float(found.fun)


@dataclass(frozen=True, slots=True)
class _UnitSearch:
    """The negative log density of losses as a function of the location and the log scale."""

    losses: Floats
    known: Bools
    expected: Floats
    cholesky: Floats
    prior: UnitPrior

    def starts(self) -> list[Floats]:
        """Return units that bring the median loss where it is expected."""
        found = []
        expected = self.expected[self.known]
        raw = np.where(expected <= 0.0, expected, np.expm1(np.clip(expected, 0.0, CAP)))
        for shift in STARTS:
            log_scale = self.prior.log_scale + shift
            location = np.median(self.losses[self.known] - np.exp(log_scale) * raw)
            found.append(np.array([float(location), log_scale]))
        return found

    def __call__(self, vector: Floats) -> tuple[float, Floats]:
        """Return the value and its gradient (2,)."""
        location, log_scale = vector.tolist()
        scale = float(np.exp(log_scale))
        raw = np.where(self.known, (self.losses - location) / scale, 0.0)
        above = np.maximum(raw, 0.0)
        scores = np.where(self.known, np.where(raw <= 0.0, raw, np.log1p(above)), CAP)
        slopes = 1.0 / (1.0 + above)
        surprise = dtrsv(self.cholesky, scores - self.expected, lower=1)
        weights = dtrsv(self.cholesky, surprise, lower=1, trans=1)
        # A score of s' dL has the density of the loss times s' / scale.
        n = int(self.known.sum())
        value = 0.5 * float(surprise @ surprise) + n * log_scale
        value -= float(np.log(slopes[self.known]).sum())
        pull = np.where(self.known, weights * slopes + np.where(raw > 0.0, slopes, 0.0), 0.0)
        penalty, by_location, by_scale = self.prior.penalty(location, log_scale)
        gradient = np.array(
            [-float(pull.sum()) / scale + by_location, n - float(pull @ raw) + by_scale]
        )
        return value + penalty, gradient
