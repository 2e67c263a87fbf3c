"""Past tasks as learners read them, and checks that all learners share."""

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
"""The number of configurations that are compared at once with all known ones, up to 60,000."""

HELD_OUT = 0.15
"""The share of past tasks that decides when training stops."""

Values = TypeVar("Values")
Task = TypeVar("Task")
"""A past task, or its name."""


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """The number of evaluations to read. Training draws fewer, so it would hardly see more."""

    most: int = 400_000
    """From all past tasks together."""
    least: int = 64
    """From each task in any case."""


USUAL_LIMITS = ReadLimits()


@dataclass(frozen=True, slots=True)
class PastTask:
    """The n successful evaluations of one past task, n >= 1."""

    rows: Ints
    """(n,), the evaluated rows of the experience's configurations."""
    z: Floats
    """(n,), all objectives in one, in the unit of the method's output transform."""

    @property
    def best(self) -> int:
        """The row of the configuration with the lowest loss, the first of equals."""
        return int(self.rows[np.argmin(self.z)])

    def subsample(self, size: int, rng: np.random.Generator) -> "PastTask":
        """Draw at most `size` of the evaluations at random."""
        if len(self.rows) <= size:
            return self
        drawn = np.sort(rng.choice(len(self.rows), size, replace=False))
        return PastTask(self.rows[drawn], self.z[drawn])


def past_tasks(experience: Experience, output: Callable[[Floats], Floats]) -> list[PastTask]:
    """Return the tasks that have a success. `output` transforms the losses of each task."""
    return [PastTask(rows, scalarise(losses, output)) for rows, losses in successes(experience)]


def successes(experience: Experience) -> list[tuple[Ints, Floats]]:
    """Return the evaluated configurations (rows) and losses (n, L) of each task with a success.

    A configuration counts at its highest fidelity only.
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
            f"the {len(experience.tasks)} tasks has one: give other experience",
            rule="no-success",
            field="experience",
            value=len(experience.tasks),
        )
    return tasks


def fair_shares(sizes: Sequence[int], limits: ReadLimits = USUAL_LIMITS) -> list[Ints]:
    """Choose the evaluations to read from tasks of these sizes, in random order."""
    share = max(limits.most // len(sizes), limits.least)
    rng = np.random.default_rng(0)
    return [rng.permutation(size)[:share] for size in sizes]


def draw_by_name(names: Sequence[str], most: int, seed: int) -> Ints:
    """Draw at most `most` of these names at random, and return their positions in ascending order.

    A number is made from each name and the seed, and the names with the lowest numbers are drawn.
    Therefore one more task changes the draw by one task at most.
    """
    if len(names) <= most:
        return np.arange(len(names))
    numbers = [hashlib.blake2b(f"{seed} {name}".encode(), digest_size=8).digest() for name in names]
    order = sorted(range(len(names)), key=numbers.__getitem__)
    return np.sort(np.array(order[:most], dtype=np.int64))


def split_tasks(tasks: list[Task], rng: np.random.Generator) -> tuple[list[Task], list[Task]]:
    """Return tasks to learn from, and tasks that decide when to stop. A single task does both."""
    n_held_out = max(round(HELD_OUT * len(tasks)), 1)
    order = rng.permutation(len(tasks)).tolist()
    held_out = [tasks[place] for place in order[:n_held_out]]
    return [tasks[place] for place in order[n_held_out:]] or held_out, held_out


def require_experience(experience: Experience | None) -> Experience:
    """Return the experience, or refuse None."""
    if experience is None:
        raise MethodError(
            "a method that transfers learns from past tasks, but got no experience: give one",
            rule="needs-experience",
            field="experience",
        )
    return experience


def check_space(learnt_on: Space, target: Target) -> None:
    """Refuse a target whose space is not the one that a prior was learnt on."""
    if target.space != learnt_on:
        raise MethodError(
            "a prior holds for the space it was learnt on, but it was learnt on "
            f"{_describe_space(learnt_on)} and the target has {_describe_space(target.space)}: "
            "learn from experience in the target's space",
            rule="prior-of-another-space",
            field="target",
            value=target.space.fingerprint,
        )


def _describe_space(space: Space) -> str:
    return f"{space!r} with fingerprint {space.fingerprint[:8]}"


@dataclass(frozen=True, slots=True)
class CachedOnPool(Generic[Values]):
    """A function of configurations that remembers its values on the target's pool.

    Every trial needs the values on the pool, and they never change.
    """

    function: Callable[[Encoded], Values]
    pool: Encoded | None
    _known: list[Values] = field(default_factory=list)

    def __call__(self, x: Encoded) -> Values:
        """Return the values at x. They are remembered if x is the pool itself, not a copy."""
        if x is not self.pool:
            return self.function(x)
        if not self._known:
            self._known.append(self.function(x))
        return self._known[0]


@dataclass(frozen=True)
class Catalogue:
    """The configurations that a prior knows. Others are replaced by the nearest of them."""

    configs: Encoded

    def rows(self, x: Encoded) -> Ints:
        """Return (len(x),), each configuration's row, or that of the nearest in the unit cube."""
        found = np.array([self._row_of.get(key, -1) for key in x.keys().tolist()], dtype=np.int64)
        unknown = np.flatnonzero(found < 0)
        for first in range(0, len(unknown), CHUNK):
            some = unknown[first : first + CHUNK]
            # A search tree is slower in many dimensions.
            found[some] = squared_distances(x.x[some], self.configs.x).argmin(axis=1)
        return found

    @cached_property
    def _row_of(self) -> dict[bytes, int]:
        return {key: row for row, key in enumerate(self.configs.keys().tolist())}


def trial_shares(target: Target) -> Shares:
    """Return how the target's trials become scores: smoothed, or by rank with meta-features.

    `fit` has meta-features, and does worse with smoothed scores (decision 016).
    """
    return midrank_shares if target.meta_features else smooth_shares
