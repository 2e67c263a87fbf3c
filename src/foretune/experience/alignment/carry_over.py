"""Experience carried over to a space that has changed since.

Spaces change from one search to the next: a range is moved, a hyperparameter or an algorithm is
added or removed. `restriction` keeps only what is exactly the same in both spaces. Here a run
counts unless it contradicts the new space:

- A run with a value that the new space does not have is left out.
- A hyperparameter that is not searched any more is ignored. If a number is a constant now, runs
  with other values still count, because they tell good from bad in the other hyperparameters.
- A missing value is the one that is assumed for it; otherwise the `MissingPolicy` decides.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Generic

import numpy as np

from foretune._base.arrays import Bools
from foretune._base.names import quote_names
from foretune.errors import ExperienceError
from foretune.experience.alignment.missing_policy import USUAL_POLICY, MissingPolicy, check_policy
from foretune.experience.alignment.restriction import in_other_space
from foretune.experience.alignment.translation import encode_assumptions, translate_legally
from foretune.experience.combine import merge
from foretune.experience.data import AnyExperience, ExperienceData
from foretune.space import Encoded, Space

MOST_NAMED = 5
"""Messages name no more hyperparameters than this."""


@dataclass(frozen=True, slots=True)
class CarriedExperience(Generic[AnyExperience]):
    """Experience in another space, and what was lost on the way."""

    experience: AnyExperience
    runs: int
    """How many runs there were before."""
    tasks: int
    """How many tasks there were before."""
    outside: Mapping[str, int]
    """For each hyperparameter, how many runs have a value that the space does not have."""
    unknown: tuple[str, ...]
    """Hyperparameters that are searched now and that no run has recorded."""
    gone: tuple[str, ...]
    """Hyperparameters that past runs have searched and that are not searched any more."""
    forbidden: int = 0
    """How many runs have a combination of values that the space forbids."""
    other: tuple[str, ...] = ()
    """Hyperparameters that are constants now, and had other values in runs that are used."""
    in_vain: tuple[str, ...] = ()
    """Hyperparameters with an assumed value, although all runs have recorded them."""
    incomplete: Mapping[str, int] = field(default_factory=dict)
    """For each hyperparameter, how many runs were left out because they lack its value."""
    missing: MissingPolicy = USUAL_POLICY

    @property
    def is_whole(self) -> bool:
        """Whether all runs are used, and nothing is unknown or ignored."""
        changed = self.unknown or self.gone or self.other
        return len(self.experience) == self.runs and not changed

    def describe(self) -> str:
        """Say in one sentence what was lost."""
        kept, tasks = len(self.experience), len(self.experience.tasks)
        parts = [
            f"past runs are of another space: {kept:,} of {self.runs:,} (of {tasks:,} of "
            f"{self.tasks:,} tasks) are used"
        ]
        parts += _describe_dropped(self.outside, self.incomplete, self.forbidden)
        if self.unknown:
            stands = _STANDS[self.missing]
            parts.append(f"they have no value of {quote_names(self.unknown)}{stands}")
        if self.other:
            parts.append(f"they had another value of {quote_names(self.other)}")
        if self.gone:
            parts.append(f"their values of {quote_names(self.gone)} are ignored")
        return "; ".join(parts)


_STANDS = {
    MissingPolicy.DEFAULT: " (the default is taken)",
    MissingPolicy.MARGINALISE: " (random values are taken)",
    MissingPolicy.DROP: "",
}


def carry_over(
    experience: AnyExperience,
    space: Space,
    *,
    assumed: Mapping[str, Any] | None = None,
    missing: MissingPolicy | str = USUAL_POLICY,
) -> CarriedExperience[AnyExperience]:
    """Return the runs of `experience` in `space`, and what was lost.

    This is the only way by which past runs of another space reach a search.

    experience: its configurations may have gaps, which are NaN where the space says that a
        hyperparameter is active. The result has none.
    assumed: values that past runs had for hyperparameters they did not record.
    missing: what to do with the other missing values, see `MissingPolicy`.
    """
    policy = check_policy(missing)
    runs, tasks = len(experience), len(experience.tasks)
    given = encode_assumptions(space, assumed or {})
    if experience.space == space and not has_gaps(experience.configs):
        return CarriedExperience(experience, runs, tasks, {}, (), (), in_vain=tuple(given))
    recorded = experience.space.names
    searched = [each.name for each in space.parameters if each.size > 1]
    _check_shared(recorded, searched)
    found = translate_legally(experience.configs, space, given, policy)
    inside = np.asarray(~found.contradicted.any(axis=1))
    lacks = _lacking(space, found.unrecorded & inside[:, None], given)
    if policy is not MissingPolicy.DROP:
        lacks = np.zeros_like(lacks)
    complete = np.asarray(inside & ~lacks.any(axis=1))
    is_forbidden = complete & space.rules.forbidden(found.values)
    outside = _count_runs(experience, space, found.contradicted)
    incomplete = _count_runs(experience, space, lacks)
    forbidden = int(is_forbidden[experience.config_index].sum())
    rows = np.flatnonzero(complete & ~is_forbidden)
    known = in_other_space(experience, space.from_values(found.values[rows]), rows)
    if known is None:
        raise _nothing_left(runs, outside, incomplete, forbidden)
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
        incomplete=incomplete,
        missing=policy,
    )


def _check_shared(recorded: Sequence[str], searched: Sequence[str]) -> None:
    if set(recorded).isdisjoint(searched):
        raise ExperienceError(
            "an experience must share hyperparameters with the space that is searched, but past "
            f"runs have {quote_names(recorded)} and the space has {quote_names(searched)}: "
            "name them alike, or leave the experience out",
            rule="no-shared-hyperparameter",
            value=tuple(recorded),
        )


def _nothing_left(
    runs: int, outside: Mapping[str, int], incomplete: Mapping[str, int], forbidden: int
) -> ExperienceError:
    remedy = "widen it, rename what is called otherwise now, or leave the experience out"
    if incomplete and not outside:
        remedy = "say which value they had, or treat missing values in another way"
    return ExperienceError(
        "an experience must hold runs that lie in the space that is searched, but none of "
        f"{runs:,} does: {', '.join(_describe_dropped(outside, incomplete, forbidden))}; {remedy}",
        rule="no-run-inside",
        field=next(iter([*_most(outside), *_most(incomplete)]), ""),
        value=runs,
    )


def has_gaps(configs: Encoded) -> bool:
    """Return whether a configuration lacks the value of a hyperparameter that is active in it."""
    if not np.isnan(configs.values).any():
        return False  # Past tasks may have a million configurations.
    return bool(
        any(
            (np.isnan(column) & (True if condition is None else condition(configs.values))).any()
            for column, condition in zip(
                configs.values.T, configs.space.rules.conditions, strict=True
            )
        )
    )


def _lacking(space: Space, unrecorded: Bools, assumed: Mapping[str, float]) -> Bools:
    """Return (n, H), where a value is missing that is neither assumed nor the only one."""
    needed = [each.size > 1 and each.name not in assumed for each in space.parameters]
    lacking: Bools = unrecorded & np.array(needed, dtype=bool)
    return lacking


def _anywhere(space: Space, holds: Bools) -> tuple[str, ...]:
    """Return the hyperparameters for which something holds in any row of (n, H)."""
    return tuple(space.names[number] for number in np.flatnonzero(holds.any(axis=0)))


def _check_success(experience: ExperienceData) -> None:
    """Refuse runs without any success in a metric: no method learns from failures alone."""
    if not np.isfinite(experience.losses).any(axis=0).all():
        raise ExperienceError(
            "an experience must hold runs that have succeeded in the space that is searched, but "
            f"none of the {len(experience):,} that lie in it has: widen it, or leave the "
            "experience out",
            rule="no-success-inside",
            value=len(experience),
        )


def join_carried(
    parts: Sequence[CarriedExperience[AnyExperience]],
) -> CarriedExperience[AnyExperience]:
    """Join several experiences of the same space; tasks of the same name are the same."""
    # A search does not need splits, and those of several files may contradict each other.
    merged = [replace(part.experience, splits={}) for part in parts]
    while (
        len(merged) > 1
    ):  # parts are joined in pairs, so that no table is copied once for every other
        pairs = zip(merged[::2], [*merged[1::2], None], strict=False)
        merged = [one if other is None else merge(one, other) for one, other in pairs]
    return CarriedExperience(
        merged[0],
        sum(part.runs for part in parts),
        sum(part.tasks for part in parts),
        _sum_counts([part.outside for part in parts]),
        unknown=_in_all([part.unknown for part in parts]),
        gone=_in_any([part.gone for part in parts]),
        forbidden=sum(part.forbidden for part in parts),
        other=_in_any([part.other for part in parts]),
        in_vain=_in_all([part.in_vain for part in parts]),
        incomplete=_sum_counts([part.incomplete for part in parts]),
        missing=parts[-1].missing,
    )


def _sum_counts(counts: Sequence[Mapping[str, int]]) -> dict[str, int]:
    total = Counter[str]()
    for each in counts:
        total.update(each)
    return dict(total)


def _in_any(names: Sequence[Sequence[str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(chain.from_iterable(names)))


def _in_all(names: Sequence[Sequence[str]]) -> tuple[str, ...]:
    return tuple(name for name in _in_any(names) if all(name in part for part in names))


def _count_runs(experience: ExperienceData, space: Space, holds: Bools) -> dict[str, int]:
    """Return for each hyperparameter in how many runs something of (configurations, H) holds."""
    runs = holds[experience.config_index].sum(axis=0)
    return {name: int(n) for name, n in zip(space.names, runs, strict=True) if n}


def _describe_dropped(
    outside: Mapping[str, int], incomplete: Mapping[str, int], forbidden: int
) -> list[str]:
    """Say how many runs are left out and why; the most frequent reasons first."""
    parts = [
        ", ".join(f"{outside[name]:,} lie outside of '{name}'" for name in _most(outside)),
        ", ".join(f"{incomplete[name]:,} have no value of '{name}'" for name in _most(incomplete)),
        f"{forbidden:,} are forbidden there" if forbidden else "",
    ]
    return list(filter(None, parts))


def _most(counts: Mapping[str, int]) -> list[str]:
    return sorted(counts, key=lambda name: -counts[name])[:MOST_NAMED]
