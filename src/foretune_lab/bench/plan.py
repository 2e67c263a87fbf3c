"""The plan of a replay: which tasks are held out, and which runs learn and begin together."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from foretune.errors import ExperienceError, UsageError
from foretune.experience import Experience, Split, find_splits
from foretune.plugins import SILENT, Progress
from foretune_lab.bench.entrants import Entrant
from foretune_lab.bench.starts import Beginnings, Start, beginnings, has_recorded_start

SHUFFLE = 0
"""The seed with which tasks are shuffled before the first of them are taken."""


@dataclass(frozen=True, slots=True)
class RunPlan:
    """One run that is to be played."""

    task: str
    seed: int
    start: tuple[int, ...] | None = None
    """Rows of the experience's configurations to begin with; None for the method's own start."""


@dataclass(frozen=True, slots=True)
class Group:
    """Runs of one method that learn from the same tasks."""

    method: str
    """The name of the competitor in results."""
    split: Split | None
    """The split whose training and validation tasks are learnt from; None for methods without
    learning."""
    runs: tuple[RunPlan, ...]


@dataclass(frozen=True, slots=True)
class HeldOut:
    """The splits, reduced to the test tasks that are replayed."""

    splits: tuple[Split, ...]
    tasks: int
    """The number of tasks that could be replayed; the splits may hold a part of them."""


def plan_held_out(
    experience: Experience,
    name: str,
    start: Start,
    tasks: Sequence[str] | None = None,
    limit: int | None = None,
) -> HeldOut:
    """Plan the tasks that this split holds out, or `tasks` of them, or `limit` random ones."""
    splits = find_splits(experience, name)
    test = [task for split in splits for task in split.test]
    usable = _usable(experience, test, start)
    chosen = list(usable) if tasks is None else list(dict.fromkeys(tasks))
    for task in chosen:
        if task not in test:
            raise UsageError(
                f"a task to replay must be held out by the split '{name}', but '{task}' is not: "
                f"choose among {', '.join(test[:5])}{' ...' if len(test) > 5 else ''}",
                rule="task-not-held-out",
                field="task",
                value=task,
            )
        if task not in usable:
            raise ExperienceError(
                f"a task to replay must have a successful evaluation{_and_a_design(start)}, but "
                f"'{task}' has none: leave it out",
                rule="no-success",
                field="task",
                value=task,
            )
    if not chosen:
        raise UsageError(
            f"a replay needs at least one task, but the split '{name}' holds out none with a "
            f"successful evaluation{_and_a_design(start)}: choose another split or start",
            rule="no-task-to-replay",
            field="split",
            value=name,
        )
    if limit is not None:
        chosen = np.random.default_rng(SHUFFLE).permutation(chosen)[:limit].tolist()
    kept = [replace(split, test=tuple(t for t in split.test if t in chosen)) for split in splits]
    return HeldOut(tuple(split for split in kept if split.test), len(usable))


def groups_of(
    experience: Experience,
    splits: Sequence[Split],
    entrants: Sequence[Entrant],
    seeds: Sequence[int],
    start: Start,
    *,
    jobs: int,
    done: Collection[tuple[str, str, int]],
    progress: Progress = SILENT,
) -> list[Group]:
    """Group the runs that learn the same, in as many groups as keep all jobs busy.

    Runs in `done`, as (task, method, seed), are left out.
    """
    shares = _shares(seeds, math.ceil(jobs / len(splits)))
    methods = [entrant.name for entrant in entrants]
    groups: list[Group] = []
    for split in splits:
        runs = {(task, name, seed) for task in split.test for name in methods for seed in seeds}
        missing = runs.difference(done)
        if missing:
            begun = beginnings(start, experience, split, seeds, progress=progress)
            for entrant in entrants:
                groups += _groups_of_split(split, entrant, shares, begun, missing)
    return sorted(groups, key=lambda group: methods.index(group.method))


def _groups_of_split(
    split: Split,
    entrant: Entrant,
    shares: Sequence[tuple[int, ...]],
    begun: Beginnings,
    missing: Collection[tuple[str, str, int]],
) -> list[Group]:
    """Return shares of the seeds for a method that learns, otherwise single tasks."""
    name, learns = entrant.name, entrant.method.transfers
    units = (
        [[(task, seed) for task in split.test for seed in share] for share in shares]
        if learns
        else [[(task, seed) for share in shares for seed in share] for task in split.test]
    )
    plans = [
        tuple(RunPlan(t, s, begun.get((t, s))) for t, s in unit if (t, name, s) in missing)
        for unit in units
    ]
    return [Group(name, split if learns else None, runs) for runs in plans if runs]


def _usable(experience: Experience, tasks: Sequence[str], start: Start) -> dict[str, None]:
    """Return the tasks that can be replayed at all, in their order."""
    succeeded = np.isfinite(experience.losses).all(axis=1)
    alive = {experience.tasks[place] for place in np.unique(experience.task_index[succeeded])}
    return {
        task: None
        for task in tasks
        if task in alive and (start.kind != "recorded" or has_recorded_start(experience, task))
    }


def _and_a_design(start: Start) -> str:
    return " and a recorded initial design" if start.kind == "recorded" else ""


def _shares(seeds: Sequence[int], parts: int) -> list[tuple[int, ...]]:
    return [tuple(seeds[first::parts]) for first in range(min(parts, len(seeds)))]
