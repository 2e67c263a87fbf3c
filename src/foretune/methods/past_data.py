"""What every learner needs: past tasks as it reads them, the space that its prior holds for."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Generic, TypeVar

import numpy as np

from foretune._base.arrays import Floats, Ints
from foretune.errors import MethodError
from foretune.experience import Experience
from foretune.methods.contracts import Target
from foretune.numerics.kernels import squared_distances
from foretune.numerics.objectives import scalarise
from foretune.numerics.scores import Shares, midrank_shares, smooth_shares
from foretune.space import Encoded, Space

CHUNK = 256
"""Configurations that are compared at once with all known ones, of which there may be 60,000."""
MOST_ROWS, LEAST_ROWS = 400_000, 64
"""So many evaluations are read of all past tasks together, but so many of each in any case.
Training draws fewer, so more would hardly be seen."""
HELD_OUT = 0.15
"""The share of past tasks that decide when training stops."""

Values = TypeVar("Values")
Task = TypeVar("Task")
"""A past task, or its name."""


@dataclass(frozen=True, slots=True)
class PastTask:
    """The n successful evaluations of one past task, at least one of them."""

    rows: Ints
    """(n,), the evaluated rows of the experience's configurations."""
    z: Floats
    """(n,), all objectives in one, in the unit of the method's output transform."""

    @property
    def best(self) -> int:
        """The configuration of the lowest loss, as a row of the experience's; the first of ties."""
        return int(self.rows[np.argmin(self.z)])

    def subsample(self, size: int, rng: np.random.Generator) -> "PastTask":
        """At most `size` of the evaluations, drawn at random."""
        if len(self.rows) <= size:
            return self
        drawn = np.sort(rng.choice(len(self.rows), size, replace=False))
        return PastTask(self.rows[drawn], self.z[drawn])


def past_tasks(experience: Experience, output: Callable[[Floats], Floats]) -> list[PastTask]:
    """Every task that has a success; `output` transforms the losses of each task on their own."""
    return [PastTask(rows, scalarise(losses, output)) for rows, losses in successes(experience)]


def successes(experience: Experience) -> list[tuple[Ints, Floats]]:
    """Of every task that has one: the evaluated rows of the configurations, the losses (n, L).

    A configuration counts at its highest fidelity alone.
    """
    tasks = []
    for name in experience.tasks:
        records = experience.task(name)
        done = np.flatnonzero(records.is_full_fidelity)
        if len(done):
            tasks.append((records.config_index[done].astype(np.int64), records.losses[done]))
    if not tasks:
        raise MethodError(
            "a method that transfers needs a past task with a successful evaluation, but none of "
            f"the {len(experience.tasks)} tasks has one: give other experience"
        )
    return tasks


def fair_shares(sizes: Sequence[int]) -> list[Ints]:
    """Which evaluations are read of tasks that have so many each, in random order."""
    share = max(MOST_ROWS // len(sizes), LEAST_ROWS)
    rng = np.random.default_rng(0)
    return [rng.permutation(size)[:share] for size in sizes]


def draw_by_name(names: Sequence[str], most: int, seed: int) -> Ints:
    """At most so many of the tasks of these names, as ascending positions, drawn at random.

    Each name has a number of its own that follows from the seed, and the least numbers are drawn.
    When a task is added, the draw changes by that one task at most. When all may stay, all do.
    """
    if len(names) <= most:
        return np.arange(len(names))
    numbers = [hashlib.blake2b(f"{seed} {name}".encode(), digest_size=8).digest() for name in names]
    order = sorted(range(len(names)), key=numbers.__getitem__)
    return np.sort(np.array(order[:most], dtype=np.int64))


def split_tasks(tasks: list[Task], rng: np.random.Generator) -> tuple[list[Task], list[Task]]:
    """Tasks to learn from, and tasks to decide when to stop; a single task has to do both."""
    n_held_out = max(round(HELD_OUT * len(tasks)), 1)
    order = rng.permutation(len(tasks)).tolist()
    held_out = [tasks[place] for place in order[:n_held_out]]
    return [tasks[place] for place in order[n_held_out:]] or held_out, held_out


def require_experience(experience: Experience | None) -> Experience:
    """The experience, which a method that transfers cannot do without."""
    if experience is None:
        raise MethodError(
            "a method that transfers learns from past tasks, but got no experience: give one"
        )
    return experience


def check_space(learnt_on: Space, target: Target) -> None:
    """Refuse a target whose space is not the one that a prior was learnt on."""
    if target.space != learnt_on:
        raise MethodError(
            "a prior holds for the space it was learnt on, but it was learnt on "
            f"{_describe_space(learnt_on)} and the target has {_describe_space(target.space)}: "
            "learn from "
            "experience in the target's space"
        )


def _describe_space(space: Space) -> str:
    return f"{space!r} with fingerprint {space.fingerprint[:8]}"


@dataclass(frozen=True, slots=True)
class CachedOnPool(Generic[Values]):
    """A function of configurations that remembers its values on the target's pool.

    A recorded pool is asked for at every trial; what past tasks say about it never changes.
    """

    function: Callable[[Encoded], Values]
    pool: Encoded | None
    _known: list[Values] = field(default_factory=list)

    def __call__(self, x: Encoded) -> Values:
        """The function's values at x; remembered where x is the pool itself, not a copy of it."""
        if x is not self.pool:
            return self.function(x)
        if not self._known:
            self._known.append(self.function(x))
        return self._known[0]


@dataclass(frozen=True)
class Catalogue:
    """The configurations that a prior knows by name; others are taken for the nearest of them."""

    configs: Encoded

    def rows(self, x: Encoded) -> Ints:
        """(len(x),), each configuration's own row, or that of the nearest in the unit cube."""
        found = np.array([self._row_of.get(key, -1) for key in x.keys().tolist()], dtype=np.int64)
        unknown = np.flatnonzero(found < 0)
        for first in range(0, len(unknown), CHUNK):
            some = unknown[first : first + CHUNK]
            # In so many dimensions a tree is slower.
            found[some] = squared_distances(x.x[some], self.configs.x).argmin(axis=1)
        return found

    @cached_property
    def _row_of(self) -> dict[bytes, int]:
        return {key: row for row, key in enumerate(self.configs.keys().tolist())}


def trial_shares(target: Target) -> Shares:
    """How the target's trials become scores: smoothed, and on a described task by rank.

    A description tells what each trial should score, and `fit`, whose tasks are described, does
    worse with smoothed scores (decision 016).
    """
    return midrank_shares if target.meta_features else smooth_shares
