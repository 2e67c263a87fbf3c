"""Renaming the hyperparameters and the choices of a space."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeAlias

from foretune.errors import SpaceError
from foretune.space.json_format import PARTS, canonical
from foretune.space.parameters import Parameter

Names: TypeAlias = Mapping[str, str]
"""The new names of hyperparameters: {old: new}."""
Choices: TypeAlias = Mapping[str, Mapping[Any, Any]]
"""The new choices: {old name of the hyperparameter: {old choice: new choice}}."""

NAMING = ("name", "child", "parent", "left", "right")
"""The keys under which JSON items hold the name of a hyperparameter."""
VALUES, LISTS = ("value", "default_value"), ("choices", "sequence", "values")
"""The keys under which JSON items hold one choice, and several."""
NESTED = "{parent}:{choice}:"
"""The beginning of the name of a hyperparameter that belongs to a choice."""


@dataclass(frozen=True, slots=True)
class Renaming:
    """The new names of all hyperparameters and choices of a space."""

    names: Mapping[str, str]
    """The new name of every hyperparameter."""
    choices: Mapping[str, Mapping[str, Any]]
    """For each old name, the new choices by the JSON of the old ones."""

    @classmethod
    def of(cls, parameters: Sequence[Parameter], names: Names, choices: Choices) -> Self:
        """Return the renaming of a space with these hyperparameters.

        Hyperparameters of a choice are renamed with it: where `svm` becomes `SVC`, `model:svm:C`
        becomes `model:SVC:C`, unless `names` holds another name.
        """
        known = {parameter.name: parameter for parameter in parameters}
        for name in [*names, *choices]:
            if name not in known:
                raise SpaceError(
                    "only a hyperparameter of the space can be renamed, but it has no "
                    f"'{name}': choose among {', '.join(known)}",
                    rule="unknown-hyperparameter",
                    field=name,
                )
        new = {name: _new_choices(known[name], given) for name, given in choices.items()}
        called = _new_names(parameters, names, new)
        if len({*called.values()}) < len(called):
            twice = next(name for name, times in Counter(called.values()).items() if times > 1)
            raise SpaceError(
                "hyperparameters must have different names, but two would be called "
                f"'{twice}': choose another name",
                rule="repeated-name",
                field=twice,
            )
        by_json = {
            name: {
                canonical(old): now for old, now in zip(known[name].choices, changed, strict=True)
            }
            for name, changed in new.items()
        }
        return cls(called, by_json)

    def of_json(self, text: str) -> str:
        """Return the JSON of a space with the new names."""
        document = json.loads(text)
        for part in ("hyperparameters", "conditions", "forbiddens"):
            document[part] = [self._item(item) for item in document[part]]
        return json.dumps(document)

    def _item(self, item: Mapping[str, Any]) -> dict[str, Any]:
        changed: dict[str, Any] = {key: self.names[item[key]] for key in NAMING if key in item}
        changed |= {key: [self._item(each) for each in item[key]] for key in PARTS if key in item}
        # A condition holds a value of its parent, other items hold their own values.
        choices = self.choices.get(item.get("parent", item.get("name")), {})
        for key in VALUES:
            if key in item:
                changed[key] = _rename_value(item[key], choices)
        for key in LISTS:
            if key in item:
                changed[key] = [_rename_value(value, choices) for value in item[key]]
        return {**item, **changed}


def _rename_value(value: Any, choices: Mapping[str, Any]) -> Any:
    return choices.get(canonical(value), value) if choices else value


def _new_choices(parameter: Parameter, given: Mapping[Any, Any]) -> list[Any]:
    """Return all choices of one hyperparameter with their new names."""
    if parameter.is_number:
        raise SpaceError(
            f"only a choice can have another name, but '{parameter.name}' is a range: leave it out",
            rule="not-a-choice",
            field=parameter.name,
        )
    changed = list(parameter.choices)
    for old, now in given.items():
        index = parameter.index_of(old)
        if index is None:
            raise SpaceError(
                f"only a choice of '{parameter.name}' can have another name there, but got "
                f"{old!r}: it has {parameter.allowed_text}",
                rule="not-a-choice",
                field=parameter.name,
                value=old,
            )
        changed[index] = now
    texts = [_text_of(choice, parameter.name) for choice in changed]
    times = Counter(texts)
    for text, choice in zip(texts, changed, strict=True):
        if times[text] > 1:
            raise SpaceError(
                f"the choices of '{parameter.name}' must differ, but two would be {choice!r}: "
                "choose another name",
                rule="repeated-choice",
                field=parameter.name,
                value=choice,
            )
    return changed


def _text_of(choice: Any, name: str) -> str:
    try:
        return canonical(choice)
    except (TypeError, ValueError) as error:
        raise SpaceError(
            f"a choice of '{name}' must be what JSON can hold, but got {choice!r}: use a text, a "
            "number, a boolean, None or a tuple of these",
            rule="not-json",
            field=name,
            value=choice,
        ) from error


def _new_names(
    parameters: Sequence[Parameter], names: Names, choices: Mapping[str, Sequence[Any]]
) -> dict[str, str]:
    """Return the new name of each hyperparameter by its old name."""
    begins = {
        NESTED.format(parent=parameter.name, choice=old): (parameter.name, now)
        for parameter in parameters
        for old, now in zip(
            parameter.choices, choices.get(parameter.name, parameter.choices), strict=True
        )
    }

    called: dict[str, str] = {}
    # The name of a parent is shorter, so it has its new name already.
    for name in sorted((parameter.name for parameter in parameters), key=len):
        called[name] = names[name] if name in names else _new_name(name, begins, called)
    return {parameter.name: called[parameter.name] for parameter in parameters}


def _new_name(name: str, begins: Mapping[str, tuple[str, Any]], called: Mapping[str, str]) -> str:
    """Replace the longest of `begins` at the beginning of the name by its new form."""
    end = name.rfind(":")
    while end >= 0:
        before = name[: end + 1]
        if before in begins:
            parent, choice = begins[before]
            return NESTED.format(parent=called[parent], choice=choice) + name[end + 1 :]
        end = name.rfind(":", 0, end)
    return name
