"""The trials told so far, kept so that each costs the same however many came before."""

import numpy as np

from foretune._base.arrays import Floats
from foretune.methods.contracts import Observations
from foretune.space import Encoded, Space
from foretune.space.growable import GrowingConfigs, GrowingRows


class ToldTrials:
    """Configurations and their losses, in the order they were told."""

    def __init__(self, space: Space, objectives: int) -> None:
        self._configs = GrowingConfigs(space)
        self._losses = GrowingRows((objectives,))

    def add(self, configs: Encoded, losses: Floats) -> None:
        """Add trials at the end; losses: (n, objectives)."""
        self._configs.extend(configs)
        self._losses.extend(losses)

    def observations(self) -> Observations:
        """All trials so far. Later ones do not change what is returned."""
        n = len(self._configs)
        losses = np.asarray(self._losses.first(n), dtype=float)
        return Observations(self._configs.batch(), losses, np.zeros(n, dtype=bool))
