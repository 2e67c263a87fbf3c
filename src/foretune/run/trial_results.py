"""What a trial may return, and functions of the user's that are found by name."""

import importlib
import json
import math
import reprlib
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

from foretune.errors import ForetuneError, UsageError
from foretune.run.call import one_line

if TYPE_CHECKING:
    # Worker processes import this module: they are not to load what metrics need.
    from foretune.experience import Metric

NOTES = "notes"
"""The key of a result that is kept with the trial and not taken for a metric."""


MOST_ENTRIES = 1_000
"""How many numbers a trial may return beside its notes."""
MOST_NOTES = 2**20
"""How long the notes of a trial may be, in characters of JSON."""
LARGEST_WHOLE = 2**53
"""Up to here a whole number is a float without loss."""
LONGEST_SHOWN = 80
_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = LONGEST_SHOWN


class ResultError(ForetuneError):
    """A trial returned something that cannot be used. It counts as failed, with this reason."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A result, checked."""

    values: dict[str, float]
    """The study's metrics, and whatever other numbers were returned."""
    notes: dict[str, Any] = field(default_factory=dict)


class Unusable:
    """Stands for a part of a result that is no number: its text is all that is kept of it."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def plain(result: Any) -> Any:
    """The same result with numbers and texts only, so that it is safe to send, store and show.

    A result may be of any class, and run that class's own code when it is compared, shown, or
    unpickled. Where trials run in worker processes, it does so there. Of a plain result, `plain`
    is a copy.
    """
    try:
        if not isinstance(result, Mapping):
            return _plain_value(result)
        if len(result) > MOST_ENTRIES:
            raise ResultError(
                f"the result may hold at most {MOST_ENTRIES:,} entries, but it holds "
                f"{len(result):,}: return the metrics, and write the rest to a file",
                rule="too-many-entries",
                value=len(result),
            )
        return {
            _plain_name(name): _plain_notes(value) if name == NOTES else _plain_value(value)
            for name, value in result.items()
        }
    except ResultError:
        raise
    except (Exception, SystemExit) as error:  # of the result's own code
        raise ResultError(
            f"the result cannot be read: {one_line(error)}", rule="unreadable-result"
        ) from None


def _plain_name(name: Any) -> str:
    # A text of a class of its own would bring its own comparison along.
    return str.__str__(name)[:] if isinstance(name, str) else _value_text(name)


def _plain_value(value: Any) -> Any:
    if type(value) in (float, Unusable) or (type(value) is int and abs(value) <= LARGEST_WHOLE):
        return value
    number = _as_float(value)
    return Unusable(_value_text(value)) if number is None else number


def _plain_notes(notes: Any) -> Any:
    try:
        written = json.dumps({} if notes is None else dict(notes))
    except (Exception, SystemExit) as error:
        return notes if type(notes) is Unusable else Unusable(one_line(error))
    if len(written) > MOST_NOTES:
        return Unusable(f"they take {len(written):,} characters, and at most {MOST_NOTES:,} may")
    return json.loads(written)


def check_result(result: Any, metrics: "Sequence[Metric]") -> Measured:
    """A number (of the only metric) or a mapping from metrics to numbers, as values and notes."""
    result = plain(result)
    if not isinstance(result, dict):
        if len(metrics) > 1:
            names = ", ".join(metric.name for metric in metrics)
            raise ResultError(
                f"the result must be a mapping with {names}, but got {_value_text(result)}",
                rule="not-a-mapping",
            )
        return Measured({metrics[0].name: _require_finite(metrics[0].name, result)})
    for metric in metrics:
        if metric.name not in result:
            names = ", ".join(result) or "nothing"
            raise ResultError(
                f"the result must hold '{metric.name}', but it holds {names:.80}: name another "
                "metric, or return this one",
                rule="missing-metric",
                field=metric.name,
            )
    wanted = {metric.name: _require_finite(metric.name, result[metric.name]) for metric in metrics}
    found = {name: finite(value) for name, value in result.items() if name not in wanted}
    others = {name: number for name, number in found.items() if number is not None}
    return Measured({**wanted, **others}, _notes(result.get(NOTES)))


def _require_finite(name: str, value: Any) -> float:
    number = finite(value)
    if number is None:
        raise ResultError(
            f"the result '{name}' must be a finite number, but got {_value_text(value)}",
            rule="not-finite",
            field=name,
        )
    return number


def finite(value: Any) -> float | None:
    """The number; None for whatever else, such as a whole number that is too large for a float."""
    number = _as_float(value)
    return number if number is not None and math.isfinite(number) else None


def _as_float(value: Any) -> float | None:
    if not isinstance(value, Real) or isinstance(value, bool):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def _value_text(value: Any) -> str:
    try:
        return _SHORT.repr(value)[:LONGEST_SHOWN]
    except (Exception, SystemExit):  # as of whole numbers with thousands of digits
        return f"a {type(value).__name__} that cannot be shown"


def _notes(given: Any) -> dict[str, Any]:
    if isinstance(given, Unusable):
        raise ResultError(
            f"the notes of a result must be JSON values: {given.text}", rule="notes-not-json"
        )
    notes: dict[str, Any] = {} if given is None else given
    return notes


class NamedFunction:
    """The function of the user's that `module:function` names, found anew in each process.

    Modules of the folder it was named in are found as well.
    """

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self._folder = str(folder)
        self._function = _find_function(name, self._folder)

    def __reduce__(self) -> tuple[Any, ...]:
        return NamedFunction, (self.name, Path(self._folder))

    def __call__(self, config: dict[str, Any]) -> Any:
        """What the function makes of a configuration, in numbers and texts."""
        return plain(self._function(config))


def _find_function(name: str, folder: str) -> Callable[[dict[str, Any]], Any]:
    module_name, colon, path = name.partition(":")
    if not (module_name and colon and path):
        raise UsageError(
            f"a function must be written as module:function, but got '{name}': such as train:run "
            "for the function run in train.py",
            rule="function-notation",
            value=name,
        )
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        found: Any = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:
        raise UsageError(
            f"the module of '{name}' must be one that can be imported from '{folder}', but: "
            f"{one_line(error)}; {_remedy(name, error)}",
            rule="module-import",
            value=name,
        ) from error
    for part in path.split("."):
        if not hasattr(found, part):
            raise UsageError(
                f"the function of '{name}' must exist, but there is no '{part}' in "
                f"{getattr(found, '__name__', found)}: check its name",
                rule="unknown-function",
                field=part,
                value=name,
            )
        found = getattr(found, part)
    if not callable(found):
        raise UsageError(
            f"'{name}' must be a function, but it is of type {type(found).__name__}: name "
            "something that can be called with a configuration",
            rule="not-callable",
            value=name,
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
