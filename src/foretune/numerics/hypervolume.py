"""The hypervolume that a trial is expected to add to a front of several losses.

The region that improves on the front is cut into boxes. For a trial with independent losses, the
expected volume that it adds to a box is a product of differences of expected improvements, one for
each loss. So the sum over all boxes is exact, for any number of losses.
"""

from dataclasses import dataclass

import numpy as np

from foretune._base.arrays import Floats
from foretune.numerics.acquisition import expected_improvement, log_of_improvement


@dataclass(frozen=True, slots=True)
class Boxes:
    """Disjoint boxes, each from `lower` to `upper`, both (boxes, L)."""

    lower: Floats
    upper: Floats


def improving_boxes(front: Floats, reference: Floats, ideal: Floats) -> Boxes:
    """Return boxes of all losses (L,) between ideal and reference that improve on a front (n, L).

    The ideal may be infinitely far. The last loss is cut at the points of the front. Between two
    cuts only the points below count, and the other losses are cut in the same way.
    """
    inside = front[(front < reference).all(axis=1)]
    if len(reference) == 1:
        upper = np.min([*inside.ravel(), reference[0]])
        return Boxes(np.full((1, 1), ideal[0]), np.full((1, 1), upper))
    ordered = inside[np.argsort(inside[:, -1], kind="stable")]
    cuts = np.array([ideal[-1], *ordered[:, -1], reference[-1]])
    lower, upper = [], []
    for below in np.flatnonzero(np.diff(cuts) > 0.0).tolist():
        flat = improving_boxes(ordered[:below, :-1], reference[:-1], ideal[:-1])
        height = np.ones((len(flat.lower), 1))
        lower.append(np.hstack([flat.lower, cuts[below] * height]))
        upper.append(np.hstack([flat.upper, cuts[below + 1] * height]))
    return Boxes(np.concatenate(lower), np.concatenate(upper))


def log_expected_volume(mean: Floats, std: Floats, boxes: Boxes) -> Floats:
    """Return (m,), the logarithm of the expected volume that trials of losses (m, L) add."""
    added = np.ones((len(mean), len(boxes.lower)))
    for column in range(mean.shape[1]):
        cuts, places = np.unique(
            np.concatenate([boxes.lower[:, column], boxes.upper[:, column]]), return_inverse=True
        )
        below = _mean_shortfall(mean[:, column], std[:, column], cuts)
        lower, upper = np.split(places.ravel(), 2)
        added *= below[:, upper] - below[:, lower]
    return log_of_improvement(added.sum(axis=1))


def _mean_shortfall(mean: Floats, std: Floats, cuts: Floats) -> Floats:
    """Return (m, cuts), the expected distance of each loss below each cut."""
    found = np.zeros((len(mean), len(cuts)))
    for place in np.flatnonzero(np.isfinite(cuts)).tolist():
        found[:, place] = expected_improvement(mean, std, float(cuts[place]))
    return found
