"""The value of one hyperparameter, converted between Optuna and a space."""

import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from foretune.errors import SpaceError
from foretune.space import Kind, Parameter, Space
from foretune.space.parameters import choice_key
from foretune.stores.optuna.distributions import from_distributions

ROUNDING = 1e-9
"""A value this far beyond a bound, relative to the range, counts as the bound."""


class Unfit:
    """The type of `UNFIT`, which stands for a value that the other side cannot hold."""


UNFIT = Unfit()


def to_space_value(parameter: Parameter, value: Any) -> Any:
    """Return a trial's value as the space writes it, or UNFIT."""
    if parameter.is_number:
        return _number_in_space(parameter, value)
    if parameter.kind is Kind.ORDINAL and _is_number(value):
        return _on_grid(parameter, float(value))
    index = parameter.index_of(value)
    return UNFIT if index is None else parameter.choices[index]


def to_optuna_value(distribution: BaseDistribution, value: Any) -> Any:
    """Return a value of the space as the distribution would have drawn it, or UNFIT."""
    if isinstance(distribution, CategoricalDistribution):
        key = choice_key(value)
        return next((own for own in distribution.choices if choice_key(own) == key), UNFIT)
    if not isinstance(distribution, FloatDistribution | IntDistribution) or not _is_number(value):
        return UNFIT
    low, high = float(distribution.low), float(distribution.high)
    near = _within(low, high, float(value))
    if near is None:
        return UNFIT
    if isinstance(distribution, IntDistribution):
        steps = round((near - low) / distribution.step)
        return min(distribution.low + steps * distribution.step, distribution.high)
    if distribution.step is None:
        return near
    pace = Decimal(str(distribution.step))
    steps = round((near - low) / distribution.step)
    return min(float(Decimal(str(low)) + steps * pace), high)


def representable(distributions: Mapping[str, BaseDistribution]) -> dict[str, BaseDistribution]:
    """Return the distributions that a space can hold and that leave something to choose."""
    return {
        name: distribution
        for name, distribution in distributions.items()
        if not distribution.single() and _has_space(name, distribution)
    }


def has_plain_values(distribution: BaseDistribution) -> bool:
    """Return whether a space can hold all values. Optuna's choices may be any objects."""
    return not isinstance(distribution, CategoricalDistribution) or all(
        choice is None or isinstance(choice, str | bool) or _is_number(choice)
        for choice in distribution.choices
    )


def _has_space(name: str, distribution: BaseDistribution) -> bool:
    if not has_plain_values(distribution):
        return False
    try:
        Space.of(from_distributions({name: distribution}, rounded_later=True))
    except (SpaceError, ValueError, TypeError):  # ConfigSpace raises errors of these types
        return False
    return True


def _number_in_space(parameter: Parameter, value: Any) -> Any:
    if not _is_number(value):
        return UNFIT
    near = _within(parameter.low, parameter.high, float(value))
    if near is None:
        return UNFIT
    if parameter.kind is Kind.FLOAT:
        return near
    return round(near) if near == round(near) else UNFIT


def _on_grid(parameter: Parameter, value: float) -> Any:
    """Return the grid point nearest to a number; UNFIT if it lies outside the grid."""
    points = [choice for choice in parameter.choices if _is_number(choice)]
    # An order may be descending, or may not be one of size.
    if len(points) < len(parameter.choices) or _within(min(points), max(points), value) is None:
        return UNFIT
    return min(points, key=lambda point: abs(point - value))


def _within(low: float, high: float, value: float) -> float | None:
    slack = ROUNDING * (high - low)
    if not low - slack <= value <= high + slack:
        return None
    return min(max(value, low), high)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
