"""Optuna's TPE with its pruners, all with their defaults.

The Hyperband pruner is given the number of steps. Optuna cannot continue a pruned trial.
"""

import math
from collections.abc import Callable
from functools import partial
from itertools import count

import optuna
from benchmarks.peers.adapters.optuna import OptunaTuner
from benchmarks.peers.curve_play import Work
from benchmarks.peers.curve_problem import CurveProblem


class PrunedStudy:
    """A study whose pruner is asked after each step."""

    def __init__(
        self,
        setting: CurveProblem,
        seed: int,
        pruner: Callable[[int], optuna.pruners.BasePruner],
    ) -> None:
        sampler = optuna.samplers.TPESampler(seed=seed)
        last = setting.ticks[1]
        self._tuner = OptunaTuner(setting.problem, sampler, conditional=True, pruner=pruner(last))
        self._numbers = count()

    def ask(self) -> Work:
        """Begin a trial."""
        return Work(next(self._numbers), self._tuner.ask())

    def report(self, work: Work, tick: int, loss: float) -> bool:
        """Ask the pruner."""
        del work
        return not self._tuner.report(tick, loss)

    def end(self, work: Work, tick: int, loss: float, complete: bool) -> None:
        """Tell the study."""
        del work, tick
        if complete:
            self._tuner.end(loss if math.isfinite(loss) else math.nan)
        else:
            self._tuner.prune()


PEERS = {
    "optuna-tpe": partial(PrunedStudy, pruner=lambda _: optuna.pruners.NopPruner()),
    "optuna-tpe-hyperband": partial(
        PrunedStudy, pruner=lambda last: optuna.pruners.HyperbandPruner(max_resource=last)
    ),
    "optuna-tpe-median": partial(PrunedStudy, pruner=lambda _: optuna.pruners.MedianPruner()),
}
