"""Stages, their algorithms, and the algorithms' hyperparameters, found from the conditions.

A stage is a categorical (or constant) without a parent on which other hyperparameters depend, or
one that the user has marked. Its choices are its algorithms. Everything below it belongs to the
algorithms for which it can be active. Hyperparameters without conditions are common.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from ConfigSpace import conditions as given

from foretune._base.arrays import Floats, Ints
from foretune.space.definition import Definition
from foretune.space.parameters import Kind, Parameter

COMMON = "common"


@dataclass(frozen=True, slots=True)
class Algorithm:
    """One choice of a stage, with the indices of the hyperparameters it uses."""

    name: str
    parameters: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Stage:
    """A step of a pipeline where one of several algorithms is chosen."""

    name: str
    choice: int | None
    """The index of the hyperparameter that chooses; None for the common stage."""
    algorithms: tuple[Algorithm, ...]


@dataclass(frozen=True, slots=True)
class Structure:
    """The stages of a space, the common one last."""

    stages: tuple[Stage, ...]
    fits: bool
    """False if the conditions have another shape; then everything is one common stage."""

    @property
    def kind(self) -> Literal["flat", "cash", "pipeline"]:
        """`flat` without a stage, `cash` with one, `pipeline` with several."""
        choices = sum(stage.choice is not None for stage in self.stages)
        return "flat" if choices == 0 else "cash" if choices == 1 else "pipeline"

    def algorithm_of(self, values: Floats) -> Ints:
        """Return (n, number of stages), the index of the algorithm, -1 where inactive.

        values: (n, H), as in `Encoded.values`.
        """
        chosen = np.zeros((len(values), len(self.stages)), dtype=np.int64)
        for column, stage in enumerate(self.stages):
            if stage.choice is not None:
                index = values[:, stage.choice]
                chosen[:, column] = np.where(np.isnan(index), -1, index)
        return chosen


def read_structure(definition: Definition, parameters: Sequence[Parameter]) -> Structure:
    """Return the structure of a space; the flat one if its conditions do not fit."""
    reader = _StructureReader(definition, {p.name: p for p in parameters})
    try:
        homes = {p.name: reader.home(p.name) for p in parameters}
    except _MisfitError:
        return Structure(stages=(_common(range(len(parameters))),), fits=False)
    members = _members(parameters, homes)
    stages = [
        Stage(p.name, index, _algorithms(p, members.get(p.name, ())))
        for index, p in enumerate(parameters)
        if reader.is_stage(p.name)
    ]
    common = [
        index
        for index, p in enumerate(parameters)
        if homes[p.name] is None and not reader.is_stage(p.name)
    ]
    if common:
        stages.append(_common(common))
    return Structure(stages=tuple(stages), fits=True)


@dataclass(frozen=True, slots=True)
class _Home:
    """The stage below which a hyperparameter lies, and the algorithms that can use it."""

    stage: str
    algorithms: frozenset[int]


class _MisfitError(Exception):
    """The conditions do not have the shape stage -> algorithm -> hyperparameter."""


@dataclass(slots=True)
class _StructureReader:
    definition: Definition
    parameters: Mapping[str, Parameter]
    homes: dict[str, _Home | None] = field(default_factory=dict)

    def is_stage(self, name: str) -> bool:
        parameter = self.parameters[name]
        if parameter.kind not in (Kind.CATEGORICAL, Kind.CONSTANT):
            return False
        is_root = name not in self.definition.condition_of
        return parameter.stage or (is_root and name in self.definition.parents)

    def home(self, name: str) -> _Home | None:
        if name not in self.homes:
            condition = self.definition.condition_of.get(name)
            self.homes[name] = None if condition is None else self._home_of(condition)
        return self.homes[name]

    def _home_of(self, condition: given.ConditionLike) -> _Home:
        if isinstance(condition, given.Conjunction):
            homes = [self._home_of(part) for part in condition.components]
            if len({home.stage for home in homes}) > 1:
                raise _MisfitError
            sets = [home.algorithms for home in homes]
            both = isinstance(condition, given.AndConjunction)
            joined = frozenset.intersection(*sets) if both else frozenset.union(*sets)
            return _Home(homes[0].stage, joined)
        parent = self.parameters[condition.parent.name]
        if self.is_stage(parent.name):
            return _Home(parent.name, _algorithms_for(condition, parent))
        home = self.home(parent.name)
        if home is None:
            raise _MisfitError
        if isinstance(condition, given.NotEqualsCondition):
            # An inactive parent also differs from the value, so the child can be active elsewhere.
            return _Home(home.stage, frozenset(range(len(self.parameters[home.stage].choices))))
        return home


def _algorithms_for(condition: given.Condition, stage: Parameter) -> frozenset[int]:
    """Return the algorithms of `stage` for which the condition holds."""
    if isinstance(condition, given.InCondition):
        return frozenset(int(stage.number_of(value)) for value in condition.values)
    one = frozenset([int(stage.number_of(condition.value))])
    if isinstance(condition, given.NotEqualsCondition):
        return frozenset(range(len(stage.choices))) - one
    return one


def _members(
    parameters: Sequence[Parameter], homes: Mapping[str, _Home | None]
) -> dict[str, list[tuple[int, _Home]]]:
    """Return the hyperparameters below each stage, by its name."""
    members: dict[str, list[tuple[int, _Home]]] = {}
    for index, parameter in enumerate(parameters):
        home = homes[parameter.name]
        # A marked stage may depend on another stage, but belongs to none of its algorithms.
        if home is not None and not parameter.stage:
            members.setdefault(home.stage, []).append((index, home))
    return members


def _algorithms(stage: Parameter, members: Sequence[tuple[int, _Home]]) -> tuple[Algorithm, ...]:
    owned: list[list[int]] = [[] for _ in stage.choices]
    for index, home in members:
        for algorithm in home.algorithms:
            owned[algorithm].append(index)
    return tuple(
        Algorithm(str(choice), tuple(indices))
        for choice, indices in zip(stage.choices, owned, strict=True)
    )


def _common(indices: Sequence[int]) -> Stage:
    return Stage(COMMON, None, (Algorithm(COMMON, tuple(indices)),))
