"""What callers give to an optimiser: opened, converted, and refused in a sentence."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from foretune.arrays import Floats
from foretune.contracts import Prior, Target
from foretune.errors import MethodError, UsageError
from foretune.experience import Experience
from foretune.search.registry import Method
from foretune.search.trials import Told
from foretune.space import Space


def opened(experience: Any) -> Experience | None:
    """An experience that may be given as the path of its file."""
    if isinstance(experience, Experience | None):
        return experience
    if isinstance(experience, str | Path):
        return Experience.open(experience)
    raise UsageError(
        f"an experience must be an Experience or the path of one, but got "
        f"{type(experience).__name__}: give Experience.open(path), or the path"
    )


def opened_prior(prior: Any, method: Method) -> Prior | None:
    """What a method has learnt, which may be given as the path of its file."""
    if isinstance(prior, Prior | None):
        return prior
    if isinstance(prior, str | Path):
        return method.load(Path(prior))
    raise UsageError(
        f"a prior must be a Prior or the path of one, but got {type(prior).__name__}: give what "
        f"method('{method.name}').learn returns, or the path that it was saved to"
    )


def searched_space(space: Any, past: Experience | None) -> Space:
    """The space to search, which is the past tasks' own: a prior holds for no other."""
    if space is None:
        if past is None:
            raise UsageError(
                "an optimiser needs to know what may be tried, but got neither a space nor an "
                'experience: give a space, such as {"lr": (1e-4, 1e-1, "log")}'
            )
        return past.space
    given = Space.of(space)
    if past is not None and past.space != given:
        raise UsageError(
            "an experience must be of the space that is searched, but it is of another: leave the "
            "space out to search the experience's, or leave the experience out"
        )
    return given


def outcomes_of(outcomes: Any) -> list[Told]:
    """What is told, as a list."""
    given = list(outcomes) if isinstance(outcomes, Iterable) else None
    if given is None or not all(isinstance(each, Told) for each in given):
        raise UsageError(
            f"tell takes a list of Told, but got {outcomes!r}: "
            "write tell([Told(loss, id=suggestion.id)])"
        )
    return given


def losses_of(losses: Any) -> Floats:
    """(L,), what is told of the objectives; one number may stand alone."""
    try:
        parts = losses if isinstance(losses, list | tuple) else [losses]
        if not all(_is_number(part) for part in parts):
            raise TypeError("a truth value, a text or nothing is no loss")
        return np.atleast_1d(np.asarray(losses, dtype=float))
    except OverflowError:
        # A whole number that no float can hold counts as infinite, which is a failure.
        return np.array([np.inf])
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"losses must be numbers, but got {losses!r}: tell one number for each objective, or "
            "NaN (or status=Status.FAILED) where the trial failed"
        ) from error


def _is_number(part: Any) -> bool:
    """Whether a loss, or an array of them, is told in numbers: NumPy would read texts and None."""
    given = np.asarray(part)
    if given.dtype == object:
        return not any(isinstance(each, bool | str | bytes | None) for each in given.flat)
    return given.dtype.kind not in "bSU"


def check_described(method: Method, target: Target) -> None:
    """Refuse a target without meta-features where the method chooses by them."""
    if method.needs_meta_features and not target.meta_features:
        raise MethodError(
            f"the method '{method.name}' chooses by meta-features, but the target has none: "
            "describe it (meta_features of the Target), or choose a method that needs none"
        )
