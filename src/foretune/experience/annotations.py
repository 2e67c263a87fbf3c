"""The notes of an experience: meta-features, named splits, and recorded initial designs."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foretune._base.names import quote_names, suggestion
from foretune.errors import ExperienceError
from foretune.experience.data import AnyExperience, MetaFeatures, Splits, Starts

SPLIT_PARTS = ("train", "validation", "test")


@dataclass(frozen=True, slots=True)
class Notes:
    """Everything that an experience holds beside the evaluations."""

    meta_features: MetaFeatures
    splits: Splits
    starts: Starts


def annotate(experience: AnyExperience, notes: Notes) -> AnyExperience:
    """Return the experience with these notes; refuse notes on tasks that it does not have."""
    return replace(
        experience,
        meta_features=_check_meta_features(notes.meta_features, experience.tasks),
        splits=_check_splits(notes.splits, experience.tasks),
        starts=check_starts(notes.starts, experience.tasks, len(experience.configs)),
    )


def _check_tasks(kind: str, names: Sequence[str], tasks: Sequence[str], field: str) -> None:
    known = frozenset(tasks)
    for name in names:
        if name not in known:
            raise ExperienceError(
                f"{kind} must name recorded tasks, but got '{name}': {suggestion(name, tasks)}",
                rule="unknown-task",
                field=field,
                value=name,
            )


def _check_meta_features(given: MetaFeatures, tasks: Sequence[str]) -> MetaFeatures:
    _check_tasks("meta-features", list(given), tasks, "meta_features")
    return {
        task: {name: _meta_feature(task, name, value) for name, value in features.items()}
        for task, features in given.items()
    }


def _meta_feature(task: str, name: str, given: Any) -> float:
    try:
        value = float(given)
    except (TypeError, ValueError, OverflowError):
        value = math.inf
    if math.isinf(value):
        raise ExperienceError(
            "a meta-feature must be a finite number, or NaN if it is unknown, but "
            f"'{name}' of task '{task}' is {given!r:.80}: replace it",
            rule="not-a-meta-feature",
            field=name,
            value=given,
        )
    return value


def _check_splits(given: Splits, tasks: Sequence[str]) -> Splits:
    for name, parts in given.items():
        for part in parts:
            if part not in SPLIT_PARTS:
                raise ExperienceError(
                    f"the parts of a split are {quote_names(SPLIT_PARTS)}, but split '{name}' has "
                    f"'{part}': rename it",
                    rule="unknown-split-part",
                    field=name,
                    value=part,
                )
        members = [task for part in parts.values() for task in part]
        _check_tasks(f"the split '{name}'", members, tasks, name)
        if len(set(members)) < len(members):
            twice = next(task for task in members if members.count(task) > 1)
            raise ExperienceError(
                f"a split holds a task once, but '{name}' has '{twice}' twice: remove one",
                rule="repeated-task",
                field=name,
                value=twice,
            )
    return {
        name: {part: tuple(parts.get(part, ())) for part in SPLIT_PARTS}
        for name, parts in given.items()
    }


def check_starts(given: Starts, tasks: Sequence[str], size: int) -> Starts:
    """Return the initial designs; refuse unknown tasks and indices of configurations."""
    _check_tasks("initial designs", list(given), tasks, "starts")
    for task, designs in given.items():
        for name, indices in designs.items():
            wrong = [index for index in indices if not 0 <= index < size]
            if wrong:
                raise ExperienceError(
                    f"an initial design holds configuration indices between 0 and {size - 1}, but "
                    f"design '{name}' of task '{task}' has {wrong[0]}: check the list",
                    rule="index-outside",
                    field=name,
                    value=wrong[0],
                )
    return {
        task: {name: tuple(int(index) for index in of) for name, of in designs.items()}
        for task, designs in given.items()
    }


def reindex_starts(starts: Starts, moved: NDArray[np.int32]) -> Starts:
    """Return the initial designs after configuration i went to row `moved[i]`."""
    return {
        task: {name: tuple(int(moved[i]) for i in of) for name, of in designs.items()}
        for task, designs in starts.items()
    }
