"""What space do recorded configurations come from? A guess from their values.

Ranges are the observed ones, rounded outwards to four digits. A hyperparameter that is missing
from some configurations must be explained by another one: it is active exactly where that one
takes certain values. Where nothing explains it and the configurations do name it, as None, this is
one of its choices.
"""

import math
import numbers
import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
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

from foretune._base.arrays import Bools, Floats
from foretune.errors import ExperienceError
from foretune.space.definition import Draft
from foretune.space.parameters import LARGEST_EXACT_INT, choice_key
from foretune.stores.files.cell_columns import ColumnCells, as_list

Scalar: TypeAlias = bool | int | float | str | tuple[Any, ...] | None
Column: TypeAlias = Sequence[Any] | ColumnCells
"""One value a configuration; None or NaN where the hyperparameter is missing."""
Hyperparameter: TypeAlias = (
    CategoricalHyperparameter
    | OrdinalHyperparameter
    | Constant
    | UniformIntegerHyperparameter
    | UniformFloatHyperparameter
)

LEAST_RATIO_FOR_LOG = 10.0
MOST_GRID_VALUES = 30
SIGNIFICANT_DIGITS = 4
DECIMAL_PLACES = 13
LARGEST_BOUND = 1e290
"""ConfigSpace makes infinity of larger ones, where it rounds them to these places."""
MOST_PARENT_VALUES = 30
LOOKED_AT = 1 << 16
"""Numbers that are worked on at once."""
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
        raise ExperienceError(
            "a space needs at least one hyperparameter, but the table has none",
            rule="no-hyperparameter",
        )
    cells = {name: ColumnCells.of(column) for name, column in columns.items()}
    if activities is None:
        present, activities = _find_conditions(cells, told or {})
    else:
        present = {name: column.present for name, column in cells.items()}
    known = {name: int(here.sum()) for name, here in present.items()}
    for parameter, n in known.items():
        if n == 0:
            raise ExperienceError(
                f"each hyperparameter needs a value, but '{parameter}' has none in any row: "
                "remove it from the table",
                rule="column-without-value",
                field=parameter,
            )
    made = Draft(name=name)
    for parameter, column in cells.items():
        values = _values_of(column, present[parameter])
        made.add(infer_parameter(parameter, values, stage=parameter in stages))
    for parameter, column in cells.items():
        if parameter not in activities and known[parameter] < len(column):
            raise ExperienceError(
                f"a hyperparameter may be missing only where another one says so, but "
                f"'{parameter}' is missing in {len(column) - known[parameter]} of "
                f"{len(column)} rows and no other hyperparameter explains where: fill the gaps, "
                f"leave it out (--ignore '{parameter}'), or give the space as a file",
                rule="unexplained-gaps",
                field=parameter,
            )
    add_conditions(made, activities)
    return made


def _values_of(column: ColumnCells, present: Bools) -> ColumnCells:
    """The cells that have a value, if perhaps None."""
    here = column if present.all() else column.take(present)
    return here.with_none()


def infer_parameter(
    name: str, column: Sequence[Scalar] | ColumnCells, *, stage: bool = False
) -> Hyperparameter:
    """The hyperparameter that takes the values of `column`, none of which is missing.

    Numbers of which some are None are choices: no range holds None.
    """
    values = column if isinstance(column, ColumnCells) else ColumnCells.of(column).with_none()
    types = values.kinds
    if NoneType in types and _many_numbers(values):
        return _with_none_last(name, values)
    odd = [kind for kind in types if not issubclass(kind, (numbers.Real, *CHOSEN))]
    if odd:
        value = next(value for value in values.values if type(value) is odd[0])
        raise ExperienceError(
            f"a hyperparameter must be a number, a string or a boolean, but '{name}' has "
            f"{value!r}: leave it out (--ignore '{name}')",
            rule="odd-type",
            field=name,
            value=value,
        )
    if stage or any(issubclass(kind, CHOSEN) for kind in types):
        return _choice_of(name, values, stage=stage)
    whole = {issubclass(kind, numbers.Integral) for kind in types}
    if True in whole and _has_inexact(values):
        raise ExperienceError(
            f"whole numbers must lie within ±2**53, but those of '{name}' do not: write them as "
            f"text if they are names, or leave it out (--ignore '{name}')",
            rule="whole-number-too-large",
            field=name,
        )
    return _range_of(name, values, whole=whole == {True})


def _has_inexact(cells: ColumnCells) -> bool:
    """Whether a whole number is too large for a float to hold it exactly."""
    if cells.in_numbers:
        return bool(np.abs(cells.values).max() > LARGEST_EXACT_INT) and int in cells.kinds
    return any(isinstance(value, int) and abs(value) > LARGEST_EXACT_INT for value in cells.values)


def _choice_of(
    name: str, values: ColumnCells, *, stage: bool
) -> CategoricalHyperparameter | Constant:
    choices = _distinct(values.different)
    if len(set(choices)) < len(choices):
        raise ExperienceError(
            f"the choices of a hyperparameter must differ, but those of '{name}' hold truth "
            "values as well as 1 or 0, which are taken for the same: write them in one way",
            rule="truth-and-number",
            field=name,
        )
    if stage:
        return CategoricalHyperparameter(name, choices, meta={"stage": True})
    if len(choices) == 1:
        return Constant(name, choices[0])
    _check_number_of_choices(name, len(choices), len(values))
    return CategoricalHyperparameter(name, choices)


def _range_of(
    name: str, cells: ColumnCells, *, whole: bool
) -> UniformIntegerHyperparameter | UniformFloatHyperparameter | Constant:
    values = np.asarray(cells.values, dtype=np.float64)
    low, high = float(values.min()), float(values.max())
    if not math.isfinite(high - low):
        raise ExperienceError(
            f"a hyperparameter must be finite, but '{name}' is not in every row: write a number "
            f"for infinity, leave these rows out, or leave it out (--ignore '{name}')",
            rule="infinite-value",
            field=name,
        )
    if low == high:
        return Constant(name, int(low) if whole else low)
    if max(-low, high) > LARGEST_BOUND:
        raise ExperienceError(
            f"numbers must lie within ±{LARGEST_BOUND:g}, but those of '{name}' do not: leave out "
            "the rows with larger ones, or write their logarithm",
            rule="number-too-large",
            field=name,
        )
    log = _looks_logarithmic(values, None if cells.codes is None else cells.counts())
    if whole:
        return UniformIntegerHyperparameter(name, int(low), int(high), log=log)
    lower, upper = round_outwards(low, ROUND_FLOOR), round_outwards(high, ROUND_CEILING)
    if log and lower <= 0:
        raise ExperienceError(
            f"the bounds of a range are rounded to {DECIMAL_PLACES} decimal places, and must then "
            f"be positive on a log scale, but '{name}' has [{low!r}, {high!r}]: write the exponent "
            f"of 10 instead, or leave it out (--ignore '{name}')",
            rule="rounded-to-zero",
            field=name,
            value=(low, high),
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
            "they are meant",
            rule="too-many-choices",
            field=name,
            value=different,
        )


def _with_none_last(name: str, values: ColumnCells) -> OrdinalHyperparameter:
    """Numbers in their order, and after them None: mostly it means that there is no limit."""
    known = {value: type(value) for value in as_list(values.different) if value is not None}
    numeric = all(
        issubclass(kind, numbers.Real) and not issubclass(kind, bool) for kind in known.values()
    )
    if not numeric or len(known) > MOST_ORDERED_NUMBERS:
        found = f"{len(_numbers_in(values))} different numbers"
        raise ExperienceError(
            f"numbers of which some are None are choices, at most {MOST_ORDERED_NUMBERS}, and at "
            f"most {MOST_CHOSEN_NUMBERS} beside other values, but '{name}' is None in "
            f"{np.count_nonzero(values.where(_is_none))} of {len(values)} rows and has {found}"
            f"{'' if numeric else ' beside other values'}: write a number for None, leave these "
            f"rows out, or leave it out (--ignore '{name}')",
            rule="numbers-and-none",
            field=name,
        )
    return OrdinalHyperparameter(name, [*map(plain, sorted(known, key=float)), None])


def _is_none(value: Any) -> bool:
    return value is None


def _many_numbers(cells: ColumnCells) -> bool:
    """Whether there are too many different numbers for choices, which are all equally far apart."""
    if cells.in_numbers and len(np.unique(cells.values[:LOOKED_AT])) > MOST_CHOSEN_NUMBERS + 1:
        return True  # one of these may be NaN
    return len(_numbers_in(cells)) > MOST_CHOSEN_NUMBERS


def looks_like_range(column: Column) -> bool:
    """Whether there are many different numbers with fractions, as drawn from a range."""
    cells = ColumnCells.of(column)
    if not _many_numbers(cells):
        return False
    if cells.in_numbers:
        return bool((cells.values[~np.isnan(cells.values)] % 1 != 0).any())
    return not all(float(each).is_integer() for each in _numbers_in(cells))


def _numbers_in(cells: ColumnCells) -> set[Any]:
    """The different numbers among values."""
    return {value for value in as_list(cells.different) if isinstance(value, numbers.Real)}


def round_outwards(bound: float, direction: str) -> float:
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
    return _looks_logarithmic(values, None)


def _looks_logarithmic(values: Floats, counts: NDArray[np.int64] | None) -> bool:
    """The same of values of which each occurs so often; once if it is not told."""
    order = np.argsort(values) if counts is not None else slice(None)
    ascending = np.sort(values)
    if ascending[0] <= 0 or ascending[-1] < LEAST_RATIO_FOR_LOG * ascending[0]:
        return False
    steps = np.unique(ascending) if counts is None else ascending
    if len(steps) <= MOST_GRID_VALUES:
        ascending, counts = steps, None
    elif counts is not None:
        counts = counts[order]
    return _unevenness(np.log(ascending), counts) <= _unevenness(ascending, counts)


def _unevenness(ascending: Floats, counts: NDArray[np.int64] | None) -> float:
    """Mean distance of the values, scaled to [0, 1], from evenly spaced ones.

    counts: how often each one occurs; once if it is not told.
    """
    low, width = ascending[0], ascending[-1] - ascending[0]
    n = len(ascending) if counts is None else int(counts.sum())
    total, first = 0.0, 0
    for start in range(0, len(ascending), LOOKED_AT):
        part = (ascending[start : start + LOOKED_AT] - low) / width
        if counts is not None:
            part = np.repeat(part, counts[start : start + LOOKED_AT])
        even = np.arange(first, first := first + len(part)) / (n - 1)
        total += float(np.abs(part - even).sum())
    return total / n


def _find_conditions(
    columns: Mapping[str, ColumnCells], told: Mapping[str, Bools]
) -> tuple[dict[str, Bools], dict[str, Activity]]:
    """Where each hyperparameter has a value, (n,) each, and which other one says so.

    None is a gap where another one says when, else a value where the configurations name it.
    """
    present = {name: column.present for name, column in columns.items()}
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


def find_conditions(
    columns: Mapping[str, Column], told: Mapping[str, Bools]
) -> dict[str, Activity]:
    """For hyperparameters that are missing somewhere, the one that says where they are active.

    told: as `infer_space` takes it.
    """
    return _find_conditions(_as_cells(columns), told)[1]


def find_unexplained_gaps(columns: Mapping[str, Column], told: Mapping[str, Bools]) -> list[str]:
    """The hyperparameters that are missing somewhere and nothing says where.

    told: as `infer_space` takes it.
    """
    present, explained = _find_conditions(_as_cells(columns), told)
    return [name for name in columns if name not in explained and not present[name].all()]


def explain_missing(
    columns: Mapping[str, Column], present: Mapping[str, Bools] | None = None
) -> dict[str, Activity]:
    """For hyperparameters with missing values, the one that says where they are active.

    Those that nothing explains are left out. Among several explanations the one that is itself
    missing least often wins, which leads to the root of nested choices.

    present: (n,) each, where a column has a value, if None can be a value; else None is a gap.
    """
    cells = _as_cells(columns)
    if present is None:
        present = {name: column.present for name, column in cells.items()}
    if all(here.all() for here in present.values()):
        return {}
    parents = [name for name in cells if _may_be_parent(cells[name], present[name])]
    parents.sort(key=lambda name: -int(present[name].sum()))
    codes = {name: _encode_column(cells[name], present[name]) for name in parents}
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


def _as_cells(columns: Mapping[str, Column]) -> dict[str, ColumnCells]:
    return {name: ColumnCells.of(column) for name, column in columns.items()}


def _may_be_parent(column: ColumnCells, present: Bools) -> bool:
    """Whether a hyperparameter has few values that can be named one by one: no range of floats."""
    kinds = column.kinds | ({NoneType} if (present & ~column.present).any() else set())
    allowed = (*DISCRETE, float) if kinds & {bool, str, NoneType} else DISCRETE
    if not all(issubclass(kind, allowed) for kind in kinds):
        return False
    if len(column.different) > MOST_PARENT_VALUES and column.in_numbers:
        return False
    return 2 <= len(_distinct(column.different)) + (NoneType in kinds) <= MOST_PARENT_VALUES


def _encode_column(column: ColumnCells, present: Bools) -> tuple[list[Scalar], NDArray[np.int64]]:
    """The distinct values, and each row's position among them (-1 where missing)."""
    here = column.encode()
    assert here.codes is not None
    none = [None] if (present & ~column.present).any() else []
    values = _distinct([*as_list(here.values), *none])
    position = {choice_key(value): index for index, value in enumerate(values)}
    moved = [position[choice_key(value)] for value in as_list(here.values)]
    codes = np.array([*moved, position.get(choice_key(None), -1)])[here.codes]
    return values, np.where(present, codes, -1)


def _distinct(values: Sequence[Scalar]) -> list[Scalar]:
    """Each value once, those of one type in their order; True and 1 are two."""
    once = {choice_key(value): plain(value) for value in reversed(as_list(values))}
    return sorted(once.values(), key=_place)


def _place(value: Scalar) -> tuple[str, Any]:
    """By type, for the values of two types have no order."""
    own = tuple(map(_place, value)) if isinstance(value, tuple) else value
    return type(value).__name__, own


def _activating(
    coded: tuple[list[Scalar], NDArray[np.int64]], active: Bools
) -> tuple[Scalar, ...] | None:
    """The parent's values at which a hyperparameter is active, None if they do not decide it."""
    values, codes = coded
    on, off = _codes_in(codes[active]), _codes_in(codes[~active])
    if on & off or -1 in on:
        return None
    return tuple(values[code] for code in sorted(on))


def _codes_in(codes: NDArray[np.int64]) -> set[int]:
    """The different codes, -1 among them."""
    return set((np.flatnonzero(np.bincount(codes + 1)) - 1).tolist())


def add_conditions(space: Draft, activities: Mapping[str, Activity]) -> None:
    """Tell `space` where its hyperparameters are active."""
    for name, activity in activities.items():
        child, parent = space[name], space[activity.parent]
        if len(activity.values) == 1:
            space.add(EqualsCondition(child, parent, activity.values[0]))
        else:
            space.add(InCondition(child, parent, list(activity.values)))


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
