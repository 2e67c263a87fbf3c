"""Local search on mixed spaces (the CASH paper, Appendix A), and a finer one from where it ends.

From each start: draw neighbours along every hyperparameter, move to the best of them, and stop
when none is better. All climbers move in step, so that one call scores the neighbours of all.

Such steps have one size, about a tenth of a range. Where a search has closed in on an optimum, the
best place to look lies nearer than that: `close_in` goes on with steps that become ever smaller.
"""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from foretune.arrays import Floats, Ints
from foretune.search.seeds import derived_seed
from foretune.space import Encoded

Score: TypeAlias = Callable[[Encoded], Floats]

MOST_STEPS = 20
NEIGHBOURS_PER_PARAMETER = 10
REACHES = tuple(0.05 * 0.5 ** (step // 2) for step in range(12))
"""How far the steps of `close_in` go in the unit cube, one after the other."""
CLOSE_NEIGHBOURS = 40
"""About how many neighbours `close_in` looks at for each step."""


def climb(
    starts: Encoded,
    score: Score,
    *,
    seed: int,
    per_parameter: int = NEIGHBOURS_PER_PARAMETER,
) -> Encoded:
    """The end points of one local search from each row of `starts`, in the same order."""
    position, height = starts.values.copy(), score(starts).copy()
    moving = np.arange(len(starts))
    for step in range(MOST_STEPS):
        around, owners = starts.space.neighbourhoods(
            Encoded(starts.space, position[moving]),
            seed=derived_seed(seed, step),
            per_parameter=per_parameter,
        )
        if len(around) == 0:
            break
        moving = _advance(position, height, around, moving[owners], score)
    return Encoded(starts.space, position)


def close_in(starts: Encoded, score: Score, *, seed: int) -> Encoded:
    """Where ever smaller steps lead from each row of `starts`, in the same order."""
    space = starts.space
    if not any(parameter.is_number for parameter in space.parameters):
        return starts
    per_parameter = max(CLOSE_NEIGHBOURS // len(space.parameters), 1)
    position, height = starts.values.copy(), score(starts).copy()
    for step, reach in enumerate(REACHES):
        around, owners = space.neighbourhoods(
            Encoded(space, position.copy()),
            seed=derived_seed(seed, step),
            per_parameter=per_parameter,
            sigma=reach,
        )
        if len(around):
            _advance(position, height, around, owners, score)
    return Encoded(space, position)


def _advance(position: Floats, height: Floats, around: Encoded, owners: Ints, score: Score) -> Ints:
    """Move each climber to the best of what lies `around` it, if that is higher; who has moved.

    `owners` (m,) are the climbers, rows of `position` and `height`, which are changed in place.
    """
    found = score(around)
    # Sorted by climber and then by height, the last row of each climber is its best one.
    order = np.lexsort((found, owners))
    best = order[np.append(np.diff(owners[order]) > 0, True)]
    higher = best[found[best] > height[owners[best]]]
    moved: Ints = owners[higher]
    position[moved], height[moved] = around.values[higher], found[higher]
    return moved
