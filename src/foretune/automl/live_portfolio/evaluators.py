"""What a worker runs for a pair: a configuration on a table, or a function of the user's."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foretune.automl.evaluation import Protocol, evaluate
from foretune.automl.worker_libraries import LIBRARIES
from foretune.automl.worker_tables import load_libraries, open_table
from foretune.run.named_function import NamedFunction
from foretune.run.running_trial import RunningTrial, call_with_trial
from foretune.run.trial_results import plain
from foretune.run.worker_start import libraries_of
from foretune.tables import Table


@dataclass(frozen=True, slots=True)
class TablePairEvaluator:
    """Evaluates configurations of a shipped space on tables, in files or in memory."""

    tables: Mapping[str, Path | Table]
    protocol: Protocol
    task_name: str
    """The name of the hyperparameter that holds the task."""

    @property
    def libraries(self) -> tuple[str, ...]:
        """The modules that a fork server imports before it forks a worker."""
        return ("foretune.automl.live_portfolio.evaluators", *LIBRARIES)

    def prepare(self) -> None:
        """Load the libraries while the worker starts."""
        load_libraries()

    def __call__(self, pair: dict[str, Any]) -> dict[str, float]:
        """Return the values of all metrics."""
        table = self.tables[pair[self.task_name]]
        config = {name: value for name, value in pair.items() if name != self.task_name}
        whole = open_table(table) if isinstance(table, Path) else table
        return evaluate(config, whole, self.protocol).values


@dataclass(frozen=True)
class PairFunction:
    """Calls a function of the user's with a configuration, a task, and the trial if it takes one.

    The trial lets the function report steps, as in `foretune tune`. A function that yields
    `(step, value)` reports as well.
    """

    function: Callable[..., Any] | NamedFunction
    tasks: Mapping[str, Any]
    """{name: what the function gets}"""
    task_name: str

    @property
    def libraries(self) -> tuple[str, ...]:
        """The modules that a fork server may import for it."""
        return libraries_of(self._plain)

    @property
    def _plain(self) -> Callable[..., Any]:
        named = self.function
        return named.function if isinstance(named, NamedFunction) else named

    def __call__(self, pair: dict[str, Any], trial: RunningTrial) -> Any:
        """Return what the function makes of a pair, in numbers and texts."""
        config = {name: value for name, value in pair.items() if name != self.task_name}
        function, task = self._plain, self.tasks[pair[self.task_name]]

        def with_trial(config: dict[str, Any], trial: RunningTrial) -> Any:
            return function(config, task, trial)

        def alone(config: dict[str, Any]) -> Any:
            return function(config, task)

        return plain(
            call_with_trial(with_trial if _takes_three(function) else alone, config, trial)
        )


def _takes_three(function: Callable[..., Any]) -> bool:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # of a builtin
        return False
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(each.kind in kinds and each.default is each.empty for each in parameters) >= 3
