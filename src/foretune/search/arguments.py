"""What callers give to an optimiser: opened, converted, and refused in a sentence."""

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
"""How trials end whose losses count. That of a stopped trial is of its last step."""


def load_experience(experience: Any) -> Experience | None:
    """An experience that may be given as the path of its file."""
    if isinstance(experience, Experience | None):
        return experience
    if isinstance(experience, str | Path):
        return Experience.open(experience)
    raise UsageError(
        f"an experience must be an Experience or the path of one, but got "
        f"{type(experience).__name__}: give Experience.open(path), or the path"
    )


def load_prior(prior: Any, method: Method) -> Prior | None:
    """What a method has learnt, which may be given as the path of its file."""
    if isinstance(prior, Prior | None):
        return prior
    if isinstance(prior, str | Path):
        return method.load(Path(prior))
    raise UsageError(
        f"a prior must be a Prior or the path of one, but got {type(prior).__name__}: give what "
        f"method('{method.name}').learn returns, or the path that it was saved to"
    )


def resolve_space(space: Any, past: Experience | None) -> tuple[Space, Experience | None]:
    """The space to search, and what past runs say about it."""
    if space is None:
        if past is None:
            raise UsageError(
                "an optimiser needs to know what may be tried, but got neither a space nor an "
                'experience: give a space, such as {"lr": (1e-4, 1e-1, "log")}'
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
    """Return past runs in the space that is searched, and warn of what was lost.

    assumed, missing: as `Experience.in_space` takes them. stacklevel: whose line the warning names.
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
    """What is told, as a list."""
    return _list_of(outcomes, Told, "tell([Told(loss, id=suggestion.id)])")


def suggestions_of(suggestions: Any) -> list[Suggestion]:
    """What is taken as pending, as a list."""
    return _list_of(suggestions, Suggestion, "assume_pending([Suggestion(id, config, reason)])")


def _list_of(given: Any, kind: type[Each], call: str) -> list[Each]:
    """All of one kind; `call` is how one writes it."""
    found = list(given) if isinstance(given, Iterable) else None
    if found is None or not all(isinstance(each, kind) for each in found):
        raise UsageError(
            f"{call.partition('(')[0]} takes a list of {kind.__name__}, but got {given!r}: write "
            f"{call}"
        )
    return found


def all_losses_told(outcomes: Sequence[Told], objectives: Sequence[str]) -> Floats:
    """(n, L), of each outcome what `losses_told` says."""
    width = len(objectives)
    if not all(map(partial(_is_plain, width=width), outcomes)):
        each = [losses_told(outcome, objectives) for outcome in outcomes]
        return np.array(each).reshape(len(each), width)
    losses = np.array([outcome.losses for outcome in outcomes]).reshape(len(outcomes), width)
    failed = np.array([outcome.status not in WITH_LOSSES for outcome in outcomes], dtype=bool)
    losses[failed | ~np.isfinite(losses).all(axis=1)] = np.nan
    return losses


def _is_plain(outcome: Told, width: int) -> bool:
    """Whether an outcome says all in the usual types, so that many can be read at once."""
    losses = outcome.losses
    return (
        type(losses) is tuple
        and type(outcome.status) is Status
        and len(losses) == width
        and all(type(loss) is float for loss in losses)
    )


def losses_told(outcome: Told, objectives: Sequence[str]) -> Floats:
    """(L,), one loss for each objective; all NaN where the trial failed in any way."""
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
            f"{len(objectives)} number(s)"
        )
    return losses


def _losses_of(losses: Any) -> Floats:
    """What is told of the objectives, as an array; one number may stand alone."""
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


def check_parts(method: Method) -> None:
    """Refuse a method of somebody's own that names parts which are not there.

    A design by an unknown name would be drawn at random, and nobody would notice.
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
    """Refuse a target without meta-features where the method chooses by them."""
    if method.needs_meta_features and not target.meta_features:
        raise MethodError(
            f"the method '{method.name}' chooses by meta-features, but the target has none: "
            "describe it (meta_features of the Target), or choose a method that needs none"
        )
