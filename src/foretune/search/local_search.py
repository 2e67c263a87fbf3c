"""Local search on mixed spaces (the CASH paper, Appendix A).

A climber draws neighbours along every hyperparameter, moves to the best of them, and stops when
none is better. All climbers move together, so that one call scores the neighbours of all.
"""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from foretune._base.arrays import Floats
from foretune.search.seeds import derive_seed
from foretune.space import Encoded

Score: TypeAlias = Callable[[Encoded], Floats]

MOST_STEPS = 20
HALVED_AFTER = (4, 8)
"""The steps after which half of the climbers stop, if climbers are halved."""
NEIGHBOURS_PER_PARAMETER = 10


def climb(
    starts: Encoded,
    score: Score,
    *,
    seed: int,
    per_parameter: int = NEIGHBOURS_PER_PARAMETER,
    halve: bool = False,
) -> Encoded:
    """Return the end point of a local search from each row of `starts`, in the same order.

    halve: stop the lower half of the climbers early, more than once.
    """
    position, height = starts.values.copy(), score(starts).copy()
    moving = np.arange(len(starts))
    for step in range(MOST_STEPS):
        around, owners = starts.space.neighbourhoods(
            Encoded(starts.space, position[moving]),
            seed=derive_seed(seed, step),
            per_parameter=per_parameter,
        )
        if len(around) == 0:
            break
        found = score(around)
        # Sorted by climber and then by height, the last row of each climber is its best one.
        order = np.lexsort((found, owners))
        best = order[np.append(np.diff(owners[order]) > 0, True)]
        higher = best[found[best] > height[moving[owners[best]]]]
        moving = moving[owners[higher]]
        position[moving], height[moving] = around.values[higher], found[higher]
        if halve and step + 1 in HALVED_AFTER:
            highest_first = np.argsort(-height[moving], kind="stable")
            moving = np.sort(moving[highest_first[: (len(moving) + 1) // 2]])
    return Encoded(starts.space, position)
