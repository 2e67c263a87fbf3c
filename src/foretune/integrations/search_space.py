"""What may be set on a scikit-learn estimator, as a space.

A space holds plain values, under names of its own: what a choice brings along is called
`kernel:poly:degree`. scikit-learn calls it `degree`, and a choice may be an object, such as a step
of a pipeline. Objects stand in the space by a text, and so do numbers that a space takes for the
same, such as 1 and 1.0: a count and a share to many an estimator.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from foretune.errors import SpaceError
from foretune.experience.carrying import number_in
from foretune.integrations.scipy_distributions import is_distribution, range_of
from foretune.space import Space
from foretune.space.notation import ORDINAL, SEPARATOR

UNKNOWN = object()
"""Stands for a value that an estimator does not say."""
PLAIN = (str, bool, int, float, tuple, type(None))

Objects: TypeAlias = dict[tuple[str, str], Any]
"""Objects by the hyperparameter they are a choice of, and the text that stands for them."""


@dataclass(frozen=True)
class SearchSpace:
    """A space, and what its configurations mean to an estimator."""

    space: Space
    objects: Objects

    @classmethod
    def of(cls, given: Any) -> "SearchSpace":
        """Anything that `Space.of` reads, or what `RandomizedSearchCV` takes.

        Lists are choices, of any objects; tuples are ranges.
        """
        if isinstance(given, list):
            raise SpaceError(
                "a space must be one dict, but got a list of them: write alternatives as a choice, "
                "{'kernel': {'rbf': {}, 'poly': {'degree': (2, 5)}}}"
            )
        if not isinstance(given, dict):
            return cls(Space.of(given), {})
        objects: Objects = {}
        return cls(Space.of(_readable(given, "", objects)), objects)

    def parameters(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """What to set; an inactive hyperparameter is left as the estimator has it."""
        chosen: dict[str, Any] = {}
        for name, value in config.items():
            own = own_name(name)
            if own in chosen:
                raise SpaceError(
                    f"a parameter must be set once, but '{own}' is brought along twice, once as "
                    f"'{name}': leave one out"
                )
            chosen[own] = self.objects.get((name, value), value)
        return chosen

    def values_of(self, estimator: Any, *, besides: Collection[str] = ()) -> dict[str, Any]:
        """What an estimator has where a search sets nothing, as far as the space can say it.

        besides: names of hyperparameters that are not asked for.
        """
        has = estimator.get_params()
        asked = [each for each in self.space.parameters if each.name not in besides]
        found = {each.name: _item(has.get(own_name(each.name), UNKNOWN)) for each in asked}
        return {p.name: found[p.name] for p in asked if not np.isnan(number_in(p, found[p.name]))}


def own_name(name: str) -> str:
    """What scikit-learn calls a hyperparameter, without the choice that brings it along."""
    return name.rpartition(SEPARATOR)[2]


def _readable(given: Mapping[Any, Any], prefix: str, objects: Objects) -> dict[Any, Any]:
    """The same in the short notation; what is no plain value goes into `objects`."""
    return {key: _value(f"{prefix}{key}", value, objects) for key, value in given.items()}


def _value(name: str, value: Any, objects: Objects) -> Any:
    value = _item(value)
    if is_distribution(value):
        return range_of(name, value)
    if isinstance(value, np.ndarray | range):
        return _points(name, [_item(each) for each in np.asarray(value).tolist()], objects)
    if isinstance(value, list):
        return _choices(name, [_item(each) for each in value], objects)
    if isinstance(value, tuple):
        return tuple(_item(each) for each in value)
    if isinstance(value, Mapping) and all(isinstance(part, Mapping) for part in value.values()):
        texts = {key: _choice(name, _item(key), objects) for key in value}
        return {
            text: _readable(value[key], f"{name}{SEPARATOR}{text}{SEPARATOR}", objects)
            for key, text in texts.items()
        }
    return value


def _points(name: str, points: list[Any], objects: Objects) -> Any:
    """Choices; numbers that go up are near each other in that order."""
    numbers = all(isinstance(point, int | float) for point in points)
    if points and numbers and all(a < b for a, b in pairwise(points)):
        return {ORDINAL: points}
    # Rows are tuples, which a space can hold.
    rows = [tuple(point) if isinstance(point, list) else point for point in points]
    return _choices(name, rows, objects)


def _choices(name: str, choices: list[Any], objects: Objects) -> list[Any]:
    """The choices, or the texts that stand for them: for all where two are equal numbers."""
    numbers = [each for each in choices if isinstance(each, int | float)]
    if len(set(numbers)) == len({(type(each), each) for each in numbers}):
        return [_choice(name, each, objects) for each in choices]
    _check_by_type(name, choices)
    return [_text(name, each, objects) for each in choices]


def _check_by_type(name: str, choices: list[Any]) -> None:
    """Have a space refuse what texts would hide: NaN, and what is named twice."""
    for kind in dict.fromkeys(type(each) for each in choices if isinstance(each, PLAIN)):
        Space.of({name: [each for each in choices if type(each) is kind]})


def _choice(name: str, choice: Any, objects: Objects) -> Any:
    """The choice itself, or the text that stands for an object."""
    return choice if isinstance(choice, PLAIN) else _text(name, choice, objects)


def _text(name: str, choice: Any, objects: Objects) -> str:
    """What stands for a choice, of which `objects` takes note."""
    text = text_of(choice)
    if objects.setdefault((name, text), choice) is not choice:
        raise SpaceError(
            f"choices must be told apart by how they are written, but two of '{name}' are "
            f"'{text}': give one of them another setting"
        )
    return text


def text_of(choice: Any) -> str:
    """How an object is written in a space: functions and classes by their names."""
    name: str | None = getattr(choice, "__qualname__", None)
    return name or " ".join(repr(choice).split())


def _item(value: Any) -> Any:
    """A scalar of NumPy, or an array without dimensions, as Python's own."""
    return value.item() if isinstance(value, np.generic | np.ndarray) and not value.ndim else value
