"""The neighbourhood of one configuration, for local search over mixed and conditional spaces.

Each neighbour changes one active hyperparameter: a float by a Gaussian step on the unit scale, a
count or rank by at most a tenth of its range, a category to another one. Hyperparameters that such
a change activates are drawn at random.
"""

from collections.abc import Sequence

import numpy as np

from foretune.arrays import Floats
from foretune.space.activity import Rules
from foretune.space.parameters import Kind, Parameter
from foretune.space.sampling import full_values

MOST_REDRAWS = 100
"""A Gaussian step whose centre lies in [0, 1] falls inside with probability about 1/2 or more
unless sigma is large; what is still outside after so many redraws is drawn uniformly."""


def neighbour_values(
    parameters: Sequence[Parameter],
    rules: Rules,
    origin: Floats,
    rng: np.random.Generator,
    per_parameter: int,
    sigma: float,
) -> Floats:
    """(m, H) settled, legal rows that differ from `origin` (H,), possibly with repetitions."""
    changes = [
        (column, _steps(parameter, float(origin[column]), rng, per_parameter, sigma))
        for column, parameter in enumerate(parameters)
        if not np.isnan(origin[column])
    ]
    m = sum(len(steps) for _, steps in changes)
    fresh = full_values(parameters, rng.random((m, len(parameters))))
    values = np.where(np.isnan(origin), fresh, origin)
    start = 0
    for column, steps in changes:
        values[start : start + len(steps), column] = steps
        start += len(steps)
    settled = rules.settle(values)
    return settled[~rules.forbidden(settled)]


def _steps(
    parameter: Parameter, value: float, rng: np.random.Generator, count: int, sigma: float
) -> Floats:
    """Values of one hyperparameter near `value`, never `value` itself."""
    if parameter.kind is Kind.CONSTANT:
        return np.empty(0)
    if parameter.kind is Kind.CATEGORICAL:
        others = np.delete(np.arange(len(parameter.choices), dtype=np.float64), int(value))
        return rng.permutation(others)[:count]
    if parameter.kind is Kind.FLOAT or parameter.log:
        near = parameter.from_unit(_gaussian_steps(parameter, value, rng, count, sigma))
        if parameter.kind is Kind.INT:
            near = _moved_off(parameter, value, near, rng)
        moved: Floats = near[near != value]
        return moved
    reach = max(1.0, np.floor(parameter.size / 10))
    low, high = max(parameter.low, value - reach), min(parameter.high, value + reach)
    if low == high:
        return np.empty(0)
    near = rng.integers(int(low), int(high), size=count).astype(np.float64)
    near[near >= value] += 1  # leaves out the value itself
    return near


def _moved_off(
    parameter: Parameter, value: float, near: Floats, rng: np.random.Generator
) -> Floats:
    """Integers in which a step that rounding has undone becomes one to the next integer."""
    either_side = value + rng.choice([-1.0, 1.0], size=len(near))
    inside = np.where(either_side < parameter.low, value + 1, either_side)
    inside = np.where(inside > parameter.high, value - 1, inside)
    return np.where(near == value, inside, near)


def _gaussian_steps(
    parameter: Parameter, value: float, rng: np.random.Generator, count: int, sigma: float
) -> Floats:
    centre = float(parameter.to_unit(np.array([value]))[0])
    unit = rng.normal(centre, sigma, size=count)
    for _ in range(MOST_REDRAWS):
        outside = (unit < 0) | (unit > 1)
        if not outside.any():
            return unit
        unit[outside] = rng.normal(centre, sigma, size=int(outside.sum()))
    outside = (unit < 0) | (unit > 1)
    unit[outside] = rng.random(int(outside.sum()))
    return unit
