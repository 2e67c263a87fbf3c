"""Jobs that are run while a portfolio is built: losses come one by one, in their own unit."""

import numpy as np

from foretune._base.arrays import Bools, Floats, Ints
from foretune.methods.zero_shot.jobs import Jobs
from foretune.numerics.greedy import Losses
from foretune.numerics.normalise import NORMALISATIONS
from foretune.space import Encoded


class LiveJobs(Jobs):
    """Jobs whose losses are normalised anew, task by task, as they come.

    The reference of a task is that of the evaluations so far, so the losses of a task may all
    change with one more.

    Arguments:
        is_maximised: whether the losses are negated values. Those of scores between 0 and 1 are
            turned into errors.
        normalisation: one of `NORMALISATIONS`. Default: RED if all losses are errors, else ranks.
    """

    def __init__(
        self,
        tasks: int,
        candidates: Encoded,
        *,
        budget: int | None = None,
        is_maximised: bool = False,
        normalisation: str | None = None,
    ) -> None:
        super().__init__(tasks, candidates, budget=budget)
        self._is_maximised, self._wanted = is_maximised, normalisation
        self._raw: Floats = np.full(self.losses.shape, np.nan)
        self._low, self._high = np.inf, -np.inf
        self._unit = self._find_unit()

    @property
    def normalisation(self) -> str:
        """The normalisation of the losses now."""
        return self._unit[1]

    def _keep(self, tasks: Ints, candidates: Ints, losses: Losses) -> None:
        self._raw[tasks, candidates] = losses
        self._low = float(np.fmin.reduce(losses, initial=self._low))
        self._high = float(np.fmax.reduce(losses, initial=self._high))
        before, self._unit = self._unit, self._find_unit()
        rows = range(len(self._raw)) if before != self._unit else np.unique(tasks).tolist()
        for row in rows:
            self._normalise(row)

    def _find_unit(self) -> tuple[float, str]:
        """Return what is added to losses, and their normalisation."""
        is_score = self._is_maximised and self._low >= -1.0 and self._high <= 0.0
        shift = 1.0 if is_score else 0.0
        usual = "red" if self._low + shift >= 0.0 else "rank"
        return shift, self._wanted or usual

    def _normalise(self, row: int) -> None:
        shift, name = self._unit
        known: Bools = ~np.isnan(self._raw[row])
        if known.any():
            self.losses[row, known] = NORMALISATIONS[name](self._raw[row, known] + shift)
            self._worst[row] = self.losses[row, known].max()
