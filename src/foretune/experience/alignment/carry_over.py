"""Experience carried over to a space that has changed since.

Spaces change from one search to the next: a range is moved, a hyperparameter or an algorithm comes
or goes. `narrowing` keeps what is exactly the same in both spaces; here a run counts as long as
nothing that is known about it contradicts the new space:

- A value that the new space does not have leaves the run out.
- A hyperparameter that is not searched any more is forgotten. So are numbers of one that has a
  single value now, and a single value that is another now: what was found with it still tells good
  from bad.
- What is not known of a run gets the value that is assumed for it, or else one that says as little
  as possible (`translating.fill`).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Generic

import numpy as np

from foretune._base.arrays import Bools
from foretune._base.names import quote_names
from foretune.errors import ExperienceError
from foretune.experience.alignment.restriction import in_other_space
from foretune.experience.alignment.translation import encode_assumptions, translate_legally
from foretune.experience.combine import merge
from foretune.experience.data import AnyExperience, ExperienceData
from foretune.space import Space

MOST_NAMED = 5
"""Messages name no more hyperparameters than this."""


@dataclass(frozen=True, slots=True)
class CarriedExperience(Generic[AnyExperience]):
    """What an experience says about another space, and what was lost on the way."""

    experience: AnyExperience
    runs: int
    """How many there were before."""
    tasks: int
    """Of how many tasks."""
    outside: Mapping[str, int]
    """How many runs have a value of a hyperparameter that the space does not have."""
    unknown: tuple[str, ...]
    """What is searched now, and no run says anything of."""
    gone: tuple[str, ...]
    """What past runs have chosen, and nobody searches any more."""
    forbidden: int = 0
    """How many runs have values that the space does not have together."""
    other: tuple[str, ...] = ()
    """What has a single value now, and runs that are used had another."""
    in_vain: tuple[str, ...] = ()
    """What was assumed although all runs have recorded it."""

    @property
    def is_whole(self) -> bool:
        """Whether nothing was lost, left open or forgotten."""
        changed = self.unknown or self.gone or self.other
        return len(self.experience) == self.runs and not changed

    def describe(self) -> str:
        """What happened, in a sentence."""
        kept, tasks = len(self.experience), len(self.experience.tasks)
        parts = [
            f"past runs are of another space: {kept:,} of {self.runs:,} (of {tasks:,} of "
            f"{self.tasks:,} tasks) are used"
        ]
        parts += _describe_dropped(self.outside, self.forbidden)
        if self.unknown:
            parts.append(f"they say nothing of {quote_names(self.unknown)}")
        if self.other:
            parts.append(f"they had another value of {quote_names(self.other)}")
        if self.gone:
            parts.append(f"what they chose for {quote_names(self.gone)} is not looked at")
        return "; ".join(parts)


def carry_over(
    experience: AnyExperience, space: Space, *, assumed: Mapping[str, Any] | None = None
) -> CarriedExperience[AnyExperience]:
    """What the runs of `experience` say about `space`.

    assumed: the values that past runs had of hyperparameters they did not record.
    """
    runs, tasks = len(experience), len(experience.tasks)
    given = encode_assumptions(space, assumed or {})
    if experience.space == space:
        return CarriedExperience(experience, runs, tasks, {}, (), (), in_vain=tuple(given))
    recorded = set(experience.space.names)
    searched = [each.name for each in space.parameters if each.size > 1]
    if not recorded.intersection(searched):
        raise ExperienceError(
            "an experience must share hyperparameters with the space that is searched, but past "
            f"runs have {quote_names(experience.space.names)} and the space has "
            f"{quote_names(searched)}: "
            "name them alike, or leave the experience out"
        )
    found = translate_legally(experience.configs, space, given)
    inside = ~found.contradicted.any(axis=1)
    legal = inside & ~space.rules.forbidden(found.values)
    outside = _runs_outside(experience, space, found.contradicted)
    forbidden = int((inside & ~legal)[experience.config_index].sum())
    rows = np.flatnonzero(legal)
    known = in_other_space(experience, space.from_values(found.values[rows]), rows)
    if known is None:
        raise ExperienceError(
            f"an experience must hold runs that lie in the space that is searched, but none of "
            f"{runs:,} does: {', '.join(_describe_dropped(outside, forbidden))}; widen it, rename "
            "what is "
            "called otherwise now, or leave the experience out"
        )
    _check_success(known)
    chosen = (each.name for each in experience.space.parameters if each.size > 1)
    unrecorded = _anywhere(space, found.unrecorded)
    return CarriedExperience(
        known,
        runs,
        tasks,
        outside,
        unknown=tuple(name for name in searched if name not in recorded and name not in given),
        gone=tuple(name for name in chosen if name not in space.names),
        forbidden=forbidden,
        other=_anywhere(space, found.differs[rows]),
        in_vain=tuple(name for name in given if name not in unrecorded),
    )


def _anywhere(space: Space, holds: Bools) -> tuple[str, ...]:
    """The hyperparameters of which something holds in any row of (n, H)."""
    return tuple(space.names[number] for number in np.flatnonzero(holds.any(axis=0)))


def _check_success(experience: ExperienceData) -> None:
    """Refuse runs that tell nothing of a metric: no method learns from failures alone."""
    if not np.isfinite(experience.losses).any(axis=0).all():
        raise ExperienceError(
            "an experience must hold runs that have succeeded in the space that is searched, but "
            f"none of the {len(experience):,} that lie in it has: widen it, or leave the "
            "experience out"
        )


def together(
    parts: Sequence[CarriedExperience[AnyExperience]],
) -> CarriedExperience[AnyExperience]:
    """What several experiences say about the same space; tasks of the same name are the same."""
    # A search has no use for splits, and those of several files may contradict each other.
    merged = [replace(part.experience, splits={}) for part in parts]
    while len(merged) > 1:  # in pairs, so that no table is copied once for every other
        pairs = zip(merged[::2], [*merged[1::2], None], strict=False)
        merged = [one if other is None else merge(one, other) for one, other in pairs]
    outside = Counter[str]()
    for part in parts:
        outside.update(part.outside)
    return CarriedExperience(
        merged[0],
        sum(part.runs for part in parts),
        sum(part.tasks for part in parts),
        dict(outside),
        unknown=_in_all([part.unknown for part in parts]),
        gone=_in_any([part.gone for part in parts]),
        forbidden=sum(part.forbidden for part in parts),
        other=_in_any([part.other for part in parts]),
        in_vain=_in_all([part.in_vain for part in parts]),
    )


def _in_any(names: Sequence[Sequence[str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(chain.from_iterable(names)))


def _in_all(names: Sequence[Sequence[str]]) -> tuple[str, ...]:
    return tuple(name for name in _in_any(names) if all(name in part for part in names))


def _runs_outside(experience: ExperienceData, space: Space, contradicted: Bools) -> dict[str, int]:
    runs = contradicted[experience.config_index].sum(axis=0)
    return {name: int(n) for name, n in zip(space.names, runs, strict=True) if n}


def _describe_dropped(outside: Mapping[str, int], forbidden: int) -> list[str]:
    """How many runs the values of which hyperparameters leave out, the most first."""
    order = sorted(outside, key=lambda name: -outside[name])[:MOST_NAMED]
    said = [", ".join(f"{outside[name]:,} lie outside of '{name}'" for name in order)]
    return [*filter(None, said), *([f"{forbidden:,} are forbidden there"] if forbidden else [])]
