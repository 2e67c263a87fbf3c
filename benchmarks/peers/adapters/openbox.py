"""OpenBox with transfer: RGPE and SGPR, Gaussian processes of past tasks, on a flat space.

A past task is a history of 100 of its rows, drawn at random, because a process is fitted to each;
at most 20 past tasks are taken. Warm starting from these histories is on, as it is by default.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from benchmarks.peers.adapters.configspace import configuration_of, row_of, space_of
from benchmarks.peers.objective import Floats, Problem
from openbox import Advisor, History, Observation, logger

ROWS, TASKS = 100, 20


class OpenboxTuner:
    """The advisor's ask and tell."""

    def __init__(self, surrogate: str, problem: Problem, seed: int) -> None:
        np.random.seed(seed)
        logger.setLevel("ERROR")
        self._problem = problem
        space = space_of(problem, seed, conditional=False)
        self._advisor = Advisor(
            space,
            surrogate_type=surrogate,
            transfer_learning_history=[
                self._history(space, name, seed) for name in list(problem.past)[:TASKS]
            ],
            output_dir=None,
            random_state=seed,
        )
        self._asked: Any = None

    def ask(self) -> Floats:
        self._asked = self._advisor.get_suggestion()
        return row_of(self._problem, self._asked)

    def tell(self, row: Floats, loss: float) -> None:
        del row
        self._advisor.update_observation(Observation(config=self._asked, objectives=[loss]))

    def _history(self, space: Any, name: str, seed: int) -> Any:
        past = self._problem.past[name].some(ROWS, seed)
        history = History(task_id=name, config_space=space)
        rows = self._problem.filled(past.values)
        for row, loss in zip(rows, past.losses, strict=True):
            config = configuration_of(self._problem, space, row)
            history.update_observation(Observation(config=config, objectives=[float(loss)]))
        return history


def _maker(surrogate: str) -> Callable[[Problem, int, int], OpenboxTuner]:
    def make(problem: Problem, seed: int, trials: int) -> OpenboxTuner:
        del trials
        return OpenboxTuner(surrogate, problem, seed)

    return make


PEERS = {"openbox-rgpe": _maker("tlbo_rgpe_gp"), "openbox-sgpr": _maker("tlbo_sgpr_gp")}
