"""Several objectives: a belief about each, and trials that widen the front at the last step."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from foretune._base.arrays import Bools, Floats
from foretune.methods.contracts import Prediction
from foretune.methods.curve_contracts import CurvePosterior
from foretune.methods.freeze_thaw.belief import Belief
from foretune.methods.freeze_thaw.points import Points
from foretune.numerics.hypervolume import Boxes, improving_boxes, log_expected_volume
from foretune.numerics.objectives import pareto_front
from foretune.space import Encoded

MARGIN = 0.1
"""The hypervolume is measured this far beyond the median of the trials."""
HOPE = 1.0
"""How far below the lowest score a trial may end. Without a limit, the ends of a front, where
little is known, would be tried again and again."""
MOST_POINTS = 60
"""The most points of a front to use."""


@dataclass(frozen=True, slots=True)
class CurveFrontPosterior(CurvePosterior):
    """Beliefs about all objectives, and the boxes that improve on the front."""

    beliefs: tuple[Belief, ...]
    boxes: Boxes
    best: float
    """The lowest mean of the scores of a trial."""

    @classmethod
    def of(cls, beliefs: Sequence[Belief], points: Points) -> Self:
        """Find the front of the complete trials.

        A paused trial counts for what its end is expected to add, however good it is by now.
        """
        last = len(beliefs[0].processes[0].prior.knots) - 1
        latest, is_end = _latest(points, last)
        scores = np.column_stack(
            [belief.in_scores(column) for belief, column in zip(beliefs, latest.T, strict=True)]
        )
        if not len(scores):
            scores, is_end = np.zeros((1, len(beliefs))), np.array([False])
        ends = scores[is_end]
        front = np.unique(ends[pareto_front(ends)], axis=0) if len(ends) else ends
        if len(front) > MOST_POINTS:
            front = front[np.linspace(0, len(front) - 1, MOST_POINTS).astype(np.int64)]
        known = front if len(front) else scores
        reference = np.maximum(known.max(axis=0), np.median(scores, axis=0)) + MARGIN
        boxes = improving_boxes(front, reference, scores.min(axis=0) - HOPE)
        return cls(tuple(beliefs), boxes, float(scores.mean(axis=1).min()))

    def predict(self, x: Encoded) -> Prediction:
        """Return mean and standard deviation of the average of the scores."""
        mean, std = self._each(x)
        return Prediction(
            mean.mean(axis=1), np.sqrt(np.square(std).sum(axis=1)) / len(self.beliefs)
        )

    def predict_each(self, x: Encoded) -> Floats:
        """Return (len(x), objectives), the mean of each score."""
        return self._each(x)[0]

    def sample(self, x: Encoded, n: int, *, seed: int) -> Floats:
        """Draw the averages of the scores."""
        rng = np.random.default_rng(seed)
        drawn: Floats = np.mean(
            [belief.in_scores(belief.sample(x, n, rng)) for belief in self.beliefs], axis=0
        )
        return drawn

    def log_improvement(self, x: Encoded) -> Floats:
        """Return the logarithm of the hypervolume that each is expected to add at its end."""
        return log_expected_volume(*self._each(x), self.boxes)

    @property
    def trusts_past(self) -> bool:
        """Whether past tasks still help to predict most objectives."""
        return all(belief.trusts_past for belief in self.beliefs)

    def predict_end(self, x: Encoded) -> Prediction:
        """Return the loss of the first objective at the last step."""
        return self.beliefs[0].predict_losses(x)

    def predict_curve(self, x: Encoded, steps: Floats) -> Prediction:
        """Return the losses of the first objective at some steps."""
        return self.beliefs[0].predict_curve(x, steps)

    def _each(self, x: Encoded) -> tuple[Floats, Floats]:
        """Return means and standard deviations of all scores, (len(x), objectives) each."""
        each = [belief.predict(x) for belief in self.beliefs]
        means = [b.in_scores(p.mean) for b, p in zip(self.beliefs, each, strict=True)]
        stds = [p.std / b.unit.scale for b, p in zip(self.beliefs, each, strict=True)]
        return np.column_stack(means), np.column_stack(stds)


def _latest(points: Points, last: int) -> tuple[Floats, Bools]:
    """Return (trials, objectives), the latest losses of the trials that have not diverged, and
    which of them are those of the last knot.
    """
    order = np.lexsort((points.knot, points.member))
    members = points.member[order]
    is_last = np.append(members[1:] != members[:-1], True)[: len(members)]
    latest: Floats = points.losses[order][is_last]
    good = np.isfinite(latest).all(axis=1)
    return latest[good], points.knot[order][is_last][good] == last
