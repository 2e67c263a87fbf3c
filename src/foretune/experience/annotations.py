"""What is known beside the evaluations: meta-features, named splits, recorded initial designs."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foretune._base.names import quote_names, suggestion
from foretune.errors import ExperienceError
from foretune.experience.experience import Experience, MetaFeatures, Splits, Starts

SPLIT_PARTS = ("train", "validation", "test")


@dataclass(frozen=True, slots=True)
class Notes:
    """What is known beside the evaluations."""

    meta_features: MetaFeatures
    splits: Splits
    starts: Starts


def annotate(experience: Experience, notes: Notes) -> Experience:
    """The experience with these notes, after checking that they speak of its own tasks."""
    return replace(
        experience,
        meta_features=_check_meta_features(notes.meta_features, experience.tasks),
        splits=_check_splits(notes.splits, experience.tasks),
        starts=check_starts(notes.starts, experience.tasks, len(experience.configs)),
    )


def _check_tasks(of: str, names: Sequence[str], tasks: Sequence[str]) -> None:
    known = frozenset(tasks)
    for name in names:
        if name not in known:
            raise ExperienceError(
                f"{of} must speak of recorded tasks, but got '{name}': {suggestion(name, tasks)}"
            )


def _check_meta_features(given: MetaFeatures, tasks: Sequence[str]) -> MetaFeatures:
    _check_tasks("meta-features", list(given), tasks)
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
            "a meta-feature must be a finite number, or NaN where it is unknown, but "
            f"'{name}' of task '{task}' is {given!r:.80}: replace it"
        )
    return value


def _check_splits(given: Splits, tasks: Sequence[str]) -> Splits:
    for name, parts in given.items():
        for part in parts:
            if part not in SPLIT_PARTS:
                raise ExperienceError(
                    f"the parts of a split are {quote_names(SPLIT_PARTS)}, but split '{name}' has "
                    f"'{part}': rename it"
                )
        members = [task for part in parts.values() for task in part]
        _check_tasks(f"the split '{name}'", members, tasks)
        if len(set(members)) < len(members):
            twice = next(task for task in members if members.count(task) > 1)
            raise ExperienceError(
                f"a split holds a task once, but '{name}' has '{twice}' twice: remove one"
            )
    return {
        name: {part: tuple(parts.get(part, ())) for part in SPLIT_PARTS}
        for name, parts in given.items()
    }


def check_starts(given: Starts, tasks: Sequence[str], size: int) -> Starts:
    """The initial designs, after checking their tasks and their configuration indices."""
    _check_tasks("initial designs", list(given), tasks)
    for task, designs in given.items():
        for name, indices in designs.items():
            if any(not 0 <= index < size for index in indices):
                raise ExperienceError(
                    f"an initial design holds configuration indices between 0 and {size - 1}, but "
                    f"design '{name}' of task '{task}' has others: check the list"
                )
    return {
        task: {name: tuple(int(index) for index in of) for name, of in designs.items()}
        for task, designs in given.items()
    }


def reindex_starts(starts: Starts, moved: NDArray[np.int32]) -> Starts:
    """The initial designs after configuration i went to row `moved[i]`."""
    return {
        task: {name: tuple(int(moved[i]) for i in of) for name, of in designs.items()}
        for task, designs in starts.items()
    }
