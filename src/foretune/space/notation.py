"""The short notation: a plain dict that describes a space.

    {
        "lr": (1e-4, 1e-1, "log"),              # a float on a log scale
        "dropout": (0.0, 0.5),                  # a float: at least one bound is a float
        "depth": (1, 10),                       # an integer: both bounds are integers
        "width": (16, 1024, "log"),             # an integer on a log scale
        "activation": ["relu", "tanh"],         # a categorical: a list
        "batch": {"ordinal": [16, 32, 64]},     # an ordinal: choices in their order
        "seed": 7,                              # a constant: text, number, boolean or None
        "model": {                              # a choice with children: a dict of dicts
            "svm": {"C": (1e-3, 1e3, "log")},   #   -> "model:svm:C", active if model == "svm"
            "forest": {"trees": (10, 500)},
            "naive": {},                        #   an algorithm without hyperparameters
        },
    }

Defaults are ConfigSpace's: the middle of a range (of the log range), the first choice. Choices may
be nested. A range of one point, such as (3, 3), is a constant. A value may also be a ConfigSpace
hyperparameter.

Notations of other tools are read through entry points of `foretune.spaces`:

    [project.entry-points."foretune.spaces"]
    optuna = "my_package.spaces:read_space"    # Mapping -> ConfigurationSpace

The name of an entry point is the top-level module that defines the values of the mapping. The entry
point is loaded only if such a value is found, because then the tool is installed.
"""

import math
import reprlib
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, NoReturn

import numpy as np
from ConfigSpace import ConfigurationSpace, EqualsCondition
from ConfigSpace.hyperparameters import (
    CategoricalHyperparameter,
    Constant,
    Hyperparameter,
    OrdinalHyperparameter,
    UniformFloatHyperparameter,
    UniformIntegerHyperparameter,
)
from ConfigSpace.hyperparameters.hp_components import ROUND_PLACES

from foretune.errors import SpaceError
from foretune.space.definition import Draft
from foretune.space.json_format import gist
from foretune.space.limits import check_choices, check_count, check_depth, shorten
from foretune.space.parameters import check_whole

GROUP = "foretune.spaces"
SEPARATOR = ":"
ORDINAL = "ordinal"


def space_reader(given: Mapping[str, Any]) -> Callable[[Any], ConfigurationSpace] | None:
    """Return the reader of a mapping if all its values are of one other tool, or None."""
    tools = [_modules_of(value) for value in given.values()]
    shared = set.intersection(*tools) if tools else set()
    entry = next((entry for name, entry in _entry_points().items() if name in shared), None)
    if entry is None:
        return None
    reader: Callable[[Any], ConfigurationSpace] = entry.load()
    return reader


def _modules_of(value: object) -> set[str]:
    """Return the top-level modules that define the value's class and its parents."""
    return {each.__module__.partition(".")[0] for each in type(value).__mro__}


@cache
def _entry_points() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=GROUP)}


def from_notation(notation: Mapping[str, Any]) -> Draft:
    """Read the parts of the space that a plain dict describes."""
    draft = Draft()
    try:
        for hyperparameter, condition in _items(notation):
            draft.add(hyperparameter, *([] if condition is None else [condition]))
            check_count(len(draft.hyperparameters))
    except ValueError as error:
        raise SpaceError(
            f"the notation must name each hyperparameter once, but {gist(error)}: rename one",
            rule="repeated-name",
        ) from error
    return draft


def number_range(
    name: str, low: float, high: float, *, log: bool, integer: bool
) -> Hyperparameter[Any, Any]:
    """Return an int or float hyperparameter; a constant if the range is one point."""
    if low == high:
        return Constant(name, low)
    if integer:
        check_whole(name, low, high)
        return UniformIntegerHyperparameter(name, low, high, log=log)
    low, high = float(low), float(high)
    _check_range_survives(name, low, high, log)
    return UniformFloatHyperparameter(name, low, high, log=log)


def _check_range_survives(name: str, low: float, high: float, log: bool) -> None:
    """Refuse bounds that are no range any more after ConfigSpace has rounded them."""
    with np.errstate(over="ignore"):
        lower, upper = np.round([low, high], ROUND_PLACES)
    if lower < upper and np.isfinite(upper - lower) and (lower > 0.0 or not log):
        return
    raise SpaceError(
        f"the bounds of a float are rounded to {ROUND_PLACES} decimal places, and must then be "
        f"finite and different, and positive on a log scale, but '{name}' has "
        f"[{low!r}, {high!r}]{' log' if log else ''}: use another unit, or search the exponent "
        "of 10 instead",
        rule="rounded-range",
        field=name,
        value=(low, high),
    )


def _items(
    notation: Mapping[str, Any],
) -> Iterator[tuple[Hyperparameter[Any, Any], EqualsCondition | None]]:
    """Yield hyperparameters and their conditions, parents first.

    A stack replaces recursion, because Python limits its depth.
    """
    waiting: list[tuple[int, Mapping[str, Any], tuple[Hyperparameter[Any, Any], Any] | None]]
    waiting = [(0, notation, None)]
    while waiting:
        depth, level, parent = waiting.pop()
        check_depth(depth)
        prefix = "" if parent is None else f"{parent[0].name}{SEPARATOR}{parent[1]}{SEPARATOR}"
        for key, value in level.items():
            if not isinstance(key, str) or not key:
                _refuse(key, value, "not-a-name", "a name must be a text that is not empty")
            hyperparameter = _hyperparameter(prefix + key, value)
            yield hyperparameter, parent and EqualsCondition(hyperparameter, *parent)
            if _is_choice(value):
                waiting += [
                    (depth + 1, children, (hyperparameter, algorithm))
                    for algorithm, children in value.items()
                ]


def _is_choice(value: Any) -> bool:
    return isinstance(value, Mapping) and set(value) != {ORDINAL}


def _hyperparameter(name: str, value: Any) -> Hyperparameter[Any, Any]:
    value = _plain(value)
    try:
        if isinstance(value, Hyperparameter):
            return _rename(name, value)
        if isinstance(value, tuple):
            return _range(name, value)
        if isinstance(value, list):
            return _categorical(name, value, value)
        if isinstance(value, Mapping):
            return _from_mapping(name, value)
    except (ValueError, TypeError, ArithmeticError) as error:
        _refuse(name, value, "refused-by-configspace", gist(error))
    plain = value is None or isinstance(value, str | bool | int | float)
    if not plain or (isinstance(value, float) and math.isnan(value)):
        _refuse(
            name,
            value,
            "not-a-hyperparameter",
            "a value must be a tuple (low, high) or (low, high, 'log'), a list of choices, "
            "{'ordinal': [...]}, a dict of dicts, or a constant that is not NaN",
        )
    return Constant(name, value)


def _plain(value: Any) -> Any:
    """Turn a number of NumPy into a number of Python."""
    return value.item() if isinstance(value, np.generic) else value


def _rename(name: str, value: Hyperparameter[Any, Any]) -> Hyperparameter[Any, Any]:
    if value.name != name:
        _refuse(
            name,
            value,
            "different-name",
            "a ConfigSpace hyperparameter must carry its key as its name",
        )
    return value


def _range(name: str, value: tuple[Any, ...]) -> Hyperparameter[Any, Any]:
    form = "a range must be (low, high) or (low, high, 'log')"
    if len(value) not in (2, 3) or (len(value) == 3 and value[2] != "log"):
        _refuse(name, value, "not-a-range", form)
    low, high = map(_plain, value[:2])
    integer = isinstance(low, int) and isinstance(high, int)
    for bound in (low, high):
        if isinstance(bound, bool) or not isinstance(bound, int | float):
            _refuse(name, value, "bounds-not-numbers", f"{form} with numbers as bounds")
        if not integer and not _is_finite(bound):
            _refuse(name, value, "infinite-bounds", f"{form} with finite bounds")
    if low > high:
        _refuse(name, value, "bounds-reversed", "the lower bound must not exceed the upper one")
    log = len(value) == 3
    if log and low <= 0:
        _refuse(name, value, "log-not-positive", "the bounds of a log range must be positive")
    return number_range(name, low, high, log=log, integer=integer)


def _is_number(choice: Any) -> bool:
    return isinstance(choice, int | float) and not isinstance(choice, bool)


def _is_finite(bound: float) -> bool:
    try:
        return math.isfinite(bound)
    except OverflowError:  # An integer that is too large for a float.
        return False


def _categorical(name: str, value: Any, choices: list[Any]) -> Hyperparameter[Any, Any]:
    if not choices:
        _refuse(name, value, "no-choices", "a list of choices must not be empty")
    check_choices(name, len(choices))
    if len(choices) == 3 and choices[2] == "log" and all(map(_is_number, choices[:2])):
        _refuse(
            name,
            value,
            "range-as-list",
            "a list holds choices, and a range must be (low, high, 'log'), in JSON "
            '{"range": [low, high, "log"]}',
        )
    return CategoricalHyperparameter(name, choices)


def _from_mapping(name: str, value: Mapping[Any, Any]) -> Hyperparameter[Any, Any]:
    if not _is_choice(value):
        sequence = value[ORDINAL]
        if not isinstance(sequence, list) or not sequence:
            _refuse(
                name,
                value,
                "not-an-ordinal",
                "an ordinal must be {'ordinal': [...]} with at least one choice",
            )
        check_choices(name, len(sequence))
        return OrdinalHyperparameter(name, sequence)
    if not value or not all(isinstance(children, Mapping) for children in value.values()):
        _refuse(
            name,
            value,
            "not-a-dict-of-choices",
            "a dict must be {'ordinal': [...]}, in JSON also {\"range\": [low, high]}, or map each "
            "choice to the dict of its hyperparameters ({} for none)",
        )
    return _categorical(name, value, list(value))


def _refuse(name: Any, value: Any, rule: str, text: str) -> NoReturn:
    shown = shorten(name) if isinstance(name, str) else name
    raise SpaceError(
        f"in the notation of a space {text}, but got {shown!r}: {_SHORT.repr(value)}: correct it",
        rule=rule,
        field=str(name),
        value=value,
    )


_SHORT = reprlib.Repr()
"""Shows values of any length and depth."""
_SHORT.maxstring = _SHORT.maxother = 120
