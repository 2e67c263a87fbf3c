"""Checks what a trial returns."""

import json
import math
import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import TYPE_CHECKING, Any

from foretune.errors import ForetuneError
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
    """Stands for a part of a result that is no number. Only its text is kept."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def plain(result: Any) -> Any:
    """Return the same result with numbers and texts only. It is safe to send, store and show.

    A result may be of any class, and run that class's own code when it is compared, shown, or
    unpickled. If trials run in worker processes, that code runs there. `plain` of a plain
    result is a copy.
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
    return str.__str__(name)[:] if isinstance(name, str) else show_briefly(name)


def _plain_value(value: Any) -> Any:
    if type(value) in (float, Unusable) or (type(value) is int and abs(value) <= LARGEST_WHOLE):
        return value
    number = as_float(value)
    return Unusable(show_briefly(value)) if number is None else number


def _plain_notes(notes: Any) -> Any:
    try:
        written = json.dumps({} if notes is None else dict(notes))
    except (Exception, SystemExit) as error:
        return notes if type(notes) is Unusable else Unusable(one_line(error))
    if len(written) > MOST_NOTES:
        return Unusable(f"they take {len(written):,} characters, and at most {MOST_NOTES:,} may")
    return json.loads(written)


def check_result(result: Any, metrics: "Sequence[Metric]") -> Measured:
    """Return the values and notes of a result: a number (of the only metric), or a mapping."""
    result = plain(result)
    if not isinstance(result, dict):
        if len(metrics) > 1:
            names = ", ".join(metric.name for metric in metrics)
            raise ResultError(
                f"the result must be a mapping with {names}, but got {show_briefly(result)}",
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
            f"the result '{name}' must be a finite number, but got {show_briefly(value)}",
            rule="not-finite",
            field=name,
        )
    return number


def finite(value: Any) -> float | None:
    """Return the number; None for anything else, such as a whole number too large for a float."""
    number = as_float(value)
    return number if number is not None and math.isfinite(number) else None


def as_float(value: Any) -> float | None:
    """Return the number, also NaN or infinity; None for texts and all else that is no number."""
    if not isinstance(value, Real) or isinstance(value, bool):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def show_briefly(value: Any) -> str:
    """Return a short text that shows a value of any kind."""
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
