"""Local search on mixed spaces (the CASH paper, Appendix A).

From each start: draw neighbours along every hyperparameter, move to the best of them, and stop
when none is better. All climbers move in step, so that one call scores the neighbours of all.
"""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from foretune.arrays import Floats
from foretune.search.seeds import derived_seed
from foretune.space import Encoded

Score: TypeAlias = Callable[[Encoded], Floats]

MOST_STEPS = 20
NEIGHBOURS_PER_PARAMETER = 10


def climb(starts: Encoded, score: Score, *, seed: int) -> Encoded:
    """The end points of one local search from each row of `starts`, in the same order."""
    position = [starts.take([row]) for row in range(len(starts))]
    height = score(starts).copy()
    moving = list(range(len(starts)))
    for step in range(MOST_STEPS):
        if not moving:
            break
        around = [
            position[row].space.neighbours(
                position[row],
                seed=derived_seed(seed, step, row),
                per_parameter=NEIGHBOURS_PER_PARAMETER,
            )
            for row in moving
        ]
        heights = np.split(score(Encoded.concat(around)), np.cumsum([len(a) for a in around])[:-1])
        moving = [
            row
            for row, near, found in zip(moving, around, heights, strict=True)
            if _step(position, height, row, near, found)
        ]
    return Encoded.concat(position)


def _step(position: list[Encoded], height: Floats, row: int, near: Encoded, found: Floats) -> bool:
    """Move climber `row` to its best neighbour if that is higher; say whether it moved."""
    if len(near) == 0 or found.max() <= height[row]:
        return False
    best = int(np.argmax(found))
    position[row], height[row] = near.take([best]), found[best]
    return True
