"""The trials told so far. Adding one costs the same for any number of earlier ones."""

import numpy as np

from foretune._base.arrays import Floats
from foretune.methods.contracts import Observations
from foretune.space import Encoded, Space
from foretune.space.growable import GrowingConfigs, GrowingRows


class ToldTrials:
    """The told configurations and their losses, in order."""

    def __init__(self, space: Space, objectives: int) -> None:
        self._configs = GrowingConfigs(space)
        self._losses = GrowingRows((objectives,))

    def add(self, configs: Encoded, losses: Floats) -> None:
        """Add trials at the end; losses: (n, objectives)."""
        self._configs.extend(configs)
        self._losses.extend(losses)

    def observations(self) -> Observations:
        """Return all trials so far. Adding more does not change what was returned."""
        n = len(self._configs)
        losses = np.asarray(self._losses.first(n), dtype=float)
        return Observations(self._configs.batch(), losses, np.zeros(n, dtype=bool))
