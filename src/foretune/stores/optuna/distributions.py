"""Optuna's distributions as a space."""

import sys
from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from ConfigSpace.hyperparameters import (
    CategoricalHyperparameter,
    Constant,
    Hyperparameter,
    OrdinalHyperparameter,
)

from foretune.errors import SpaceError
from foretune.space.definition import Draft
from foretune.space.limits import check_choices
from foretune.space.notation import number_range

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution, FloatDistribution

MOST_STEPS = 10_000
"""A grid finer than this would be a list too long to be useful."""


def are_distributions(candidate: Mapping[str, Any]) -> bool:
    """Return whether every value is an Optuna distribution.

    Optuna is not imported for this: whoever holds a distribution has imported it.
    """
    module = sys.modules.get("optuna.distributions")
    return (
        module is not None
        and bool(candidate)
        and all(isinstance(value, module.BaseDistribution) for value in candidate.values())
    )


def from_distributions(
    distributions: "Mapping[str, BaseDistribution]", *, rounded_later: bool = False
) -> Draft:
    """Return the parts of a space for Optuna's distributions.

    A range with a step becomes an ordinal of its grid points, whose ranks are equally spaced like
    the points.

    rounded_later: whether the caller rounds values to the grid. Then a range with too many steps
        for a list becomes a plain range; otherwise it is refused.
    """
    draft = Draft()
    for name, distribution in distributions.items():
        draft.add(_hyperparameter(name, distribution, rounded_later=rounded_later))
    return draft


def _hyperparameter(
    name: str, given: "BaseDistribution", *, rounded_later: bool
) -> Hyperparameter[Any, Any]:
    from optuna.distributions import (
        CategoricalDistribution,
        FloatDistribution,
        IntDistribution,
    )

    if isinstance(given, CategoricalDistribution):
        check_choices(name, len(given.choices))
        return CategoricalHyperparameter(name, list(given.choices))
    if isinstance(given, IntDistribution):
        fine = rounded_later and (given.high - given.low) // given.step >= MOST_STEPS
        if given.step != 1 and not fine:
            return _grid(name, _int_grid(name, given.low, given.high, given.step))
        return number_range(name, given.low, given.high, log=given.log, integer=True)
    if isinstance(given, FloatDistribution):
        fine = rounded_later and bool(given.step) and _steps(given) >= MOST_STEPS
        if given.step is not None and not fine:
            return _grid(name, _float_grid(name, given.low, given.high, given.step))
        return number_range(name, given.low, given.high, log=given.log, integer=False)
    raise SpaceError(
        f"a distribution must be one of Optuna's Float, Int or CategoricalDistribution, but "
        f"'{name}' is a {type(given).__name__}: replace it"
    )


def _steps(given: "FloatDistribution") -> float:
    return (given.high - given.low) / (given.step or 1.0)


def _int_grid(name: str, low: int, high: int, step: int) -> list[int]:
    _check_count(name, (high - low) // step + 1)
    return list(range(low, high + 1, step))


def _float_grid(name: str, low: float, high: float, step: float) -> list[float]:
    """Return the grid points. Decimal arithmetic makes 0.1 + 2 * 0.1 equal to 0.3."""
    first, last, pace = (Decimal(str(number)) for number in (low, high, step))
    count = int((last - first) / pace) + 1
    _check_count(name, count)
    return [float(first + k * pace) for k in range(count)]


def _check_count(name: str, count: int) -> None:
    if count > MOST_STEPS:
        raise SpaceError(
            f"a range with a step must have at most {MOST_STEPS} points, but '{name}' has {count}: "
            "drop the step or make it larger"
        )


def _grid(name: str, points: list[Any]) -> Hyperparameter[Any, Any]:
    return Constant(name, points[0]) if len(points) == 1 else OrdinalHyperparameter(name, points)
