"""All beliefs about one objective, weighted by how well they explain the reports.

The beliefs are: past configurations and curves, past curves only, and nothing. Each finds its own
unit for the losses of the target, so their evidences are densities of the same numbers. Past tasks
that mislead explain the reports badly, and lose their weight.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp, ndtri, softmax

from foretune._base.arrays import Floats
from foretune.methods.contracts import Prediction
from foretune.methods.freeze_thaw.curve_prior import CurvePrior
from foretune.methods.freeze_thaw.points import Points
from foretune.methods.freeze_thaw.process import CurveProcess
from foretune.methods.freeze_thaw.units import Unit
from foretune.numerics.acquisition import log_expected_improvement
from foretune.space import Encoded

TEMPER = 0.2
"""The power of evidences. Points of one curve err together, so they count for less."""
BAND_GRID = ndtri((np.arange(199) + 0.5) / 199)
"""Standard normal quantiles at which mixtures are tabulated."""
WIDENED = 1.5
"""Losses that are shown to people have a standard deviation this many times that of the process,
which takes the unit of the task for known. Chosen on half of the tasks of three suites, so that
bands of 90% hold 90%, and confirmed on the other half."""
LEAST_WEIGHT = 0.02
"""A belief with at most this weight is left out."""


@dataclass(frozen=True, slots=True)
class WeightedPrior:
    """A belief before the first report."""

    name: str
    prior: CurvePrior
    log_odds: float


@dataclass(frozen=True, slots=True)
class Belief:
    """All beliefs about one objective after the reports."""

    processes: tuple[CurveProcess, ...]
    weights: Floats
    """Adding up to 1."""
    last_step: float

    @classmethod
    def condition(
        cls, priors: Sequence[WeightedPrior], points: Points, objective: int, last_step: float
    ) -> "Belief":
        """Condition each belief, and weigh it by its evidence."""
        each = [CurveProcess.condition(one.prior, points, objective) for one in priors]
        evidence = np.array([process.log_evidence for process in each])
        weights = softmax(TEMPER * evidence + [one.log_odds for one in priors])
        kept = np.flatnonzero(weights > LEAST_WEIGHT)
        chosen = tuple(each[place] for place in kept.tolist())
        return cls(chosen, weights[kept] / weights[kept].sum(), last_step)

    @property
    def best(self) -> float:
        """The best loss that was reported, on a linear scale of losses."""
        return float(self.weights @ [_linear(p, np.array([p.best]))[0] for p in self.processes])

    def predict(self, x: Encoded) -> Prediction:
        """Return mean and standard deviation of the loss at the last step, on that scale."""
        each = [process.predict(x) for process in self.processes]
        means = np.stack(
            [_linear(p, mean) for p, (mean, _) in zip(self.processes, each, strict=True)]
        )
        stds = np.stack(
            [p.unit.scale * std for p, (_, std) in zip(self.processes, each, strict=True)]
        )
        return _mix(means, stds, self.weights)

    def log_improvement(self, x: Encoded) -> Floats:
        """Return the logarithm of the expected improvement of the loss at the last step."""
        each = []
        for process in self.processes:
            mean, std = process.predict(x)
            each.append(log_expected_improvement(mean, std, process.best))
        scales = np.array([process.unit.scale for process in self.processes])
        total: Floats = logsumexp(np.stack(each), axis=0, b=(self.weights * scales)[:, None])
        return total

    def sample(self, x: Encoded, n: int, rng: np.random.Generator) -> Floats:
        """Draw a belief for each row, and losses from it: (n, len(x))."""
        chosen = rng.choice(len(self.processes), size=n, p=self.weights)
        drawn = np.empty((n, len(x)))
        for number, process in enumerate(self.processes):
            rows = np.flatnonzero(chosen == number)
            if len(rows):
                drawn[rows] = _linear(process, process.sample(x, len(rows), rng))
        return drawn

    def predict_band(self, x: Encoded, share: float, knot: int = -1) -> tuple[Floats, Floats]:
        """Return the band (two of (len(x),)) that holds the loss at one knot with a probability.

        Each belief has its own unit, so the distribution function of their mixture is inverted.
        """
        each = [(p.unit, *p.predict(x, knot), p.prior.noise[knot]) for p in self.processes]
        wide = [
            (unit, mean, WIDENED * np.sqrt(np.square(std) + noise))
            for unit, mean, std, noise in each
        ]
        quantiles = np.stack(
            [[unit.to_losses(m + s * z) for z in BAND_GRID] for unit, m, s in wide]
        )
        return tuple(  # type: ignore[return-value]
            _mixture_quantile(quantiles, self.weights, level)
            for level in (0.5 - 0.5 * share, 0.5 + 0.5 * share)
        )

    @property
    def unit(self) -> Unit:
        """The unit of the losses by the most probable belief."""
        return self.processes[int(np.argmax(self.weights))].unit

    @property
    def trusts_past(self) -> bool:
        """Whether past configurations still help to predict."""
        knows = np.array([len(process.prior.centres) > 0 for process in self.processes])
        return bool(self.weights[knows].sum() > 0.5)

    def in_scores(self, losses: Floats) -> Floats:
        """Return losses in the unit of scores, on a linear scale."""
        return (losses - self.unit.location) / self.unit.scale

    def predict_curve(self, x: Encoded, steps: Floats) -> Prediction:
        """Return the losses at some steps (len(x), steps), between knots by interpolation."""
        knots = self.processes[0].prior.knots
        each = [self.predict_losses(x, place) for place in range(len(knots))]
        at = np.log(np.maximum(np.asarray(steps) / self.last_step, knots[0]))
        means, stds = (
            np.stack(rows, axis=1)
            for rows in ([one.mean for one in each], [one.std for one in each])
        )
        return Prediction(
            *(
                np.stack([np.interp(at, np.log(knots), row) for row in rows])
                for rows in (means, stds)
            )
        )

    def predict_losses(self, x: Encoded, knot: int = -1) -> Prediction:
        """Return mean and standard deviation of the loss at one knot."""
        means, stds = [], []
        for process in self.processes:
            mean, std = process.predict(x, knot)
            low, middle, high = (
                process.unit.to_losses(mean + d * std) for d in (-WIDENED, 0.0, WIDENED)
            )
            means.append(middle)
            stds.append(0.5 * (high - low))
        return _mix(np.stack(means), np.stack(stds), self.weights)


def _mixture_quantile(quantiles: Floats, weights: Floats, level: float) -> Floats:
    """Return the quantiles (m,) of mixtures, given quantiles (beliefs, grid, m) of the parts."""
    mass = np.repeat(weights[:, None] / quantiles.shape[1], quantiles.shape[1], axis=1).ravel()
    found = np.empty(quantiles.shape[2])
    for column in range(quantiles.shape[2]):
        values = quantiles[:, :, column].ravel()
        order = np.argsort(values, kind="stable")
        share = np.cumsum(mass[order]) - 0.5 * mass[order]
        found[column] = np.interp(level, share, values[order])
    return found


def _linear(process: CurveProcess, scores: Floats) -> Floats:
    return process.unit.location + process.unit.scale * scores


def _mix(means: Floats, stds: Floats, weights: Floats) -> Prediction:
    """Return mean and standard deviation of a mixture; rows are its parts."""
    mean = weights @ means
    variance = weights @ (np.square(stds) + np.square(means - mean))
    return Prediction(mean, np.sqrt(variance))
