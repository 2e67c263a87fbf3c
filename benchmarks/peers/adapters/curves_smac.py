"""SMAC3's facade for several fidelities: Hyperband with a random forest, with its defaults.

Budgets are steps. SMAC begins a configuration anew at each budget; here it continues where it
stopped, as a trial with a checkpoint does, and only the further steps are paid for.
"""

import tempfile
from pathlib import Path

from benchmarks.peers.adapters.configspace import row_of, space_of
from benchmarks.peers.curve_play import Work
from benchmarks.peers.curve_problem import ETA, CurveProblem
from smac import MultiFidelityFacade, Scenario
from smac.runhistory.dataclasses import TrialInfo, TrialValue

MANY = 100_000
"""The number of trials; more than the budget of a run allows."""


class SmacHyperband:
    """The facade's ask and tell."""

    def __init__(self, setting: CurveProblem, seed: int) -> None:
        self._problem = setting.problem
        self._folder = tempfile.TemporaryDirectory()
        first, last = setting.ticks
        scenario = Scenario(
            space_of(setting.problem, seed, conditional=True),
            deterministic=True,
            n_trials=MANY,
            min_budget=first,
            max_budget=last,
            seed=seed,
            output_directory=Path(self._folder.name),
        )
        self._facade = MultiFidelityFacade(
            scenario,
            _never_called,
            intensifier=MultiFidelityFacade.get_intensifier(scenario, eta=ETA),
            overwrite=True,
            logging_level=False,
        )
        self._keys: dict[object, int] = {}
        self._asked: TrialInfo

    def ask(self) -> Work:
        """Return a configuration and the step up to which SMAC wants it to run."""
        self._asked = self._facade.ask()
        key = self._keys.setdefault(self._asked.config, len(self._keys))
        return Work(key, row_of(self._problem, self._asked.config), float(self._asked.budget))

    def report(self, work: Work, tick: int, loss: float) -> bool:
        """Go on, because SMAC sees the last step only."""
        del work, tick, loss
        return True

    def end(self, work: Work, tick: int, loss: float, complete: bool) -> None:
        """Tell the loss at the budget."""
        del work, tick, complete
        self._facade.tell(self._asked, TrialValue(cost=loss))


def _never_called(config: object, seed: int = 0, budget: float = 0.0) -> float:
    raise RuntimeError(f"SMAC is asked and told, but it called: {config}, {seed}, {budget}")


PEERS = {"smac-hyperband": SmacHyperband}
