"""Infer the space of recorded configurations from their values.

Ranges are the observed ones, rounded outwards to four digits. If some configurations lack a
hyperparameter, another one must explain it: the hyperparameter is active exactly where the other
one takes certain values. If nothing explains it and the configurations name it as None, then None
is one of its choices.
"""

import numbers
from collections.abc import Collection, Mapping, Sequence
from types import NoneType
from typing import Any, TypeAlias

import numpy as np
from ConfigSpace import (
    CategoricalHyperparameter,
    Constant,
    OrdinalHyperparameter,
    UniformFloatHyperparameter,
    UniformIntegerHyperparameter,
)

from foretune._base.arrays import Bools
from foretune.errors import ExperienceError
from foretune.space.definition import Draft
from foretune.space.parameters import LARGEST_EXACT_INT
from foretune.stores.files.cell_columns import ColumnCells, as_list
from foretune.stores.files.condition_inference import (
    Activity,
    Column,
    add_conditions,
    explain_columns,
)
from foretune.stores.files.plain_values import Scalar, plain, sort_distinct
from foretune.stores.files.range_inference import (
    MOST_CHOSEN_NUMBERS,
    different_numbers,
    has_many_numbers,
    infer_range,
)

Hyperparameter: TypeAlias = (
    CategoricalHyperparameter
    | OrdinalHyperparameter
    | Constant
    | UniformIntegerHyperparameter
    | UniformFloatHyperparameter
)
CHOSEN = (bool, str, NoneType, np.bool_, tuple)
"""Values of these types are always choices."""
MOST_ORDERED_NUMBERS = 100
"""More numbers than MOST_CHOSEN_NUMBERS beside None, up to this many, are an ordered list."""
MOST_CHOICES = 100
LEAST_NAMES, NEARLY_ALL = 20, 0.9
"""Choices are names of rows if there are at least so many and nearly every row has its own."""


def infer_space(
    columns: Mapping[str, Column],
    name: str | None = None,
    *,
    stages: Collection[str] = (),
    activities: Mapping[str, Activity] | None = None,
    told: Mapping[str, Bools] | None = None,
) -> Draft:
    """Infer the space of the configurations in `columns`.

    stages: the categoricals that choose an algorithm.
    activities: where hyperparameters are active; inferred if it is not given.
    told: (n,) each, where configurations name a hyperparameter, perhaps as None. Without it, a None
        means that they do not.
    """
    if not columns:
        raise ExperienceError(
            "a space needs at least one hyperparameter, but the table has none",
            rule="no-hyperparameter",
        )
    cells = {name: ColumnCells.of(column) for name, column in columns.items()}
    if activities is None:
        present, activities = explain_columns(cells, told or {})
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
                f"a hyperparameter may be missing only if another one decides it, but "
                f"'{parameter}' is missing in {len(column) - known[parameter]} of "
                f"{len(column)} rows and no other hyperparameter explains where: fill the gaps, "
                f"leave it out (--ignore '{parameter}'), or give the space as a file",
                rule="unexplained-gaps",
                field=parameter,
            )
    add_conditions(made, activities)
    return made


def _values_of(column: ColumnCells, present: Bools) -> ColumnCells:
    """Return the cells that are present. Some of them may be None."""
    here = column if present.all() else column.take(present)
    return here.with_none()


def infer_parameter(
    name: str, column: Sequence[Scalar] | ColumnCells, *, stage: bool = False
) -> Hyperparameter:
    """Infer a hyperparameter from its values, none of which is missing.

    Numbers are choices if some values are None, because no range holds None.
    """
    values = column if isinstance(column, ColumnCells) else ColumnCells.of(column).with_none()
    types = values.kinds
    if NoneType in types and has_many_numbers(values):
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
    return infer_range(name, values, whole=whole == {True})


def _has_inexact(cells: ColumnCells) -> bool:
    """Return whether a whole number is too large for a float to hold it exactly."""
    if cells.in_numbers:
        return bool(np.abs(cells.values).max() > LARGEST_EXACT_INT) and int in cells.kinds
    return any(isinstance(value, int) and abs(value) > LARGEST_EXACT_INT for value in cells.values)


def _choice_of(
    name: str, values: ColumnCells, *, stage: bool
) -> CategoricalHyperparameter | Constant:
    choices = sort_distinct(values.different)
    if len(set(choices)) < len(choices):
        raise ExperienceError(
            f"the choices of a hyperparameter must differ, but those of '{name}' hold truth "
            "values as well as 1 or 0, which count as equal: write them in one way",
            rule="truth-and-number",
            field=name,
        )
    if stage:
        return CategoricalHyperparameter(name, choices, meta={"stage": True})
    if len(choices) == 1:
        return Constant(name, choices[0])
    _check_number_of_choices(name, len(choices), len(values))
    return CategoricalHyperparameter(name, choices)


def _check_number_of_choices(name: str, different: int, rows: int) -> None:
    """Refuse values that name the rows, such as dates or ids. Nothing can be learnt from them."""
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
    """Return numbers in their order with None at the end, because None mostly means no limit."""
    known = {value: type(value) for value in as_list(values.different) if value is not None}
    numeric = all(
        issubclass(kind, numbers.Real) and not issubclass(kind, bool) for kind in known.values()
    )
    if not numeric or len(known) > MOST_ORDERED_NUMBERS:
        found = f"{len(different_numbers(values))} different numbers"
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
