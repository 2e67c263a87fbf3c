"""What space do recorded configurations come from? A guess from their values.

Ranges are the observed ones, rounded outwards to four digits. A hyperparameter that is missing
from some configurations must be explained by another one: it is active exactly where that one
takes certain values. Where nothing explains it and the configurations do name it, as None, this is
one of its choices.
"""

import math
import numbers
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from itertools import compress
from types import NoneType
from typing import Any, TypeAlias

import numpy as np
from ConfigSpace import (
    CategoricalHyperparameter,
    Constant,
    EqualsCondition,
    InCondition,
    OrdinalHyperparameter,
    UniformFloatHyperparameter,
    UniformIntegerHyperparameter,
)
from numpy.typing import NDArray

from foretune.arrays import Bools, Floats
from foretune.errors import ExperienceError
from foretune.space.definition import Draft
from foretune.space.parameters import LARGEST_EXACT_INT, choice_key

Scalar: TypeAlias = bool | int | float | str | tuple[Any, ...] | None
Column: TypeAlias = Sequence[Any]
Hyperparameter: TypeAlias = (
    CategoricalHyperparameter
    | OrdinalHyperparameter
    | Constant
    | UniformIntegerHyperparameter
    | UniformFloatHyperparameter
)
"""One value a configuration; None or NaN where the hyperparameter is missing."""

LEAST_RATIO_FOR_LOG = 10.0
MOST_GRID_VALUES = 30
SIGNIFICANT_DIGITS = 4
DECIMAL_PLACES = 13
LARGEST_BOUND = 1e290
"""ConfigSpace makes infinity of larger ones, where it rounds them to these places."""
MOST_PARENT_VALUES = 30
DISCRETE = (bool, int, str, NoneType, np.bool_, np.integer)
"""The types of values that may decide where others are active."""
CHOSEN = (bool, str, NoneType, np.bool_, tuple)
"""The types of values that are choices, whatever else there is."""
MOST_CHOSEN_NUMBERS = 10
"""Numbers that are sometimes None are taken as choices if they are at most so many."""
MOST_ORDERED_NUMBERS = 100
"""If they are more, up to so many, as choices in their order."""
MOST_CHOICES = 100
LEAST_NAMES, NEARLY_ALL = 20, 0.9
"""So many different choices are names of the rows where nearly every row has its own."""

LITERALS: Mapping[str, bool | None] = {"True": True, "False": False, "None": None}
NUMBER = re.compile(
    r"[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|nan|inf|infinity)", re.ASCII | re.IGNORECASE
)
"""Python alone would read 64_64 as 6464."""


@dataclass(frozen=True)
class Activity:
    """A hyperparameter is active exactly where `parent` takes one of `values`."""

    parent: str
    values: tuple[Scalar, ...]


def infer_space(
    columns: Mapping[str, Column],
    name: str | None = None,
    *,
    stages: Collection[str] = (),
    activities: Mapping[str, Activity] | None = None,
    told: Mapping[str, Bools] | None = None,
) -> Draft:
    """The space of the configurations whose hyperparameters stand in `columns`.

    stages: the categoricals that choose an algorithm.
    activities: where hyperparameters are active, if that is known; else it is inferred.
    told: (n,) each, where configurations name a hyperparameter, if perhaps as None; without it,
        None says that they do not.
    """
    if not columns:
        raise ExperienceError("a space needs at least one hyperparameter, but the table has none")
    if activities is None:
        present, activities = _explained(columns, told or {})
    else:
        present = {name: present_mask(column) for name, column in columns.items()}
    known = {name: list(compress(column, present[name])) for name, column in columns.items()}
    for parameter, values in known.items():
        if not values:
            raise ExperienceError(
                f"each hyperparameter needs a value, but '{parameter}' has none in any row: "
                "remove it from the table"
            )
    made = Draft(name=name)
    for parameter, values in known.items():
        made.add(infer_parameter(parameter, values, stage=parameter in stages))
    for parameter, column in columns.items():
        if parameter not in activities and len(known[parameter]) < len(column):
            raise ExperienceError(
                f"a hyperparameter may be missing only where another one says so, but "
                f"'{parameter}' is missing in {len(column) - len(known[parameter])} of "
                f"{len(column)} rows and no other hyperparameter explains where: fill the gaps, "
                f"leave it out (--ignore '{parameter}'), or give the space as a file"
            )
    add_conditions(made, activities)
    return made


def infer_parameter(name: str, values: Sequence[Scalar], *, stage: bool = False) -> Hyperparameter:
    """The hyperparameter that takes `values`, none of which is missing.

    Numbers of which some are None are choices: no range holds None.
    """
    types = set(map(type, values))
    if NoneType in types and _many_numbers(values):
        return _with_none_last(name, values)
    odd = [kind for kind in types if not issubclass(kind, (numbers.Real, *CHOSEN))]
    if odd:
        value = next(value for value in values if type(value) is odd[0])
        raise ExperienceError(
            f"a hyperparameter must be a number, a string or a boolean, but '{name}' has "
            f"{value!r}: leave it out (--ignore '{name}')"
        )
    if stage or any(issubclass(kind, CHOSEN) for kind in types):
        return _choice_of(name, values, stage=stage)
    whole = {issubclass(kind, numbers.Integral) for kind in types}
    if True in whole and any(
        isinstance(value, int) and abs(value) > LARGEST_EXACT_INT for value in values
    ):
        raise ExperienceError(
            f"whole numbers must lie within ±2**53, but those of '{name}' do not: write them as "
            f"text if they are names, or leave it out (--ignore '{name}')"
        )
    return _range_of(name, np.asarray(values, dtype=np.float64), whole=whole == {True})


def _choice_of(
    name: str, values: Sequence[Scalar], *, stage: bool
) -> CategoricalHyperparameter | Constant:
    choices = _distinct(values)
    if len(set(choices)) < len(choices):
        raise ExperienceError(
            f"the choices of a hyperparameter must differ, but those of '{name}' hold truth "
            "values as well as 1 or 0, which are taken for the same: write them in one way"
        )
    if stage:
        return CategoricalHyperparameter(name, choices, meta={"stage": True})
    if len(choices) == 1:
        return Constant(name, choices[0])
    _check_number_of_choices(name, len(choices), len(values))
    return CategoricalHyperparameter(name, choices)


def _range_of(
    name: str, values: Floats, *, whole: bool
) -> UniformIntegerHyperparameter | UniformFloatHyperparameter | Constant:
    low, high = float(values.min()), float(values.max())
    if not math.isfinite(high - low):
        raise ExperienceError(
            f"a hyperparameter must be finite, but '{name}' is not in every row: write a number "
            f"for infinity, leave these rows out, or leave it out (--ignore '{name}')"
        )
    if low == high:
        return Constant(name, int(low) if whole else low)
    if max(-low, high) > LARGEST_BOUND:
        raise ExperienceError(
            f"numbers must lie within ±{LARGEST_BOUND:g}, but those of '{name}' do not: leave out "
            "the rows with larger ones, or write their logarithm"
        )
    log = looks_logarithmic(values)
    if whole:
        return UniformIntegerHyperparameter(name, int(low), int(high), log=log)
    lower, upper = rounded_outwards(low, ROUND_FLOOR), rounded_outwards(high, ROUND_CEILING)
    if log and lower <= 0:
        raise ExperienceError(
            f"the bounds of a range are rounded to {DECIMAL_PLACES} decimal places, and must then "
            f"be positive on a log scale, but '{name}' has [{low!r}, {high!r}]: write the exponent "
            f"of 10 instead, or leave it out (--ignore '{name}')"
        )
    return UniformFloatHyperparameter(name, lower, upper, log=log)


def _check_number_of_choices(name: str, different: int, rows: int) -> None:
    """Refuse what names the rows, such as a date or an id: nothing can be learnt of its choices."""
    rarely_twice = different >= LEAST_NAMES and different > NEARLY_ALL * rows
    if different > MOST_CHOICES or rarely_twice:
        raise ExperienceError(
            f"a hyperparameter has at most {MOST_CHOICES} choices, and from {LEAST_NAMES} on most "
            f"of them more than once, but '{name}' has {different} different values in {rows} "
            f"rows: leave it out (--ignore '{name}'), or give the space as a file (--space) if "
            "they are meant"
        )


def _with_none_last(name: str, values: Sequence[Scalar]) -> OrdinalHyperparameter:
    """Numbers in their order, and after them None: mostly it means that there is no limit."""
    known = {value: kind for kind, value in _few(values) if value is not None}
    numeric = all(
        issubclass(kind, numbers.Real) and not issubclass(kind, bool) for kind in known.values()
    )
    if not numeric or len(known) > MOST_ORDERED_NUMBERS:
        found = f"{len(_numbers_in(values))} different numbers"
        raise ExperienceError(
            f"numbers of which some are None are choices, at most {MOST_ORDERED_NUMBERS}, and at "
            f"most {MOST_CHOSEN_NUMBERS} beside other values, but '{name}' is None in "
            f"{values.count(None)} of {len(values)} rows and has {found}"
            f"{'' if numeric else ' beside other values'}: write a number for None, leave these "
            f"rows out, or leave it out (--ignore '{name}')"
        )
    return OrdinalHyperparameter(name, [*map(plain, sorted(known, key=float)), None])


def _many_numbers(values: Column) -> bool:
    """Whether there are too many different numbers for choices, which are all equally far apart."""
    return len(_numbers_in(values)) > MOST_CHOSEN_NUMBERS


def looks_like_range(values: Column) -> bool:
    """Whether there are many different numbers with fractions, as drawn from a range."""
    return _many_numbers(values) and not all(
        float(each).is_integer() for each in _numbers_in(values)
    )


def _numbers_in(values: Column) -> set[Any]:
    """The different numbers among values."""
    return {value for kind, value in _few(values) if issubclass(kind, numbers.Real)}


def rounded_outwards(bound: float, direction: str) -> float:
    """A bound of a range with few digits: readable, and one that ConfigSpace keeps.

    ConfigSpace rounds bounds to 13 decimal places, which could leave out the observed extreme.
    """
    exact = Decimal(repr(bound))
    last_digit = max(exact.adjusted() - SIGNIFICANT_DIGITS + 1, -DECIMAL_PLACES)
    return float(exact.quantize(Decimal(1).scaleb(last_digit), rounding=direction))


def looks_logarithmic(values: Floats) -> bool:
    """Whether positive `values` lie more evenly on a logarithmic scale than on a linear one.

    A few distinct values are a grid, judged by its steps; many are a sample, judged by how often
    each occurs. A spread of less than one order of magnitude is taken as linear: the scales
    hardly differ there.
    """
    ascending = np.unique(values)
    if ascending[0] <= 0 or ascending[-1] < LEAST_RATIO_FOR_LOG * ascending[0]:
        return False
    if len(ascending) > MOST_GRID_VALUES:
        ascending = np.sort(values)
    return _unevenness(np.log(ascending)) <= _unevenness(ascending)


def _unevenness(ascending: Floats) -> float:
    """Mean distance of the values, scaled to [0, 1], from evenly spaced ones."""
    scaled = (ascending - ascending[0]) / (ascending[-1] - ascending[0])
    return float(np.abs(scaled - np.linspace(0, 1, len(scaled))).mean())


def _explained(
    columns: Mapping[str, Column], told: Mapping[str, Bools]
) -> tuple[dict[str, Bools], dict[str, Activity]]:
    """Where each hyperparameter has a value, (n,) each, and which other one says so.

    None is a gap where another one says when, else a value where the configurations name it.
    """
    present = {name: present_mask(column) for name, column in columns.items()}
    explained = explain_missing(columns, present)
    # Many numbers are no choices: what explains their gaps may be that another one is None.
    for numbers_too in (False, True):
        with_none = {
            name: where
            for name, where in told.items()
            if name not in explained
            and (where & ~present[name]).any()
            and (numbers_too or not _many_numbers(columns[name]))
        }
        if with_none:
            present |= with_none
            explained = explain_missing(columns, present)
    return present, explained


def explained(columns: Mapping[str, Column], told: Mapping[str, Bools]) -> dict[str, Activity]:
    """For hyperparameters that are missing somewhere, the one that says where they are active.

    told: as `infer_space` takes it.
    """
    return _explained(columns, told)[1]


def unexplained(columns: Mapping[str, Column], told: Mapping[str, Bools]) -> list[str]:
    """The hyperparameters that are missing somewhere and nothing says where.

    told: as `infer_space` takes it.
    """
    present, explained = _explained(columns, told)
    return [name for name in columns if name not in explained and not present[name].all()]


def explain_missing(
    columns: Mapping[str, Column], present: Mapping[str, Bools] | None = None
) -> dict[str, Activity]:
    """For hyperparameters with missing values, the one that says where they are active.

    Those that nothing explains are left out. Among several explanations the one that is itself
    missing least often wins, which leads to the root of nested choices.

    present: (n,) each, where a column has a value, if None can be a value; else None is a gap.
    """
    if present is None:
        present = {name: present_mask(column) for name, column in columns.items()}
    if all(here.all() for here in present.values()):
        return {}
    parents = [name for name in columns if _may_be_parent(columns[name], present[name])]
    parents.sort(key=lambda name: -int(present[name].sum()))
    codes = {name: _coded(columns[name], present[name]) for name in parents}
    explained = {}
    for name, active in present.items():
        if active.all():
            continue
        for parent in parents:
            if present[parent].sum() <= active.sum():
                continue
            values = _activating(codes[parent], active)
            if values is not None:
                explained[name] = Activity(parent, values)
                break
    return explained


def _may_be_parent(column: Column, present: Bools) -> bool:
    """Whether a hyperparameter has few values that can be named one by one: no range of floats."""
    here = list(compress(column, present))
    kinds = set(map(type, here))
    allowed = (*DISCRETE, float) if kinds & {bool, str, NoneType} else DISCRETE
    if not all(issubclass(kind, allowed) for kind in kinds):
        return False
    return 2 <= len(_distinct(here)) <= MOST_PARENT_VALUES


def _coded(column: Column, present: Bools) -> tuple[list[Scalar], NDArray[np.int64]]:
    """The distinct values, and each row's position among them (-1 where missing)."""
    values = _distinct(list(compress(column, present)))
    position = {choice_key(value): index for index, value in enumerate(values)}
    codes = {pair: position.get(choice_key(pair[1]), -1) for pair in _few(column)}
    listed = [codes[pair] for pair in _typed(column)]
    return values, np.where(present, listed, -1)


def _distinct(values: Sequence[Scalar]) -> list[Scalar]:
    """Each value once, those of one type in their order; True and 1 are two."""
    once = {choice_key(value): plain(value) for _, value in reversed(_few(values))}
    return sorted(once.values(), key=_place)


def _few(values: Column) -> dict[tuple[type, Any], None]:
    """Each value once with its type: most come again and again, and are then looked at once."""
    return dict.fromkeys(_typed(values))


def _typed(values: Column) -> Iterator[tuple[type, Any]]:
    return zip(map(type, values), values, strict=True)


def _place(value: Scalar) -> tuple[str, Any]:
    """By type, for the values of two types have no order."""
    own = tuple(map(_place, value)) if isinstance(value, tuple) else value
    return type(value).__name__, own


def _activating(
    coded: tuple[list[Scalar], NDArray[np.int64]], active: Bools
) -> tuple[Scalar, ...] | None:
    """The parent's values at which a hyperparameter is active, None if they do not decide it."""
    values, codes = coded
    on = {int(code) for code in np.unique(codes[active])}
    off = {int(code) for code in np.unique(codes[~active])}
    if on & off or -1 in on:
        return None
    return tuple(values[code] for code in sorted(on))


def add_conditions(space: Draft, activities: Mapping[str, Activity]) -> None:
    """Tell `space` where its hyperparameters are active."""
    for name, activity in activities.items():
        child, parent = space[name], space[activity.parent]
        if len(activity.values) == 1:
            space.add(EqualsCondition(child, parent, activity.values[0]))
        else:
            space.add(InCondition(child, parent, list(activity.values)))


def present_mask(column: Column) -> Bools:
    """(n,), True where `column` has a value."""
    return np.array([not is_missing(value) for value in column], dtype=np.bool_)


def is_missing(value: object) -> bool:
    """Whether a cell is empty: None or NaN."""
    # NaN is the one number that differs from itself; asking for its type would cost far more.
    return value is None or (value != value) is True  # noqa: PLR0124


def as_choice(value: Any) -> Any:
    """A list as the tuple of its parts, which can be a choice; anything else as it is."""
    return tuple(map(as_choice, value)) if isinstance(value, list | tuple) else value


def read_back(text: str) -> Scalar:
    """What a program has written as `text`, as far as this tells."""
    if text in LITERALS:
        return LITERALS[text]
    for kind in (int, float) if NUMBER.fullmatch(text.strip()) else ():
        with suppress(ValueError):
            return kind(text)
    return text


def plain(value: Any) -> Scalar:
    """`value` as the Python scalar that equals it."""
    made: Scalar = value.item() if isinstance(value, np.generic) else value
    return made
