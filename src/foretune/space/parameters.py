"""One hyperparameter: its range, its columns, and its mapping to the unit interval.

Inside Foretune every value is a float: a number as it is, a choice by its index.
"""

import math
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any

import numpy as np
from ConfigSpace.hyperparameters import (
    CategoricalHyperparameter,
    Constant,
    FloatHyperparameter,
    Hyperparameter,
    IntegerHyperparameter,
    OrdinalHyperparameter,
)

from foretune._base.arrays import Floats
from foretune.errors import SpaceError
from foretune.space.definition import Definition

LARGEST_EXACT_INT = 2**53
"""A float64 does not hold every larger integer, so the round trip would not be exact."""

MOST_SHOWN = 20
"""The most choices that messages and tables list."""


class Kind(StrEnum):
    """The kind of a hyperparameter's values."""

    FLOAT = "float"
    INT = "int"
    CATEGORICAL = "categorical"
    ORDINAL = "ordinal"
    CONSTANT = "constant"


@dataclass(frozen=True)
class Parameter:
    """One hyperparameter of a space."""

    name: str
    kind: Kind
    low: float
    """The smallest value; 0 for choices, which count by index."""
    high: float
    """The largest value; the last index for choices."""
    log: bool
    choices: tuple[Any, ...]
    """The objects behind the indices; empty for numbers."""
    default: Any
    columns: slice
    """Its columns in the unit cube `Encoded.x`; empty for a constant."""
    stage: bool = False
    """Whether the user marked it as the choice of a stage."""

    @property
    def is_number(self) -> bool:
        """True for floats and ints, False for choices from a list."""
        return self.kind in (Kind.FLOAT, Kind.INT)

    @property
    def width(self) -> int:
        """The number of its columns in the unit cube."""
        return int(self.columns.stop - self.columns.start)

    @property
    def size(self) -> float:
        """The number of different values; infinite for a float."""
        return np.inf if self.kind is Kind.FLOAT else self.high - self.low + 1

    @property
    def allowed_text(self) -> str:
        """The allowed values in words, for messages and tables."""
        if self.kind is Kind.FLOAT:
            return f"[{self.low:g}, {self.high:g}]{' log' if self.log else ''}"
        if self.kind is Kind.INT:
            return f"{{{int(self.low)}..{int(self.high)}}}{' log' if self.log else ''}"
        shown = [repr(choice) for choice in self.choices[:MOST_SHOWN]]
        more = len(self.choices) - len(shown)
        return "{" + ", ".join(shown + [f"... {more} more"] * (more > 0)) + "}"

    def to_unit(self, values: Floats) -> Floats:
        """Map values (or indices) to [0, 1] on the hyperparameter's scale; NaN stays NaN."""
        if self.high == self.low:
            return values * 0.0
        if self.log:
            unit = np.log(values / self.low) / np.log(self.high / self.low)
        else:
            unit = (values - self.low) / (self.high - self.low)
        return _clip(unit, 0.0, 1.0)

    def from_unit(self, unit: Floats) -> Floats:
        """Return the value nearest to each point of [0, 1], always within the range."""
        values = _between(self.low, self.high, unit, self.log)
        if self.kind is not Kind.FLOAT:
            values = np.rint(values)
        return _clip(values, self.low, self.high)

    def quantile(self, unit: Floats) -> Floats:
        """Map uniform points of [0, 1] to values that are uniform on the hyperparameter's scale.

        Unlike with `from_unit`, integers at the ends of the range are as likely as others.
        """
        if self.kind is Kind.FLOAT:
            return self.from_unit(unit)
        low, high = self.low - 0.5, self.high + 0.5
        values = _between(low, high, unit, self.log)
        return _clip(np.rint(values), self.low, self.high)

    def index_of(self, choice: Any) -> int | None:
        """Return the index of a choice; None if it is not one of the choices."""
        key = choice_key(choice)
        try:
            return self._indices.get(key)
        except TypeError:  # A part of a choice cannot be hashed.
            keys = [choice_key(own) for own in self.choices]
            return keys.index(key) if key in keys else None

    @cached_property
    def _indices(self) -> dict[tuple[str, Any], int]:
        """The index of each choice by its key; the first one of equal choices."""
        found: dict[tuple[str, Any], int] = {}
        for index, choice in enumerate(self.choices):
            found.setdefault(choice_key(choice), index)
        return found

    def number_of(self, value: Any) -> float:
        """Return the number that stands for a legal value as a user writes it."""
        if self.is_number:
            return float(value)
        index = self.index_of(value)
        if index is None:
            raise SpaceError(
                f"hyperparameter '{self.name}' must be one of {self.allowed_text}, but a "
                "condition or "
                f"clause compares it with {value!r}: use one of its choices",
                rule="not-a-choice",
                field=self.name,
                value=value,
            )
        return float(index)


def _between(low: float, high: float, unit: Floats, log: bool) -> Floats:
    """Stretch points of [0, 1] to [low, high]."""
    stretched: Floats
    stretched = low * np.exp(unit * np.log(high / low)) if log else low + unit * (high - low)
    return stretched


def _clip(numbers: Floats, low: float, high: float) -> Floats:
    clipped: Floats = np.clip(numbers, low, high)
    return clipped


def choice_key(choice: Any) -> tuple[str, Any]:
    """Return a key, equal for equal choices: True is not 1, 'None' is not None, but 1.0 is 1."""
    if isinstance(choice, np.generic):
        choice = choice.item()
    if isinstance(choice, bool):
        return "bool", choice
    if isinstance(choice, int | float):
        return "number", choice
    if isinstance(choice, tuple | list):
        return "tuple", tuple(choice_key(part) for part in choice)
    return type(choice).__name__, choice


def read_parameters(definition: Definition) -> tuple[Parameter, ...]:
    """Return the view of every hyperparameter, in the order of the definition."""
    parameters: list[Parameter] = []
    for hyperparameter in definition.hyperparameters.values():
        start = parameters[-1].columns.stop if parameters else 0
        parameters.append(parameter_of(hyperparameter, start))
    return tuple(parameters)


def parameter_of(hyperparameter: Hyperparameter[Any, Any], start: int) -> Parameter:
    """Return the view of one ConfigSpace hyperparameter whose columns begin at `start`."""
    name, stage = hyperparameter.name, bool((hyperparameter.meta or {}).get("stage", False))
    if isinstance(hyperparameter, FloatHyperparameter | IntegerHyperparameter):
        is_int = isinstance(hyperparameter, IntegerHyperparameter)
        low, high = float(hyperparameter.lower), float(hyperparameter.upper)
        _check_bounds(name, low, high, is_int)
        return Parameter(
            name=name,
            kind=Kind.INT if is_int else Kind.FLOAT,
            low=low,
            high=high,
            log=bool(hyperparameter.log),
            choices=(),
            default=(int if is_int else float)(hyperparameter.default_value),
            columns=slice(start, start + 1),
        )
    kind, choices = _choices_of(hyperparameter)
    _check_choices(name, choices)
    width = {Kind.CATEGORICAL: len(choices), Kind.ORDINAL: 1, Kind.CONSTANT: 0}[kind]
    return Parameter(
        name=name,
        kind=kind,
        low=0.0,
        high=len(choices) - 1.0,
        log=False,
        choices=choices,
        default=hyperparameter.default_value,
        columns=slice(start, start + width),
        stage=stage,
    )


def _choices_of(hyperparameter: Hyperparameter[Any, Any]) -> tuple[Kind, tuple[Any, ...]]:
    if isinstance(hyperparameter, CategoricalHyperparameter):
        return Kind.CATEGORICAL, tuple(hyperparameter.choices)
    if isinstance(hyperparameter, OrdinalHyperparameter):
        return Kind.ORDINAL, tuple(hyperparameter.sequence)
    if isinstance(hyperparameter, Constant):
        return Kind.CONSTANT, (hyperparameter.value,)
    raise SpaceError(
        f"hyperparameter '{hyperparameter.name}' is of the unknown type "
        f"{type(hyperparameter).__name__}: use ConfigSpace's floats, integers, categoricals, "
        "ordinals and constants",
        rule="unknown-kind",
        field=hyperparameter.name,
    )


def _check_choices(name: str, choices: tuple[Any, ...]) -> None:
    """Refuse NaN, which equals nothing, so that no value could be found."""
    for choice in choices:
        if _holds_nan(choice):
            raise SpaceError(
                f"the values of hyperparameter '{name}' must be other than NaN, which equals "
                f"nothing, but got {choice!r}: use None or a text instead",
                rule="nan-choice",
                field=name,
                value=choice,
            )


def _holds_nan(choice: Any) -> bool:
    if isinstance(choice, tuple | list):
        return any(map(_holds_nan, choice))
    return isinstance(choice, float) and math.isnan(choice)


def _check_bounds(name: str, low: float, high: float, is_int: bool) -> None:
    if not (np.isfinite(low) and np.isfinite(high)):
        raise SpaceError(
            f"hyperparameter '{name}' must have finite bounds, but got [{low:g}, {high:g}]: "
            "give both a lower and an upper bound",
            rule="infinite-bounds",
            field=name,
            value=(low, high),
        )
    if is_int:
        check_whole(name, low, high)


def check_whole(name: str, low: float, high: float) -> None:
    """Refuse integers that a float64 cannot distinguish."""
    if max(abs(low), abs(high)) > LARGEST_EXACT_INT:
        raise SpaceError(
            f"integer hyperparameter '{name}' must lie within ±2**53, but got "
            f"[{low}, {high}]: use a narrower range or a float",
            rule="integer-too-large",
            field=name,
            value=(low, high),
        )
