"""Optuna: the TPE sampler and the GP sampler, with their defaults.

TPE is asked parameter by parameter, so that it knows of conditions; the GP samples one flat space.
"""

from typing import Any

import numpy as np
import optuna
from benchmarks.peers.objective import Floats, Parameter, Problem

optuna.logging.set_verbosity(optuna.logging.ERROR)


class OptunaTuner:
    """A study that is asked and told."""

    def __init__(
        self, problem: Problem, sampler: Any, *, conditional: bool, pruner: Any = None
    ) -> None:
        self._problem = problem
        # The Hyperband pruner draws the bracket of a trial from this name, which is else random.
        self._study = optuna.create_study(sampler=sampler, pruner=pruner, study_name="peer")
        self._conditional = conditional
        self._trial: Any = None

    def ask(self) -> Floats:
        parameters = self._problem.parameters
        if not self._conditional:
            self._trial = self._study.ask({p.name: _distribution(p) for p in parameters})
            return np.array([float(self._trial.params[p.name]) for p in parameters])
        self._trial = self._study.ask()
        row = np.full(len(parameters), np.nan)
        for place, parameter in enumerate(parameters):
            if all(row[parent] in allowed for parent, allowed in parameter.parents):
                row[place] = _suggested(self._trial, parameter)
        return row

    def tell(self, row: Floats, loss: float) -> None:
        del row
        self._study.tell(self._trial, loss)

    def report(self, step: int, loss: float) -> bool:
        """Report a step of the trial, and return whether the pruner stops it."""
        self._trial.report(loss, step)
        return bool(self._trial.should_prune())

    def prune(self) -> None:
        """End the trial before its last step."""
        self._study.tell(self._trial, state=optuna.trial.TrialState.PRUNED)

    def end(self, loss: float) -> None:
        """End the trial at its last step; without a finite loss it has failed."""
        if np.isfinite(loss):
            self._study.tell(self._trial, loss)
        else:
            self._study.tell(self._trial, state=optuna.trial.TrialState.FAIL)


def _distribution(parameter: Parameter) -> Any:
    if parameter.kind == "categorical":
        return optuna.distributions.CategoricalDistribution(list(range(parameter.choices)))
    if parameter.kind == "float":
        return optuna.distributions.FloatDistribution(
            parameter.low, parameter.high, log=parameter.log
        )
    return optuna.distributions.IntDistribution(
        int(parameter.low), int(parameter.high), log=parameter.log
    )


def _suggested(trial: Any, parameter: Parameter) -> float:
    if parameter.kind == "categorical":
        return float(trial.suggest_categorical(parameter.name, list(range(parameter.choices))))
    if parameter.kind == "float":
        return float(
            trial.suggest_float(parameter.name, parameter.low, parameter.high, log=parameter.log)
        )
    low, high = int(parameter.low), int(parameter.high)
    return float(trial.suggest_int(parameter.name, low, high, log=parameter.log))


def tpe(problem: Problem, seed: int, trials: int) -> OptunaTuner:
    """`TPESampler`."""
    del trials
    return OptunaTuner(problem, optuna.samplers.TPESampler(seed=seed), conditional=True)


def gp(problem: Problem, seed: int, trials: int) -> OptunaTuner:
    """`GPSampler`."""
    del trials
    return OptunaTuner(problem, optuna.samplers.GPSampler(seed=seed), conditional=False)


PEERS = {"optuna-tpe": tpe, "optuna-gp": gp}
