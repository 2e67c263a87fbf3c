"""SMAC3: the facade for hyperparameter optimisation (random forest, log EI), with its defaults."""

import tempfile
from pathlib import Path

from benchmarks.peers.adapters.configspace import row_of, space_of
from benchmarks.peers.objective import Floats, Problem
from smac import HyperparameterOptimizationFacade, Scenario
from smac.runhistory.dataclasses import TrialInfo, TrialValue


class SmacTuner:
    """The facade's ask and tell."""

    def __init__(self, problem: Problem, seed: int, trials: int) -> None:
        self._problem = problem
        self._folder = tempfile.TemporaryDirectory()
        scenario = Scenario(
            space_of(problem, seed, conditional=True),
            deterministic=True,
            n_trials=trials,
            seed=seed,
            output_directory=Path(self._folder.name),
        )
        self._facade = HyperparameterOptimizationFacade(
            scenario, _never_called, overwrite=True, logging_level=False
        )
        self._asked: TrialInfo

    def ask(self) -> Floats:
        self._asked = self._facade.ask()
        return row_of(self._problem, self._asked.config)

    def tell(self, row: Floats, loss: float) -> None:
        del row
        self._facade.tell(self._asked, TrialValue(cost=loss))


def _never_called(config: object, seed: int = 0) -> float:
    raise RuntimeError(f"SMAC is asked and told, but it called the target: {config}, {seed}")


PEERS = {"smac": SmacTuner}
