"""Several objectives: a process for each, and trials that widen the front.

Any weighted sum leads to one place of the front or, if the front is hollow, to its ends. Here the
worth of a trial is the hypervolume that it is expected to add. Its unit is that of the scores, so
no objective counts more because of its scale.
"""

from dataclasses import dataclass
from functools import partial
from math import comb
from typing import Self

import numpy as np

from foretune._base.arrays import Bools, Floats
from foretune.methods.contracts import Observations, Posterior, Prediction, Surrogate, Target
from foretune.numerics.anchored import (
    LARGEST_GP,
    AnchoredFit,
    farthest_first,
    informative_subset,
)
from foretune.numerics.hypervolume import Boxes, improving_boxes, log_expected_volume
from foretune.numerics.objectives import pareto_front
from foretune.numerics.scores import front_scores
from foretune.numerics.trend import Trend, TrendedGP
from foretune.space import Encoded

MARGIN = 0.1
"""The hypervolume is measured this far beyond the trials, so that the worst of them counts too."""
LEAST_HOPE = 0.1
"""The least gain below the best scores that is possible, even if little was gained lately."""
MOST_POINTS = 100
"""The most points of a front to use."""
MOST_BOXES = 1000
"""The most boxes: n points of L objectives make up to (n + L - 1 over L - 1)."""


@dataclass(frozen=True, slots=True)
class FrontPosterior(Posterior):
    """The conditioned processes, and the boxes that improve on the front."""

    models: tuple[TrendedGP, ...]
    boxes: Boxes
    log_unit: float
    """The log unit of the volume; divided by it, the volume has the unit of a score."""
    best: float
    """The lowest average of the scores."""

    def predict(self, x: Encoded) -> Prediction:
        """Return mean and standard deviation of the average of the scores."""
        mean, std = self._each(x)
        return Prediction(mean.mean(axis=1), np.sqrt(np.square(std).sum(axis=1)) / len(self.models))

    def predict_each(self, x: Encoded) -> Floats:
        """Return (len(x), objectives), the mean of each score."""
        return self._each(x)[0]

    def sample(self, x: Encoded, n: int, *, seed: int) -> Floats:
        """Draw the averages of the scores jointly."""
        rng = np.random.default_rng(seed)
        drawn: Floats = np.mean([model.sample(x.x, n, rng) for model in self.models], axis=0)
        return drawn

    def log_improvement(self, x: Encoded) -> Floats:
        """Return the logarithm of the hypervolume that each is expected to add."""
        return log_expected_volume(*self._each(x), self.boxes) - self.log_unit

    def _each(self, x: Encoded) -> tuple[Floats, Floats]:
        """Return means and standard deviations of all scores, (len(x), objectives) each."""
        means, stds = zip(*(model.predict(x.x) for model in self.models), strict=True)
        return np.column_stack(means), np.column_stack(stds)


@dataclass(frozen=True, slots=True)
class FrontSurrogate(Surrogate):
    """Fits a trend and a process to the scores of each objective."""

    fits: tuple[AnchoredFit, ...]
    """Fits to the residuals of each trend. Their rows hold all losses, then the columns."""

    @classmethod
    def of(cls, target: Target) -> Self:
        """Return a surrogate with one fit for each objective of a target."""
        groups, objectives = target.space.column_groups, len(target.objectives)
        order = partial(_order, objectives=objectives)
        outputs = (
            partial(_residual_scores, objectives=objectives, place=place)
            for place in range(objectives)
        )
        return cls(tuple(AnchoredFit(output=each, order=order, groups=groups) for each in outputs))

    def condition(self, seen: Observations, *, seed: int) -> Posterior:
        """Return the posterior after all successful trials and the believed pending ones."""
        del seed
        good = seen.successes()
        x, real = good.configs.x, ~good.believed
        told = np.hstack([good.losses, x])[real]
        scores = front_scores(good.losses)
        on_front = pareto_front(scores)
        keep = informative_subset(x, _front_first(scores, on_front), LARGEST_GP)
        models = tuple(
            TrendedGP.condition(
                x[keep], column[keep], fit.hyper(x[real], told), Trend.fit(x[real], column[real])
            )
            for fit, column in zip(self.fits, scores.T, strict=True)
        )
        front = _thin_front(scores[on_front])
        # Measured from the worst trials, only the ends of a front would count. Measured from these
        # ends, a short front would stay short.
        reference = 0.5 * (scores.max(axis=0) + front.max(axis=0)) + MARGIN
        extents = reference - front.min(axis=0)
        log_unit = float(np.log(extents).mean()) * (len(models) - 1)
        boxes = improving_boxes(front, reference, front.min(axis=0) - _hopes(scores[real]))
        return FrontPosterior(models, boxes, log_unit, float(scores[real].mean(axis=1).min()))


def _residual_scores(told: Floats, *, objectives: int, place: int) -> Floats:
    """Return (n,), the residuals of one objective's scores after its trend."""
    scores, x = front_scores(told[:, :objectives])[:, place], told[:, objectives:]
    return scores - Trend.fit(x, scores)(x)


def _order(told: Floats, *, objectives: int) -> Floats:
    scores = front_scores(told[:, :objectives])
    return _front_first(scores, pareto_front(scores))


def _hopes(scores: Floats) -> Floats:
    """Return (L,), the possible gain of each objective: its gain in the later half of the trials.

    Without this limit the ends of a front, where a process knows little, would be tried again and
    again.
    """
    before = scores[: max(len(scores) // 2, 1)].min(axis=0)
    hopes: Floats = np.maximum(before - scores.min(axis=0), LEAST_HOPE)
    return hopes


def _thin_front(front: Floats) -> Floats:
    """Return the distinct points of a front.

    If there are too many, keep the most balanced one, and others far from it and from each other.
    """
    front = np.unique(front, axis=0)
    most = _most_points(front.shape[1])
    if len(front) <= most:
        return front
    balanced = int(front.mean(axis=1).argmin())
    others = np.delete(front, balanced, axis=0)
    spread = farthest_first(others, front[[balanced]], most - 1)
    return np.concatenate([front[[balanced]], others[spread]])


def _front_first(scores: Floats, on_front: Bools) -> Floats:
    """Return an order of trials (n,), lower first: all of the front, then the best averages."""
    average: Floats = scores.mean(axis=1)
    return average - np.ptp(average) * on_front


def _most_points(objectives: int) -> int:
    """Return the most points that a front may have so that its boxes are few enough."""
    points = 1
    while points < MOST_POINTS and comb(points + objectives, objectives - 1) <= MOST_BOXES:
        points += 1
    return points
