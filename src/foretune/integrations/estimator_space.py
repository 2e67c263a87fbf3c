"""The hyperparameters of a scikit-learn estimator as a space.

A space holds plain values, under names of its own: what a choice brings along is called
`kernel:poly:degree`. scikit-learn calls it `degree`, and a choice may be an object, such as a step
of a pipeline. Objects stand in the space by a text, and so do numbers that a space takes for the
same, such as 1 and 1.0: a count and a share to many an estimator.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from numbers import Integral
from typing import Any, TypeAlias

import numpy as np

from foretune._base.arrays import Bools, Floats
from foretune.errors import SpaceError
from foretune.experience.alignment.translation import number_in
from foretune.integrations.scipy_distributions import is_distribution, range_of
from foretune.space import Encoded, Space
from foretune.space.notation import ORDINAL, SEPARATOR
from foretune.space.parameters import Kind, Parameter

STEP = "__"
"""scikit-learn writes it between a step and its parameters."""
FUNCTION = re.compile(r"(<function [\w.]+) at 0x[0-9a-fA-F]+")
"""A function that an object has, which lies somewhere else in each process.

Without a name of its own only its place tells it from others: no later search knows it again.
"""
UNKNOWN = object()
"""Stands for a value that is unknown."""
PLAIN = (str, bool, int, float, tuple, type(None))

Objects: TypeAlias = dict[tuple[str, str], Any]
"""{(hyperparameter, text that stands for an object): object}"""


@dataclass(frozen=True)
class SearchSpace:
    """A space, and the objects that texts in its configurations stand for."""

    space: Space
    objects: Objects

    @classmethod
    def of(cls, given: Any) -> "SearchSpace":
        """Return the space for anything that `Space.of` reads or `RandomizedSearchCV` takes.

        Lists are choices, of any objects; tuples are ranges.
        """
        if isinstance(given, list):
            raise SpaceError(
                "a space must be one dict, but got a list of them: write alternatives as a choice, "
                "{'kernel': {'rbf': {}, 'poly': {'degree': (2, 5)}}}",
                rule="list-of-spaces",
            )
        if not isinstance(given, dict):
            return cls(Space.of(given), {})
        objects: Objects = {}
        return cls(Space.of(_readable(given, "", objects)), objects)

    def parameters(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters to set. Those that are inactive stay as the estimator has them."""
        chosen: dict[str, Any] = {}
        for name, value in config.items():
            own = own_name(name)
            if own in chosen:
                raise SpaceError(
                    f"a parameter must be set once, but '{own}' is brought along twice, once as "
                    f"'{name}': leave one out",
                    rule="set-twice",
                    field=own,
                )
            chosen[own] = self.objects.get((name, value), value)
        return chosen

    def values_of(self, estimator: Any, *, past: Space) -> dict[str, Any]:
        """What runs of a past space had where they set nothing, as far as this space can say it.

        The estimator has it, or the step that was chosen. Where runs may have set it, or its step,
        by another name, nobody knows.
        """
        asked = [each for each in self.space.parameters if not self._set_otherwise(each.name, past)]
        found = {each.name: self._unset(each.name, estimator) for each in asked}
        has = [each for each in asked if not np.isnan(number_in(each, found[each.name]))]
        return {
            each.name: found[each.name]
            for each in has
            if _means_the_same(found[each.name], each)
            or not self._counts_and_shares(each.name, estimator)
        }

    def find_ambiguous_counts(self, past: Encoded, estimator: Any) -> dict[str, Bools]:
        """Which past configurations have a count for a share, or the other way round, of what.

        By the numbers alone 1.0, all features, would become 1, one of them.
        """
        sources = {each.name: number for number, each in enumerate(past.space.parameters)}
        found = {}
        for to in self.space.parameters:
            number = sources.get(to.name)
            if number is not None and self._counts_and_shares(to.name, estimator):
                values = _values(past.space.parameters[number], past.values[:, number])
                found[to.name] = np.array([not _means_the_same(each, to) for each in values])
        return found

    def _unset(self, name: str, estimator: Any) -> Any:
        """Return the value of a hyperparameter that nothing sets, as the space writes it."""
        owner, own = self._owner(name, estimator)
        value = _item(_settings_of(owner).get(own, UNKNOWN))
        text = text_of(value)
        return text if (name, text) in self.objects else value

    def _owner(self, name: str, estimator: Any) -> tuple[Any, str]:
        """Return the estimator or the chosen step with a hyperparameter, and its name there."""
        own, chosen = own_name(name), choices_above(name, self.space)
        steps = [each for each in chosen if own.startswith(own_name(each) + STEP)]
        if not steps:
            return estimator, own
        step = max(steps, key=len)  # a step within a step has the longer name
        return self.objects.get((step, chosen[step])), own.removeprefix(own_name(step) + STEP)

    def _counts_and_shares(self, name: str, estimator: Any) -> bool:
        """Return whether whole numbers are counts and floats are shares for a hyperparameter."""
        owner, own = self._owner(name, estimator)
        step, _, key = own.rpartition(STEP)
        owners = [_settings_of(owner).get(step) if step else owner]
        # A step may be chosen in the same space as its parameters.
        for (above, _), choice in self.objects.items():
            if f"{own_name(above)}{STEP}{key}" == own_name(name):
                owners.append(choice)
        return any(_takes_both(each, key) for each in owners)

    def _set_otherwise(self, name: str, past: Space) -> bool:
        """Return whether past runs may have set a hyperparameter, or its step, by another name."""
        chosen = choices_above(name, self.space)
        own = own_name(name) + STEP
        others = [each for each in past.names if each != name and each not in chosen]
        setting = [each for each in others if own.startswith(own_name(each) + STEP)]
        return any(_may_meet(chosen, choices_above(each, past)) for each in setting)


def own_name(name: str) -> str:
    """Return scikit-learn's name of a hyperparameter, without the choice it belongs to."""
    return name.rpartition(SEPARATOR)[2]


def choices_above(name: str, space: Space) -> dict[str, Any]:
    """Return the choices that a hyperparameter belongs to, by their names."""
    return {
        each.name: choice
        for each in space.parameters
        for choice in each.choices
        if name.startswith(f"{each.name}{SEPARATOR}{choice}{SEPARATOR}")
    }


def _may_meet(chosen: Mapping[str, Any], others: Mapping[str, Any]) -> bool:
    """Return whether all can be chosen at the same time."""
    return all(others.get(name, choice) == choice for name, choice in chosen.items())


def _settings_of(owner: Any) -> Mapping[str, Any]:
    """Return the parameters of an estimator; nothing for other objects."""
    has_some = hasattr(owner, "get_params") and not isinstance(owner, type)
    found: Mapping[str, Any] = owner.get_params() if has_some else {}
    return found


def _takes_both(owner: Any, key: str) -> bool:
    """Whether an estimator tells whole numbers and floats apart, as scikit-learn's declare it.

    They do so for themselves: nothing is imported that a later version may not have.
    """
    declared = getattr(owner, "_parameter_constraints", {}).get(key, ())
    kinds = {getattr(each, "type", None) for each in declared}
    return Integral in kinds and "RealNotInt" in {getattr(each, "__name__", "") for each in kinds}


def _values(parameter: Parameter, column: Floats) -> list[Any]:
    """Return a column as a user writes its values; None if a hyperparameter is inactive."""
    return [None if np.isnan(each) else _as_chosen(parameter, each) for each in column.tolist()]


def _as_chosen(parameter: Parameter, number: float) -> Any:
    if parameter.kind is Kind.FLOAT:
        return number
    return int(number) if parameter.kind is Kind.INT else _item(parameter.choices[int(number)])


def _means_the_same(value: Any, to: Parameter) -> bool:
    """Return whether a number has the same type as the number that replaces it."""
    if not _is_number(value) or to.kind is Kind.CONSTANT:
        return True  # what is a setting now leaves no run out
    if to.is_number:
        return type(value) is (int if to.kind is Kind.INT else float)
    numbers = [_item(each) for each in to.choices if _is_number(_item(each))]
    nearest = min(numbers, key=lambda each: abs(each - value), default=value)
    return type(nearest) is type(value)


def _is_number(value: Any) -> bool:
    return type(value) in (int, float)


def _readable(given: Mapping[Any, Any], prefix: str, objects: Objects) -> dict[Any, Any]:
    """Return a space in the short notation. Values that are not plain go into `objects`."""
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
    """Return choices. Ascending numbers are an ordered list."""
    numbers = all(isinstance(point, int | float) for point in points)
    if points and numbers and all(a < b for a, b in pairwise(points)):
        return {ORDINAL: points}
    # Rows become tuples, because a space cannot hold lists.
    rows = [tuple(point) if isinstance(point, list) else point for point in points]
    return _choices(name, rows, objects)


def _choices(name: str, choices: list[Any], objects: Objects) -> list[Any]:
    """Return the choices, or texts for all of them if two are equal numbers."""
    numbers = [each for each in choices if isinstance(each, int | float)]
    if len(set(numbers)) == len({(type(each), each) for each in numbers}):
        return [_choice(name, each, objects) for each in choices]
    _check_by_type(name, choices)
    return [_text(name, each, objects) for each in choices]


def _check_by_type(name: str, choices: list[Any]) -> None:
    """Refuse NaN and repeated choices before texts hide them."""
    for kind in dict.fromkeys(type(each) for each in choices if isinstance(each, PLAIN)):
        Space.of({name: [each for each in choices if type(each) is kind]})


def _choice(name: str, choice: Any, objects: Objects) -> Any:
    """Return the choice itself, or the text that stands for an object."""
    return choice if isinstance(choice, PLAIN) else _text(name, choice, objects)


def _text(name: str, choice: Any, objects: Objects) -> str:
    """Return the text for a choice, and add it to `objects`."""
    text = text_of(choice)
    if objects.setdefault((name, text), choice) is not choice:
        raise SpaceError(
            f"choices must be told apart by how they are written, but two of '{name}' are "
            f"'{text}': give one of them another setting",
            rule="choices-alike",
            field=name,
            value=text,
        )
    return text


def text_of(choice: Any) -> str:
    """Return the text of an object. Functions and classes are written by their names."""
    name: str | None = getattr(choice, "__qualname__", None)
    return name or FUNCTION.sub(r"\1", " ".join(repr(choice).split()))


def _item(value: Any) -> Any:
    """Return a scalar of NumPy, or an array without dimensions, as a value of Python."""
    return value.item() if isinstance(value, np.generic | np.ndarray) and not value.ndim else value
