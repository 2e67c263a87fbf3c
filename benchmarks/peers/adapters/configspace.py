"""A problem's space as a ConfigurationSpace, for the peers that read one."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from benchmarks.peers.objective import Floats, Parameter, Problem
from ConfigSpace import (
    AndConjunction,
    CategoricalHyperparameter,
    Configuration,
    ConfigurationSpace,
    InCondition,
    UniformFloatHyperparameter,
    UniformIntegerHyperparameter,
)


def space_of(problem: Problem, seed: int, *, conditional: bool) -> ConfigurationSpace:
    """Make the space. Its names are numbers, because a peer may refuse names of the table."""
    space = ConfigurationSpace(seed=seed)
    made = [_hyperparameter(f"p{i}", p) for i, p in enumerate(problem.parameters)]
    if hasattr(space, "add"):
        space.add(made)
    else:  # of before ConfigSpace 1.0
        space.add_hyperparameters(made)
    if conditional:
        space.add(list(_conditions(problem, made)))
    return space


def row_of(problem: Problem, configuration: Any) -> Floats:
    """Return the row of a Configuration, with NaN for what it lacks."""
    plain = dict(configuration)
    return np.array([float(plain.get(f"p{i}", np.nan)) for i in range(len(problem.parameters))])


def configuration_of(problem: Problem, space: ConfigurationSpace, row: Floats) -> Configuration:
    """Return a row as a Configuration of the space."""
    values = {
        f"p{i}": float(value) if parameter.kind == "float" else int(value)
        for i, (parameter, value) in enumerate(zip(problem.parameters, row, strict=True))
        if not np.isnan(value)
    }
    return Configuration(space, values=values)


def _conditions(problem: Problem, made: Sequence[Any]) -> Iterator[Any]:
    for child, parameter in zip(made, problem.parameters, strict=True):
        conditions = [
            InCondition(child, made[parent], [int(value) for value in allowed])
            for parent, allowed in parameter.parents
        ]
        if conditions:
            yield conditions[0] if len(conditions) == 1 else AndConjunction(*conditions)


def _hyperparameter(name: str, parameter: Parameter) -> Any:
    if parameter.kind == "categorical":
        return CategoricalHyperparameter(name, list(range(parameter.choices)))
    if parameter.kind == "float":
        return UniformFloatHyperparameter(name, parameter.low, parameter.high, log=parameter.log)
    low, high = int(parameter.low), int(parameter.high)
    return UniformIntegerHyperparameter(name, low, high, log=parameter.log)
