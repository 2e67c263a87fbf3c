"""How Optuna's storages hold Foretune's own studies."""

from collections.abc import Mapping
from typing import Any

from foretune.errors import SpaceError
from foretune.run.study_identity import FORMAT
from foretune.space import Parameter, Space

IDENTITY = "foretune"
"""User attribute of a study: its space, metrics and settings."""
OWNER = "foretune:owner"
"""System attribute of a trial: who runs it. Trials without it are not Foretune's."""
TURN = "foretune:turn"
"""System attribute of a trial: how often it was paused or resumed."""
SECONDS, STATUS = "seconds", "status"
"""User attributes of a trial."""


class Labels:
    """The choices of a space in the form that Optuna keeps."""

    def __init__(self, space: Space) -> None:
        self._parameters = {each.name: each for each in space.parameters}
        self._labels = {p.name: _labels(p) for p in space.parameters if not p.is_number}

    def of(self, name: str) -> tuple[Any, ...]:
        """Return the labels of one hyperparameter; nothing if it is a number."""
        return self._labels.get(name, ())

    def to_stored(self, name: str, value: Any) -> Any:
        """Return a value of a hyperparameter as it is stored."""
        if name not in self._labels:
            return value
        return self._labels[name][int(self._parameters[name].number_of(value))]

    def config(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return the configuration of a stored trial."""
        return {
            name: parameter.choices[self._labels[name].index(params[name])]
            if name in self._labels
            else params[name]
            for name, parameter in self._parameters.items()
            if name in params
        }


def own_space(attributes: Mapping[str, Any]) -> Space | None:
    """Return the space of a study from its user attributes; None if Foretune has not begun it."""
    identity = attributes.get(IDENTITY)
    if not isinstance(identity, Mapping) or identity.get("format") != FORMAT:
        return None
    try:
        return Space.from_json(identity.get("space", ""))
    except SpaceError:
        return None


def _labels(parameter: Parameter) -> tuple[Any, ...]:
    """Return the choices, or words for them if Optuna could not store or distinguish them.

    Optuna takes True for 1.
    """
    plain = all(isinstance(c, str | int | float | None) for c in parameter.choices)
    if plain and len(set(parameter.choices)) == len(parameter.choices):
        return parameter.choices
    return tuple(f"{index}: {choice!r}" for index, choice in enumerate(parameter.choices))
