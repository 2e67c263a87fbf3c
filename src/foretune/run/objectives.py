"""What a trial may return, and functions of the user's that are found by name."""

import importlib
import json
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

from foretune.errors import UsageError
from foretune.run.calling import one_line

if TYPE_CHECKING:
    # Worker processes import this module: they are not to load what metrics need.
    from foretune.experience import Metric

NOTES = "notes"
"""The key of a result that is kept with the trial and not taken for a metric."""


class ResultError(Exception):
    """A trial returned something that cannot be used: it counts as failed, with this reason."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A result, checked."""

    values: dict[str, float]
    """The study's metrics, and whatever other numbers were returned."""
    notes: dict[str, Any] = field(default_factory=dict)


def measured(result: Any, metrics: "Sequence[Metric]") -> Measured:
    """A number (of the only metric) or a mapping from metrics to numbers, as values and notes."""
    if not isinstance(result, Mapping):
        if len(metrics) > 1:
            names = ", ".join(metric.name for metric in metrics)
            raise ResultError(
                f"the result must be a mapping with {names}, but got {_shown(result)}"
            )
        return Measured({metrics[0].name: _needed(metrics[0].name, result)})
    for metric in metrics:
        if metric.name not in result:
            names = ", ".join(map(str, result)) or "nothing"
            raise ResultError(
                f"the result must hold '{metric.name}', but it holds {names:.80}: name another "
                "metric, or return this one"
            )
    wanted = {metric.name: _needed(metric.name, result[metric.name]) for metric in metrics}
    found = {str(name): finite(value) for name, value in result.items() if name not in wanted}
    others = {name: number for name, number in found.items() if number is not None}
    return Measured({**wanted, **others}, _notes(result.get(NOTES)))


def _needed(name: str, value: Any) -> float:
    number = finite(value)
    if number is None:
        raise ResultError(f"the result '{name}' must be a finite number, but got {_shown(value)}")
    return number


def finite(value: Any) -> float | None:
    """The number; None for whatever else, such as a whole number that is too large for a float."""
    if not isinstance(value, Real) or isinstance(value, bool):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _shown(value: Any) -> str:
    try:
        return f"{value!r:.80}"
    except Exception:  # as of whole numbers with thousands of digits, which Python does not write
        return f"a {type(value).__name__} that cannot be shown"


def _notes(given: Any) -> dict[str, Any]:
    try:
        notes: dict[str, Any] = json.loads(json.dumps({} if given is None else dict(given)))
    except (TypeError, ValueError) as error:
        raise ResultError(f"the notes of a result must be JSON values: {one_line(error)}") from None
    return notes


class NamedFunction:
    """The function of the user's that `module:function` names, found anew in each process.

    Modules of the folder it was named in are found as well.
    """

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self._folder = str(folder)
        self._function = _found(name, self._folder)

    def __reduce__(self) -> tuple[Any, ...]:
        return NamedFunction, (self.name, Path(self._folder))

    def __call__(self, config: dict[str, Any]) -> Any:
        """What the function makes of a configuration."""
        return self._function(config)


def _found(name: str, folder: str) -> Callable[[dict[str, Any]], Any]:
    module_name, colon, path = name.partition(":")
    if not (module_name and colon and path):
        raise UsageError(
            f"a function must be written as module:function, but got '{name}': such as train:run "
            "for the function run in train.py"
        )
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        found: Any = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:
        raise UsageError(
            f"the module of '{name}' must be one that can be imported from '{folder}', but: "
            f"{one_line(error)}; {_remedy(name, error)}"
        ) from error
    for part in path.split("."):
        if not hasattr(found, part):
            raise UsageError(
                f"the function of '{name}' must exist, but there is no '{part}' in "
                f"{getattr(found, '__name__', found)}: check its name"
            )
        found = getattr(found, part)
    if not callable(found):
        raise UsageError(
            f"'{name}' must be a function, but it is of type {type(found).__name__}: name "
            "something that can be called with a configuration"
        )
    function: Callable[[dict[str, Any]], Any] = found
    return function


def _remedy(name: str, error: BaseException) -> str:
    """What to do about a module that cannot be imported."""
    if isinstance(error, SystemExit):
        return 'let what ends the program stand under  if __name__ == "__main__":'
    module, _, function = name.partition(":")
    dotted = module.removesuffix(".py").strip("./").replace("/", ".")
    return (
        "correct the name, or mend the module" if dotted == module else f"write {dotted}:{function}"
    )
