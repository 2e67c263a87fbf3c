"""A space as one choice among algorithms, each with its own inputs.

Methods for combined algorithm selection and hyperparameter optimisation see every space this way.
A space without a choice has one algorithm. If there are several stages, the one with the most
hyperparameters decides, which is usually the model of a pipeline. The other stages and their
hyperparameters are inputs of all its algorithms.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from foretune._base.arrays import Floats, Ints
from foretune.space.space import Encoded, Space
from foretune.space.structure import COMMON, Stage


@dataclass(frozen=True)
class Algorithms:
    """The algorithms of a space; `Algorithms.of` makes it."""

    choice: int | None
    """The index of the hyperparameter that chooses; None if there is one algorithm."""
    names: tuple[str, ...]
    columns: tuple[Ints, ...]
    """For each algorithm, the columns of `Encoded.x` that it reads (perhaps none)."""

    @staticmethod
    def of(space: Space) -> "Algorithms":
        """Return the algorithms of the largest stage that every configuration has."""
        stage = _deciding_stage(space)
        if stage is None:
            return Algorithms(None, (COMMON,), (np.arange(space.width),))
        shared = set(range(len(space))) - _own_parameters(stage) - {stage.choice}
        return Algorithms(
            stage.choice,
            tuple(algorithm.name for algorithm in stage.algorithms),
            tuple(_columns(space, shared.union(a.parameters)) for a in stage.algorithms),
        )

    def __len__(self) -> int:
        return len(self.names)

    @property
    def width(self) -> int:
        """The largest number of columns that an algorithm reads, at least 1."""
        return max(1, *(len(columns) for columns in self.columns))

    def algorithm_of(self, x: Encoded) -> Ints:
        """Return (n,), the algorithm of each configuration."""
        if self.choice is None:
            return np.zeros(len(x), dtype=np.int64)
        return x.values[:, self.choice].astype(np.int64)

    def inputs(self, x: Encoded) -> Floats:
        """Return (n, width), the inputs of each configuration's algorithm, padded with zeros."""
        padded = np.column_stack([x.x, np.zeros(len(x))])
        return np.take_along_axis(padded, self._table[self.algorithm_of(x)], axis=1)

    @cached_property
    def _table(self) -> Ints:
        """(algorithms, width), columns of an `x` to which a column of zeros was added."""
        table = np.full((len(self), self.width), -1, dtype=np.int64)
        for row, columns in zip(table, self.columns, strict=True):
            row[: len(columns)] = columns
        return table


def _deciding_stage(space: Space) -> Stage | None:
    """Return the unconditional stage with the most hyperparameters, if there is one."""
    names, conditions = space.names, space.definition.condition_of
    always = [
        stage
        for stage in space.structure.stages
        if stage.choice is not None and names[stage.choice] not in conditions
    ]
    return max(always, key=lambda stage: len(_own_parameters(stage)), default=None)


def _own_parameters(stage: Stage) -> set[int]:
    """Return the hyperparameters that belong to some algorithm of the stage."""
    return {index for algorithm in stage.algorithms for index in algorithm.parameters}


def _columns(space: Space, parameters: set[int]) -> Ints:
    slices = [space.parameters[index].columns for index in sorted(parameters)]
    return np.concatenate([np.empty(0, np.int64), *(np.arange(s.start, s.stop) for s in slices)])
