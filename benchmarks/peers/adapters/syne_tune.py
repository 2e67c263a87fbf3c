"""Syne Tune's transfer: copula Thompson sampling, bounding box, zero-shot; on a flat space.

The bounding box is searched by Syne Tune's Bayesian optimisation. Its zero-shot portfolio needs
configurations that every past task knows, and where it makes these up itself they differ from task
to task; so the best ones of past tasks are given to it, with the losses of the nearest recorded
ones. Its scheduler would draw at random, but `get_config` follows the portfolio.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from benchmarks.peers.adapters.syne_tune_space import make_domain
from benchmarks.peers.objective import Floats, Parameter, Past, Problem
from syne_tune.optimizer.baselines import BOTorch
from syne_tune.optimizer.schedulers.ask_tell_scheduler import AskTellScheduler
from syne_tune.optimizer.schedulers.single_objective_scheduler import SingleObjectiveScheduler
from syne_tune.optimizer.schedulers.transfer_learning.bounding_box import BoundingBox
from syne_tune.optimizer.schedulers.transfer_learning.quantile_based.quantile_based_searcher import (  # noqa: E501
    QuantileBasedSurrogateSearcher,
)
from syne_tune.optimizer.schedulers.transfer_learning.transfer_learning_task_evaluation import (
    TransferLearningTaskEvaluations,
)
from syne_tune.optimizer.schedulers.transfer_learning.zero_shot import ZeroShotTransfer

PORTFOLIO_CANDIDATES = 500
METRIC = "loss"


class SyneTuneTuner:
    """A scheduler that is asked and told."""

    def __init__(self, problem: Problem, scheduler: Any) -> None:
        self._problem, self._scheduler = problem, AskTellScheduler(scheduler)
        self._trial: Any = None

    def ask(self) -> Floats:
        self._trial = self._scheduler.ask()
        return _row(self._problem, self._trial.config)

    def tell(self, row: Floats, loss: float) -> None:
        del row
        self._scheduler.tell(self._trial, {METRIC: loss})


class Portfolio:
    """The zero-shot configurations, one after the other."""

    def __init__(self, problem: Problem, seed: int, trials: int) -> None:
        del trials
        self._problem = problem
        rows = _best_of_all(problem)
        losses = {name: _known(problem, past, rows) for name, past in problem.past.items()}
        past = {name: _evaluations(problem, Past(rows, y)) for name, y in losses.items()}
        self._zero_shot = ZeroShotTransfer(
            _space(problem),
            METRIC,
            past,
            sort_transfer_learning_evaluations=False,
            random_seed=seed,
        )

    def ask(self) -> Floats:
        return _row(self._problem, self._zero_shot.get_config())

    def tell(self, row: Floats, loss: float) -> None:
        del row, loss


def _best_of_all(problem: Problem) -> Floats:
    """Return the best rows of the past tasks, equally many of each, and no row twice."""
    each = -(-PORTFOLIO_CANDIDATES // len(problem.past))
    best = [past.values[np.argsort(past.losses)[:each]] for past in problem.past.values()]
    return np.unique(np.concatenate(best), axis=0)


def _known(problem: Problem, past: Past, rows: Floats) -> Floats:
    table = Problem(problem.task, problem.parameters, past.values, past.losses, {}, "", ())
    return np.array([table.loss(row) for row in rows])


def _space(problem: Problem) -> dict[str, Any]:
    return {parameter.name: make_domain(parameter) for parameter in problem.parameters}


def _evaluations(problem: Problem, past: Past) -> TransferLearningTaskEvaluations:
    columns = problem.filled(past.values).T
    frame = pd.DataFrame(
        {p.name: _column(p, column) for p, column in zip(problem.parameters, columns, strict=True)}
    )
    losses = past.losses.reshape(-1, 1, 1, 1)
    return TransferLearningTaskEvaluations(_space(problem), frame, [METRIC], losses)


def _column(parameter: Parameter, values: Floats) -> list[Any]:
    kinds: dict[str, Callable[[float], Any]] = {
        "categorical": lambda value: str(int(value)),
        "float": float,
    }
    return [kinds.get(parameter.kind, int)(value) for value in values]


def _row(problem: Problem, config: dict[str, Any]) -> Floats:
    return np.array([float(config[parameter.name]) for parameter in problem.parameters])


def _past(problem: Problem) -> dict[str, TransferLearningTaskEvaluations]:
    return {name: _evaluations(problem, past) for name, past in problem.past.items()}


def cts(problem: Problem, seed: int, trials: int) -> SyneTuneTuner:
    """Copula Thompson sampling."""
    del trials
    space = _space(problem)
    searcher = QuantileBasedSurrogateSearcher(space, _past(problem), random_seed=seed)
    scheduler = SingleObjectiveScheduler(space, METRIC, do_minimize=True, searcher=searcher)
    return SyneTuneTuner(problem, scheduler)


def box(problem: Problem, seed: int, trials: int) -> SyneTuneTuner:
    """Bayesian optimisation in the box around past tasks' best configurations."""
    del trials

    def search(space: dict[str, Any], metric: str, do_minimize: bool, random_seed: int) -> Any:
        return BOTorch(space, metric, do_minimize=do_minimize, random_seed=random_seed)

    scheduler = BoundingBox(
        search, _space(problem), METRIC, _past(problem), do_minimize=True, random_seed=seed
    )
    return SyneTuneTuner(problem, scheduler)


PEERS = {"syne-tune-cts": cts, "syne-tune-box": box, "syne-tune-zero-shot": Portfolio}
