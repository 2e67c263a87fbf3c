"""Checks of a whole space and of what is read into it, before anything slow happens.

No method works with larger spaces: each configuration becomes a row of numbers, with one column for
each choice of a categorical, and methods hold thousands of these rows.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np
from ConfigSpace.hyperparameters import (
    CategoricalHyperparameter,
    Constant,
    Hyperparameter,
    OrdinalHyperparameter,
)

from foretune._base.arrays import Floats
from foretune.errors import SpaceError
from foretune.space.conditions import Rules
from foretune.space.configspace_reader import check_forbidden
from foretune.space.definition import Definition
from foretune.space.parameters import Kind, Parameter

MOST_CHOICES = 10_000
"""The most choices of one hyperparameter."""
MOST_HYPERPARAMETERS = 10_000
MOST_COLUMNS = 10_000
"""The most columns of the unit cube: one for each range, ordinal and choice of a categorical."""
DEEPEST_NOTATION = 400
"""The most levels of nested choices in the short notation. Names grow with each level."""
DEEPEST_RULE = 50
"""The most levels of nested conditions or forbidden clauses."""
FEWER_CHOICES = (
    "search a range of integers instead if the choices have an order, and group the rare ones if "
    "they have none"
)


def check_choices(name: str, count: int) -> None:
    """Refuse a hyperparameter with too many choices."""
    if count > MOST_CHOICES:
        raise SpaceError(
            f"a hyperparameter must have at most {MOST_CHOICES:,} choices, but "
            f"'{shorten(name)}' has {count:,}: {FEWER_CHOICES}",
            rule="too-many-choices",
            field=name,
            value=count,
        )


def check_count(count: int) -> None:
    """Refuse too many hyperparameters."""
    if count > MOST_HYPERPARAMETERS:
        raise SpaceError(
            f"a space must have at most {MOST_HYPERPARAMETERS:,} hyperparameters, but this one has "
            f"{count:,}: leave out those that matter least, or search parts of it one after the "
            "other",
            rule="too-many-hyperparameters",
            value=count,
        )


def check_columns(count: int) -> None:
    """Refuse too many columns of the unit cube."""
    if count > MOST_COLUMNS:
        raise SpaceError(
            f"a space must have at most {MOST_COLUMNS:,} columns (one for each range or ordinal, "
            f"one for each choice of a categorical), but this one has {count:,}: {FEWER_CHOICES}",
            rule="too-many-columns",
            value=count,
        )


def check_depth(depth: int) -> None:
    """Refuse choices of the short notation that are nested too deep."""
    if depth > DEEPEST_NOTATION:
        refuse_depth()


def refuse_depth() -> NoReturn:
    """Refuse a notation that is nested too deep."""
    raise SpaceError(
        f"choices must lie at most {DEEPEST_NOTATION} levels deep inside of each other, but "
        "these are deeper: let them stand beside each other, with conditions in ConfigSpace's "
        "own JSON",
        rule="too-deep",
    )


def check_hyperparameters(hyperparameters: Iterable[Hyperparameter[Any, Any]]) -> None:
    """Refuse hyperparameters that are too many, or have too many choices."""
    widths = [_width(each) for each in hyperparameters]
    check_count(len(widths))
    check_columns(sum(widths))


def check_document(document: Mapping[str, Any]) -> None:
    """Refuse the JSON of a space that is too large or too deep, before anything is made of it.

    Parts of a wrong shape are left to the reader.
    """
    items = document["hyperparameters"]
    check_count(len(items))
    for item in items:
        for key in ("choices", "sequence"):
            if isinstance(item, dict) and isinstance(item.get(key), list):
                check_choices(str(item.get("name")), len(item[key]))
    rules = [rule for part in ("conditions", "forbiddens") for rule in _list_of(document.get(part))]
    for depth, _ in _levels(rules):
        if depth > DEEPEST_RULE:
            _refuse_rule()


def shorten(text: str, longest: int = 60) -> str:
    """Shorten a name or a value for a message."""
    return text if len(text) <= longest else f"{text[: longest - 15]}...{text[-12:]}"


def _width(hyperparameter: Hyperparameter[Any, Any]) -> int:
    if isinstance(hyperparameter, CategoricalHyperparameter):
        check_choices(hyperparameter.name, len(hyperparameter.choices))
        return len(hyperparameter.choices)
    if isinstance(hyperparameter, OrdinalHyperparameter):
        check_choices(hyperparameter.name, len(hyperparameter.sequence))
    return 0 if isinstance(hyperparameter, Constant) else 1


def _levels(rules: list[Any]) -> Iterator[tuple[int, Any]]:
    """Yield every rule with its level, also nested ones."""
    waiting = [(1, rule) for rule in rules]
    while waiting:
        depth, rule = waiting.pop()
        yield depth, rule
        if isinstance(rule, dict):
            for part in ("conditions", "clauses"):
                waiting += [(depth + 1, each) for each in _list_of(rule.get(part))]


def _list_of(part: Any) -> list[Any]:
    return part if isinstance(part, list) else []


def _refuse_rule() -> NoReturn:
    raise SpaceError(
        f"conditions and forbidden clauses must be joined at most {DEEPEST_RULE} levels deep, but "
        "one of this space is deeper: join all its parts at one level",
        rule="rules-too-deep",
    )


def check_defaults(definition: Definition, parameters: Sequence[Parameter], rules: Rules) -> None:
    """Refuse a space whose default configuration is not legal, as ConfigSpace does."""
    settled = rules.settle(np.array([[p.number_of(p.default) for p in parameters]], np.float64))
    active = {
        p.name for p, number in zip(parameters, settled[0], strict=True) if not np.isnan(number)
    }
    doubtful = active ^ definition.active_by_default()
    if doubtful:
        raise SpaceError(
            "a space must be one that ConfigSpace accepts, but it cannot tell whether "
            f"'{min(doubtful)}' is active by default, because its parent is not: use another "
            "condition than 'not equal' there",
            rule="unclear-default",
            field=min(doubtful),
        )
    try:
        check_forbidden(parameters, rules, settled)
    except SpaceError as error:
        raise SpaceError(
            f"forbidden clauses must allow the default configuration, but {error}",
            rule="forbidden-default",
            field=error.field,
        ) from None


def check_stages(parameters: Sequence[Parameter], stages: Sequence[str]) -> None:
    """Refuse names of stages that are no choices of the space."""
    for name in stages:
        kind = next((p.kind for p in parameters if p.name == name), None)
        if kind not in (Kind.CATEGORICAL, Kind.CONSTANT):
            raise SpaceError(
                "a stage must be a categorical or constant hyperparameter of the space, but "
                f"'{name}' is {kind or 'unknown'}: name another",
                rule="not-a-stage",
                field=name,
                value=kind,
            )


def check_matrix(given: Floats, width: int, name: str) -> Floats:
    """Return a matrix of floats with `width` columns."""
    matrix = np.asarray(given, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[1] != width:
        raise SpaceError(
            f"{name} must be a matrix with {width} columns, but got the shape "
            f"{matrix.shape}: reshape it",
            rule="wrong-shape",
            field=name,
            value=matrix.shape,
        )
    return matrix
