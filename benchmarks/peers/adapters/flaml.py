"""FLAML: CFO and BlendSearch on a flat space, by the searchers' own suggest and report.

Both are local searches that begin at a point of low cost; the tables have no cost, so they begin
in the middle of the space.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from benchmarks.peers.objective import Floats, Parameter, Problem
from flaml import CFO, BlendSearch, tune


class FlamlTuner:
    """A searcher that is asked and told."""

    def __init__(self, searcher: Any, problem: Problem) -> None:
        self._searcher, self._problem = searcher, problem
        self._trial = -1
        self._config: dict[str, float] = {}

    def ask(self) -> Floats:
        # A searcher may decline to suggest; the next trial's number asks it again.
        for _ in range(1000):
            self._trial += 1
            config = self._searcher.suggest(str(self._trial))
            if config is not None:
                self._config = config
                return np.array([float(config[p.name]) for p in self._problem.parameters])
        raise RuntimeError("FLAML has nothing more to suggest")

    def tell(self, row: Floats, loss: float) -> None:
        del row
        result = {"loss": loss, "config": self._config}
        self._searcher.on_trial_complete(str(self._trial), result)


def _domain(parameter: Parameter) -> Any:
    if parameter.kind == "categorical":
        return tune.choice(list(range(parameter.choices)))
    if parameter.kind == "float":
        make = tune.loguniform if parameter.log else tune.uniform
        return make(parameter.low, parameter.high)
    make = tune.lograndint if parameter.log else tune.randint
    return make(int(parameter.low), int(parameter.high) + 1)


def _maker(searcher: type) -> Callable[[Problem, int, int], FlamlTuner]:
    def make(problem: Problem, seed: int, trials: int) -> FlamlTuner:
        np.random.seed(seed)
        middle = {p.name: _plain(p, p.from_unit(0.5)) for p in problem.parameters}
        made = searcher(
            metric="loss",
            mode="min",
            space={p.name: _domain(p) for p in problem.parameters},
            low_cost_partial_config=middle,
            seed=seed,
            num_samples=trials,
        )
        return FlamlTuner(made, problem)

    return make


def _plain(parameter: Parameter, value: float) -> float | int:
    return value if parameter.kind == "float" else int(value)


PEERS = {"flaml-cfo": _maker(CFO), "flaml-blendsearch": _maker(BlendSearch)}
