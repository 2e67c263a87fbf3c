"""Splits of the tasks: which ones methods learn from, and which are held out."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from foretune._base.names import suggestion
from foretune.errors import ExperienceError
from foretune.experience.checks import Notes, annotate
from foretune.experience.data import AnyExperience, ExperienceData
from foretune.experience.selection import take_tasks

LEAVE_ONE_OUT = "leave-one-out"
FOLDS = re.compile(r"(?P<k>\d+)-fold(?::(?P<seed>\d+))?")
"""`5-fold`, and `5-fold:7` for folds drawn with another seed than 0."""
LEARNING = "learning"
"""The name of the split that says which tasks are for training and which for validation."""


@dataclass(frozen=True, slots=True)
class Split:
    """Tasks to learn from, to choose settings on, and to report on; disjoint."""

    name: str
    train: tuple[str, ...]
    validation: tuple[str, ...]
    test: tuple[str, ...]


def leave_one_out(experience: ExperienceData) -> Iterator[Split]:
    """Yield one split for each task: it is the test task, and all others are for training."""
    for name in experience.tasks:
        train = tuple(other for other in experience.tasks if other != name)
        yield Split(name, train, (), (name,))


def k_fold(experience: ExperienceData, k: int, seed: int) -> Iterator[Split]:
    """Yield `k` splits of nearly equal size; each task is a test task in one of them."""
    n = len(experience.tasks)
    if not 2 <= k <= n:
        raise ExperienceError(
            f"the number of folds must lie between 2 and the number of tasks, {n}, but got {k}: "
            "choose another",
            rule="wrong-number-of-folds",
            field="k",
            value=k,
        )
    fold = np.empty(n, dtype=np.int64)
    fold[np.random.default_rng(seed).permutation(n)] = np.arange(n) % k
    fold_of = dict(zip(experience.tasks, fold.tolist(), strict=True))
    for number in range(k):
        test = tuple(name for name in experience.tasks if fold_of[name] == number)
        train = tuple(name for name in experience.tasks if fold_of[name] != number)
        yield Split(f"fold {number}", train, (), test)


def find_splits(experience: ExperienceData, name: str) -> list[Split]:
    """Return the splits for `leave-one-out`, `5-fold`, `5-fold:7`, or a recorded name."""
    if name == LEAVE_ONE_OUT:
        return list(leave_one_out(experience))
    folds = FOLDS.fullmatch(name)
    if folds is not None:
        return list(k_fold(experience, int(folds["k"]), int(folds["seed"] or 0)))
    return [recorded_split(experience, name)]


def for_learning(experience: AnyExperience, split: Split) -> AnyExperience:
    """Return the evaluations of the training and of the validation tasks.

    Most methods learn from both in the same way. `learning_split` returns which is which.
    """
    parts = {"train": split.train, "validation": split.validation}
    left = take_tasks(experience, split.train + split.validation)
    return annotate(left, Notes(left.meta_features, {LEARNING: parts}, left.starts))


def learning_split(experience: ExperienceData) -> Split:
    """Return the split for learning; without a recorded one, all tasks are for training."""
    if LEARNING in experience.splits:
        return recorded_split(experience, LEARNING)
    return Split(LEARNING, experience.tasks, (), ())


def recorded_split(experience: ExperienceData, name: str) -> Split:
    """Return the split that the experience holds under this name."""
    if name not in experience.splits:
        known = list(experience.splits)
        remedy = suggestion(name, known) if known else "this experience has no named splits"
        raise ExperienceError(
            f"a named split must be one of the recorded ones, but got '{name}': {remedy}",
            rule="unknown-split",
            field="split",
            value=name,
        )
    parts = experience.splits[name]
    return Split(
        name,
        tuple(parts.get("train", ())),
        tuple(parts.get("validation", ())),
        tuple(parts.get("test", ())),
    )
