"""The neighbourhoods of configurations, for local search over mixed and conditional spaces.

Each neighbour changes one active hyperparameter: a float by a Gaussian step on the unit scale, an
integer or rank by at most a tenth of its range, a category to another one. Hyperparameters that
become active get random values.
"""

from collections.abc import Sequence

import numpy as np

from foretune._base.arrays import Floats, Ints
from foretune.space.conditions import Rules
from foretune.space.parameters import Kind, Parameter

MOST_REDRAWS = 100
"""A Gaussian step from a centre in [0, 1] stays inside with probability of about 1/2 or more,
unless sigma is large. After this number of redraws, steps that are still outside are uniform."""

MOST_CELLS = 2**20
"""The most numbers in the neighbours of one call. If all neighbours would have more, only a random
part of the hyperparameters is changed, because thousands of them would take gigabytes."""
LEAST_ROWS = 200


def neighbour_values(
    parameters: Sequence[Parameter],
    rules: Rules,
    origins: Floats,
    rng: np.random.Generator,
    per_parameter: int,
    sigma: float,
) -> tuple[Floats, Ints]:
    """Return settled, legal rows (m, H), and the row of `origins` (n, H) that each belongs to.

    Every row differs from its origin, and rows of one origin may repeat. There are at most
    `MOST_CELLS` numbers or `LEAST_ROWS` rows, but each origin has neighbours.
    """
    per_parameter, some = _affordable(len(origins), len(parameters), per_parameter, rng)
    owners, columns, steps = [], [], []
    for column in some:
        active = np.flatnonzero(~np.isnan(origins[:, column]))
        moved = _steps(parameters[column], origins[active, column], rng, per_parameter, sigma)
        row, number = np.nonzero(~np.isnan(moved))
        owners.append(active[row])
        columns.append(np.full(len(row), column))
        steps.append(moved[row, number])
    owner = np.concatenate(owners)
    values = origins[owner]
    _fill(parameters, values, rng)
    values[np.arange(len(owner)), np.concatenate(columns)] = np.concatenate(steps)
    settled = rules.settle(values)
    legal = ~rules.forbidden(settled)
    return settled[legal], owner[legal]


def _affordable(
    origins: int, parameters: int, per_parameter: int, rng: np.random.Generator
) -> tuple[int, list[int]]:
    """Return the number of steps for each hyperparameter, and the hyperparameters to change."""
    most = max(MOST_CELLS // parameters, LEAST_ROWS) // max(origins, 1)
    if per_parameter * parameters <= most:
        return per_parameter, list(range(parameters))
    count = max(most // parameters, 1)
    some = rng.choice(parameters, min(parameters, max(most, 1)), replace=False)
    return count, sorted(some.tolist())


def _fill(parameters: Sequence[Parameter], values: Floats, rng: np.random.Generator) -> None:
    """Replace inactive values by random ones, in place."""
    missing = np.isnan(values)
    unit = rng.random(values.shape)
    for column in np.flatnonzero(missing.any(axis=0)).tolist():
        rows = missing[:, column]
        values[rows, column] = parameters[column].quantile(unit[rows, column])


def _steps(
    parameter: Parameter, values: Floats, rng: np.random.Generator, count: int, sigma: float
) -> Floats:
    """Return (n, count) values near each of `values` (n,), never the value itself; NaN is none."""
    shape = (len(values), count)
    if parameter.kind is Kind.CATEGORICAL:
        return _other_choices(parameter, values, rng, count)
    if parameter.kind is Kind.FLOAT or parameter.log:
        near = parameter.from_unit(_gaussian_steps(parameter, values, rng, count, sigma))
        if parameter.kind is Kind.INT:
            near = _move_off(parameter, values[:, None], near, rng)
        return np.where(near == values[:, None], np.nan, near)
    reach = max(1.0, np.floor(parameter.size / 10))
    low = np.maximum(parameter.low, values - reach)[:, None]
    high = np.minimum(parameter.high, values + reach)[:, None]
    near = low + np.floor(rng.random(shape) * (high - low))
    near[near >= values[:, None]] += 1  # skips the value itself
    return np.where(low == high, np.nan, near)


def _other_choices(
    parameter: Parameter, values: Floats, rng: np.random.Generator, count: int
) -> Floats:
    """Return (n, at most count) choices other than each of `values`, in random order."""
    shape = (len(values), len(parameter.choices))
    order = rng.permuted(np.broadcast_to(np.arange(shape[1], dtype=np.float64), shape), axis=1)
    others: Floats = order[order != values[:, None]].reshape(shape[0], shape[1] - 1)
    return others[:, :count]


def _move_off(
    parameter: Parameter, values: Floats, near: Floats, rng: np.random.Generator
) -> Floats:
    """Replace integers that rounding moved back by an adjacent integer."""
    either_side = values + rng.choice([-1.0, 1.0], size=near.shape)
    inside = np.where(either_side < parameter.low, values + 1, either_side)
    inside = np.where(inside > parameter.high, values - 1, inside)
    return np.where(near == values, inside, near)


def _gaussian_steps(
    parameter: Parameter, values: Floats, rng: np.random.Generator, count: int, sigma: float
) -> Floats:
    """Return (n, count) points of the unit interval, normally distributed about each value."""
    centres = np.broadcast_to(parameter.to_unit(values)[:, None], (len(values), count))
    unit = rng.normal(centres, sigma)
    for _ in range(MOST_REDRAWS):
        outside = (unit < 0) | (unit > 1)
        if not outside.any():
            return unit
        unit[outside] = rng.normal(centres[outside], sigma)
    outside = (unit < 0) | (unit > 1)
    unit[outside] = rng.random(int(outside.sum()))
    return unit
