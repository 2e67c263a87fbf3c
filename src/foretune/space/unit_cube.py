"""Configurations as numbers: the unit cube, and one code for each hyperparameter."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from foretune._base.arrays import Floats
from foretune.errors import SpaceError
from foretune.space.parameters import Kind, Parameter

INACTIVE_NUMBER = 0.5
"""An inactive number lies in the middle of the unit interval, equally far from both ends."""
INACTIVE_CODE = -1.0


def unit_points(parameters: Sequence[Parameter], values: Floats) -> Floats:
    """Return (n, W) points of the unit cube for exact values (n, H)."""
    width = parameters[-1].columns.stop
    x = np.empty((len(values), width))
    for column, parameter in enumerate(parameters):
        x[:, parameter.columns] = _unit_columns(parameter, values[:, column])
    return x


def _unit_columns(parameter: Parameter, values: Floats) -> Floats:
    """Return (n, width), one hyperparameter in the unit cube."""
    if parameter.kind is Kind.CONSTANT:
        return np.empty((len(values), 0))
    if parameter.kind is Kind.CATEGORICAL:
        one_hot: Floats = np.equal(values[:, None], np.arange(len(parameter.choices))) * 1.0
        return one_hot
    unit = parameter.to_unit(values)
    return np.where(np.isnan(unit), INACTIVE_NUMBER, unit)[:, None]


def unit_codes(parameters: Sequence[Parameter], values: Floats) -> Floats:
    """Return (n, H), one column for each hyperparameter in [0, 1], and -1 where inactive."""
    units = [p.to_unit(values[:, column]) for column, p in enumerate(parameters)]
    return np.where(np.isnan(values), INACTIVE_CODE, np.column_stack(units))


def nearest_values(parameters: Sequence[Parameter], x: Floats) -> Floats:
    """Return (n, H) values nearest to points of the unit cube, as if all were active."""
    if np.isnan(x).any():
        raise SpaceError(
            "points of the unit cube must be numbers, but got NaN: replace it",
            rule="nan-in-unit-cube",
            field="x",
        )
    x = np.clip(x, 0.0, 1.0)
    values = np.zeros((len(x), len(parameters)))
    for column, parameter in enumerate(parameters):
        if parameter.kind is Kind.CATEGORICAL:
            values[:, column] = np.argmax(x[:, parameter.columns], axis=1)
        elif parameter.kind is not Kind.CONSTANT:
            values[:, column] = parameter.from_unit(x[:, parameter.columns.start])
    return values


def to_dicts(parameters: Sequence[Parameter], values: Floats) -> list[dict[str, Any]]:
    """Return exact values (n, H) as dicts that hold only what is active, in this order."""
    rows: list[dict[str, Any]] = [{} for _ in range(len(values))]
    for column, parameter in enumerate(parameters):
        active = np.flatnonzero(~np.isnan(values[:, column]))
        objects = _objects(parameter, values[active, column])
        for row, value in zip(active.tolist(), objects, strict=True):
            rows[row][parameter.name] = value
    return rows


def _objects(parameter: Parameter, values: Floats) -> list[Any]:
    """Return values as the Python objects that a user knows."""
    if parameter.kind is Kind.FLOAT:
        return list(values.tolist())
    whole = values.astype(np.int64).tolist()
    if parameter.kind is Kind.INT:
        return list(whole)
    return [parameter.choices[index] for index in whole]
