"""Pairs of a task and a configuration, as configurations of one space.

A trial of a live build is such a pair. So studies, stores, executors and commands treat it as they
treat every trial.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from foretune._base.arrays import Ints
from foretune.space import Encoded, Space

TASK = "task"


class PairSpace:
    """A space with one more hyperparameter: the task."""

    def __init__(self, space: Space, tasks: Sequence[str]) -> None:
        self.space, self.tasks = space, tuple(tasks)
        self.task_name = TASK
        while self.task_name in space.names:
            self.task_name += "_"
        self.pairs = space.union(Space.of({self.task_name: list(tasks)}))

    def join(self, task: int, config: dict[str, Any]) -> dict[str, Any]:
        """Return the pair of a task, by position, and a configuration."""
        return {self.task_name: self.tasks[task], **config}

    def split(self, pair: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """Return the name of the task, and the configuration."""
        return str(pair[self.task_name]), {n: v for n, v in pair.items() if n != self.task_name}

    def read(self, pairs: Encoded) -> tuple[Ints, Encoded]:
        """Return the positions of the tasks (n,), and the configurations."""
        places = self._task_places[pairs.values[:, self._task_column].astype(np.int64)]
        return places, self.space.from_values(pairs.values[:, self._columns])

    @cached_property
    def _task_column(self) -> int:
        return self.pairs.names.index(self.task_name)

    @cached_property
    def _columns(self) -> list[int]:
        return [self.pairs.names.index(name) for name in self.space.names]

    @cached_property
    def _task_places(self) -> Ints:
        choices = self.pairs.parameters[self._task_column].choices
        return np.array([self.tasks.index(str(name)) for name in choices])
