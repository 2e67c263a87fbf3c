"""What may be set on a scikit-learn estimator, as a space.

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
"""Stands between a step and what belongs to it, as scikit-learn names it."""
FUNCTION = re.compile(r"(<function [\w.]+) at 0x[0-9a-fA-F]+")
"""A function that an object has, which lies somewhere else in each process.

Without a name of its own only its place tells it from others: no later search knows it again.
"""
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
                "{'kernel': {'rbf': {}, 'poly': {'degree': (2, 5)}}}",
                rule="list-of-spaces",
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
        """What a hyperparameter is where nothing sets it, as it is written in the space."""
        owner, own = self._owner(name, estimator)
        value = _item(_settings_of(owner).get(own, UNKNOWN))
        text = text_of(value)
        return text if (name, text) in self.objects else value

    def _owner(self, name: str, estimator: Any) -> tuple[Any, str]:
        """What a hyperparameter belongs to, and its name there: the estimator, or a chosen step."""
        own, chosen = own_name(name), choices_above(name, self.space)
        steps = [each for each in chosen if own.startswith(own_name(each) + STEP)]
        if not steps:
            return estimator, own
        step = max(steps, key=len)  # a step within a step has the longer name
        return self.objects.get((step, chosen[step])), own.removeprefix(own_name(step) + STEP)

    def _counts_and_shares(self, name: str, estimator: Any) -> bool:
        """Whether a whole number is a count to a hyperparameter and a float is a share."""
        owner, own = self._owner(name, estimator)
        step, _, key = own.rpartition(STEP)
        owners = [_settings_of(owner).get(step) if step else owner]
        # A step may be chosen beside what belongs to it.
        for (above, _), choice in self.objects.items():
            if f"{own_name(above)}{STEP}{key}" == own_name(name):
                owners.append(choice)
        return any(_takes_both(each, key) for each in owners)

    def _set_otherwise(self, name: str, past: Space) -> bool:
        """Whether past runs may have set a hyperparameter, or its step, by another name."""
        chosen = choices_above(name, self.space)
        own = own_name(name) + STEP
        others = [each for each in past.names if each != name and each not in chosen]
        setting = [each for each in others if own.startswith(own_name(each) + STEP)]
        return any(_may_meet(chosen, choices_above(each, past)) for each in setting)


def own_name(name: str) -> str:
    """What scikit-learn calls a hyperparameter, without the choice that brings it along."""
    return name.rpartition(SEPARATOR)[2]


def choices_above(name: str, space: Space) -> dict[str, Any]:
    """What is chosen wherever a hyperparameter is set, by the names of the choices."""
    return {
        each.name: choice
        for each in space.parameters
        for choice in each.choices
        if name.startswith(f"{each.name}{SEPARATOR}{choice}{SEPARATOR}")
    }


def _may_meet(chosen: Mapping[str, Any], others: Mapping[str, Any]) -> bool:
    """Whether all of it can be chosen at the same time."""
    return all(others.get(name, choice) == choice for name, choice in chosen.items())


def _settings_of(owner: Any) -> Mapping[str, Any]:
    """The parameters of an estimator; of nothing else."""
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
    """A column as a user writes its values; None where a hyperparameter is inactive."""
    return [None if np.isnan(each) else _as_chosen(parameter, each) for each in column.tolist()]


def _as_chosen(parameter: Parameter, number: float) -> Any:
    if parameter.kind is Kind.FLOAT:
        return number
    return int(number) if parameter.kind is Kind.INT else _item(parameter.choices[int(number)])


def _means_the_same(value: Any, to: Parameter) -> bool:
    """Whether a number is of the same type as the one that stands for it in a hyperparameter."""
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
            f"'{text}': give one of them another setting",
            rule="choices-alike",
            field=name,
            value=text,
        )
    return text


def text_of(choice: Any) -> str:
    """How an object is written in a space: functions and classes by their names."""
    name: str | None = getattr(choice, "__qualname__", None)
    return name or FUNCTION.sub(r"\1", " ".join(repr(choice).split()))


def _item(value: Any) -> Any:
    """A scalar of NumPy, or an array without dimensions, as Python's own."""
    return value.item() if isinstance(value, np.generic | np.ndarray) and not value.ndim else value
