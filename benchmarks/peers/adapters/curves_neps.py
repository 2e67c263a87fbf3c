"""NePS: its ASHA, with its defaults, on a flat space.

Its PriorBand needs a user's prior, and its ifBO downloads weights. NePS draws from the global
generators, so these are seeded.
"""

import random
from typing import Any

import neps
import numpy as np
import torch
from benchmarks.peers.curve_play import Work
from benchmarks.peers.curve_problem import ETA, CurveProblem
from benchmarks.peers.objective import Parameter

STEP = "epoch"


class NepsAsha:
    """NePS's ask and tell."""

    def __init__(self, setting: CurveProblem, seed: int) -> None:
        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed)
        self._problem = setting.problem
        first, last = setting.ticks
        space = {f"p{i}": _domain(p) for i, p in enumerate(setting.problem.parameters)}
        space[STEP] = neps.HPOInteger(lower=first, upper=last, is_fidelity=True)
        self._tuner = neps.AskAndTell(neps.algorithms.asha(neps.SearchSpace(space), eta=ETA))
        self._trial: Any = None

    def ask(self) -> Work:
        """Return a configuration and the step up to which NePS wants it to run."""
        self._trial = self._tuner.ask()
        config = self._trial.config
        row = [float(config[f"p{i}"]) for i in range(len(self._problem.parameters))]
        number = int(self._trial.metadata.id.partition("_")[0])
        return Work(number, np.array(row), float(config[STEP]))

    def report(self, work: Work, tick: int, loss: float) -> bool:
        """Go on, because NePS sees the last step only."""
        del work, tick, loss
        return True

    def end(self, work: Work, tick: int, loss: float, complete: bool) -> None:
        """Tell the loss."""
        del work, tick, complete
        self._tuner.tell(self._trial.metadata.id, loss)


def _domain(parameter: Parameter) -> Any:
    if parameter.kind == "categorical":
        return neps.HPOCategorical([str(index) for index in range(parameter.choices)])
    if parameter.kind == "float":
        return neps.HPOFloat(parameter.low, parameter.high, log=parameter.log)
    return neps.HPOInteger(int(parameter.low), int(parameter.high), log=parameter.log)


PEERS = {"neps-asha": NepsAsha}
