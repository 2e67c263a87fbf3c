"""Reads, converts and checks the arguments of an optimiser."""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from foretune._base.arrays import Floats
from foretune.errors import ForetuneWarning, MethodError, UsageError
from foretune.experience import Experience, Status, status_of
from foretune.experience.alignment.carry_over import carry_over
from foretune.experience.alignment.missing_policy import USUAL_POLICY
from foretune.methods.contracts import Prior, Target
from foretune.search.acquisition import ACQUISITIONS
from foretune.search.method_entry import DESIGNS, Method
from foretune.search.suggestions import Suggestion, Told
from foretune.space import Space

Each = TypeVar("Each")

WITH_LOSSES = (Status.DONE, Status.STOPPED)
"""The losses of trials with these statuses count: for a stopped trial those of its last step."""


def load_experience(experience: Any) -> Experience | None:
    """Return the experience; open it if it is given as a path."""
    if isinstance(experience, Experience | None):
        return experience
    if isinstance(experience, str | Path):
        return Experience.open(experience)
    raise UsageError(
        f"an experience must be an Experience or the path of one, but got "
        f"{type(experience).__name__}: give Experience.open(path), or the path",
        rule="not-an-experience",
        field="experience",
        value=experience,
    )


def load_prior(prior: Any, method: Method) -> Prior | None:
    """Return the prior; load it with the method if it is given as a path."""
    if isinstance(prior, Prior | None):
        return prior
    if isinstance(prior, str | Path):
        return method.load(Path(prior))
    raise UsageError(
        f"a prior must be a Prior or the path of one, but got {type(prior).__name__}: give what "
        f"method('{method.name}').learn returns, or the path that it was saved to",
        rule="not-a-prior",
        field="prior",
        value=prior,
    )


def resolve_space(space: Any, past: Experience | None) -> tuple[Space, Experience | None]:
    """Return the space to search, and the experience carried over to it."""
    if space is None:
        if past is None:
            raise UsageError(
                "an optimiser needs to know what may be tried, but got neither a space nor an "
                'experience: give a space, such as {"lr": (1e-4, 1e-1, "log")}',
                rule="space-or-experience",
                field="space",
            )
        return past.space, past
    given = Space.of(space)
    return given, None if past is None else carry_over_past(past, given, stacklevel=4)


def carry_over_past(
    past: Experience,
    space: Space,
    *,
    assumed: Mapping[str, Any] | None = None,
    missing: str = USUAL_POLICY,
    stacklevel: int = 2,
) -> Experience:
    """Return past runs in the space that is searched, and warn if a part of them was lost.

    assumed, missing: as `Experience.in_space` takes them. stacklevel: the caller that the warning
    points at.
    """
    found = carry_over(past, space, assumed=assumed, missing=missing)
    if not found.is_whole:
        how = " (past.in_space(space, assumed={...}) says which values they had, "
        how += "past.renamed({old: new}) what they called it)"
        said = found.describe() + how * bool(found.unknown)
        warnings.warn(
            ForetuneWarning(said, rule="past-runs-of-another-space"), stacklevel=stacklevel
        )
    return found.experience


def outcomes_of(outcomes: Any) -> list[Told]:
    """Return the outcomes as a list."""
    return _list_of(outcomes, Told, "tell([Told(loss, id=suggestion.id)])")


def suggestions_of(suggestions: Any) -> list[Suggestion]:
    """Return the suggestions as a list."""
    return _list_of(suggestions, Suggestion, "assume_pending([Suggestion(id, config, reason)])")


def _list_of(given: Any, kind: type[Each], call: str) -> list[Each]:
    """Return a list whose members are all of one kind. `call` shows how to write the call."""
    found = list(given) if isinstance(given, Iterable) else None
    if found is None or not all(isinstance(each, kind) for each in found):
        raise UsageError(
            f"{call.partition('(')[0]} takes a list of {kind.__name__}, but got {given!r}: write "
            f"{call}",
            rule="list-of-one-kind",
            field=kind.__name__,
            value=given,
        )
    return found


def all_losses_told(outcomes: Sequence[Told], objectives: Sequence[str]) -> Floats:
    """Return (n, L), the `losses_told` of each outcome."""
    width = len(objectives)
    if not all(map(partial(_is_plain, width=width), outcomes)):
        each = [losses_told(outcome, objectives) for outcome in outcomes]
        return np.array(each).reshape(len(each), width)
    losses = np.array([outcome.losses for outcome in outcomes]).reshape(len(outcomes), width)
    failed = np.array([outcome.status not in WITH_LOSSES for outcome in outcomes], dtype=bool)
    losses[failed | ~np.isfinite(losses).all(axis=1)] = np.nan
    return losses


def _is_plain(outcome: Told, width: int) -> bool:
    """Return whether an outcome has the usual types, so that many can be read at once."""
    losses = outcome.losses
    return (
        type(losses) is tuple
        and type(outcome.status) is Status
        and len(losses) == width
        and all(type(loss) is float for loss in losses)
    )


def losses_told(outcome: Told, objectives: Sequence[str]) -> Floats:
    """Return (L,), one loss for each objective; all NaN if the trial failed."""
    failed = np.full(len(objectives), np.nan)
    if status_of(outcome.status) not in WITH_LOSSES:
        return failed
    losses = _losses_of(outcome.losses)
    if not np.isfinite(losses).all():
        return failed
    if losses.shape != failed.shape:
        got = f"{losses.size}" if losses.ndim == 1 else f"an array of shape {losses.shape}"
        raise UsageError(
            f"an outcome needs one loss for each of {list(objectives)}, but got {got}: tell "
            f"{len(objectives)} number(s)",
            rule="one-loss-per-objective",
            field="losses",
            value=outcome.losses,
        )
    return losses


def _losses_of(losses: Any) -> Floats:
    """Return the told losses as an array. A single number need not be in a list."""
    try:
        parts = losses if isinstance(losses, list | tuple) else [losses]
        if not all(_is_number(part) for part in parts):
            raise TypeError("a truth value, a text or nothing is no loss")
        return np.atleast_1d(np.asarray(losses, dtype=float))
    except OverflowError:
        # A whole number that is too large for a float counts as infinite, which is a failure.
        return np.array([np.inf])
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"losses must be numbers, but got {losses!r}: tell one number for each objective, or "
            "NaN (or status=Status.FAILED) if the trial failed",
            rule="not-a-number",
            field="losses",
            value=losses,
        ) from error


def _is_number(part: Any) -> bool:
    """Return whether a loss, or an array of them, is numeric. NumPy also reads texts and None."""
    given = np.asarray(part)
    if given.dtype == object:
        return not any(isinstance(each, bool | str | bytes | None) for each in given.flat)
    return given.dtype.kind not in "bSU"


def check_parts(method: Method) -> None:
    """Refuse a method whose design or acquisition function is unknown.

    An unknown design would be drawn at random, and nobody would notice.
    """
    for part, name, known in (
        ("design", method.design.how, DESIGNS),
        ("acquisition", method.acquisition, tuple(ACQUISITIONS)),
    ):
        if name not in known:
            raise MethodError(
                f"the {part} of the method '{method.name}' must be one of {', '.join(known)}, but "
                f"got {name!r}: choose one of them",
                rule="unknown-method-part",
                field=part,
                value=name,
            )


def check_meta_features(method: Method, target: Target) -> None:
    """Refuse a target without meta-features if the method needs them."""
    if method.needs_meta_features and not target.meta_features:
        raise MethodError(
            f"the method '{method.name}' chooses by meta-features, but the target has none: "
            "describe it (meta_features of the Target), or choose a method that needs none",
            rule="needs-meta-features",
            field="meta_features",
            value=method.name,
        )
