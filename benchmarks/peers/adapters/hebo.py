"""HEBO with its defaults, on a flat space."""

import warnings

import numpy as np
import pandas as pd
import torch
from benchmarks.peers.objective import Floats, Parameter, Problem
from hebo.design_space.design_space import DesignSpace
from hebo.optimizers.hebo import HEBO

torch.set_num_threads(1)
warnings.filterwarnings("ignore")


class HeboTuner:
    """HEBO's suggest and observe."""

    def __init__(self, problem: Problem, seed: int, trials: int) -> None:
        del trials
        np.random.seed(seed)
        torch.manual_seed(seed)
        self._problem = problem
        space = DesignSpace().parse([_described(p) for p in problem.parameters])
        self._hebo = HEBO(space, scramble_seed=seed)
        self._asked: pd.DataFrame

    def ask(self) -> Floats:
        self._asked = self._hebo.suggest(n_suggestions=1)
        return np.array([float(self._asked[p.name].iloc[0]) for p in self._problem.parameters])

    def tell(self, row: Floats, loss: float) -> None:
        del row
        self._hebo.observe(self._asked, np.array([[loss]]))

    def observe(self, rows: Floats, losses: Floats) -> None:
        """Take trials that were made elsewhere."""
        columns = {
            parameter.name: [_plain(parameter, value) for value in column]
            for parameter, column in zip(self._problem.parameters, rows.T, strict=True)
        }
        self._hebo.observe(pd.DataFrame(columns), losses[:, None])


def _described(parameter: Parameter) -> dict[str, object]:
    if parameter.kind == "categorical":
        choices = [str(choice) for choice in range(parameter.choices)]
        return {"name": parameter.name, "type": "cat", "categories": choices}
    kinds = {
        ("float", False): "num",
        ("float", True): "pow",
        ("int", False): "int",
        ("int", True): "pow_int",
        ("ordinal", False): "int",
    }
    kind = kinds[parameter.kind, parameter.log]
    number = float if parameter.kind == "float" else int
    low, high = number(parameter.low), number(parameter.high)
    return {"name": parameter.name, "type": kind, "lb": low, "ub": high}


def _plain(parameter: Parameter, value: float) -> float | int | str:
    if parameter.kind == "float":
        return float(value)
    return str(int(value)) if parameter.kind == "categorical" else int(value)


PEERS = {"hebo": HeboTuner}
