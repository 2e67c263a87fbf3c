"""Checks of a whole space, and of the matrices that are given to it."""

from collections.abc import Sequence

import numpy as np

from foretune._base.arrays import Floats
from foretune.errors import SpaceError
from foretune.space.conditions import Rules
from foretune.space.configspace_reader import check_forbidden
from foretune.space.definition import Definition
from foretune.space.parameters import Kind, Parameter


def check_defaults(definition: Definition, parameters: Sequence[Parameter], rules: Rules) -> None:
    """Refuse a space whose default configuration is not legal, as ConfigSpace does."""
    settled = rules.settle(np.array([[p.number_of(p.default) for p in parameters]], np.float64))
    active = {
        p.name for p, number in zip(parameters, settled[0], strict=True) if not np.isnan(number)
    }
    doubtful = active ^ definition.active_by_default()
    if doubtful:
        raise SpaceError(
            "a space must be one that ConfigSpace accepts, but it cannot tell whether "
            f"'{min(doubtful)}' is active by default, because its parent is not: use another "
            "condition than 'not equal' there",
            rule="unclear-default",
            field=min(doubtful),
        )
    try:
        check_forbidden(parameters, rules, settled)
    except SpaceError as error:
        raise SpaceError(
            f"forbidden clauses must allow the default configuration, but {error}",
            rule="forbidden-default",
            field=error.field,
        ) from None


def check_stages(parameters: Sequence[Parameter], stages: Sequence[str]) -> None:
    """Refuse names of stages that are no choices of the space."""
    for name in stages:
        kind = next((p.kind for p in parameters if p.name == name), None)
        if kind not in (Kind.CATEGORICAL, Kind.CONSTANT):
            raise SpaceError(
                "a stage must be a categorical or constant hyperparameter of the space, but "
                f"'{name}' is {kind or 'unknown'}: name another",
                rule="not-a-stage",
                field=name,
                value=kind,
            )


def check_matrix(given: Floats, width: int, name: str) -> Floats:
    """Return a matrix of floats with `width` columns."""
    matrix = np.asarray(given, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[1] != width:
        raise SpaceError(
            f"{name} must be a matrix with {width} columns, but got the shape "
            f"{matrix.shape}: reshape it",
            rule="wrong-shape",
            field=name,
            value=matrix.shape,
        )
    return matrix
