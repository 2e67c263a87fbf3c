"""The configurations that every run begins with, whatever the method."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from foretune.errors import UsageError
from foretune.experience import Experience, Split, for_learning
from foretune.methods import Recipe, portfolio_start
from foretune.numerics import Ints
from foretune.plugins import SILENT, Progress, track
from foretune.search import derive_seed
from foretune.space import Encoded

NONE = "none"
PORTFOLIO_SIZE = 5
_PATTERN = re.compile(r"(?P<kind>none|recorded|portfolio|random)(?::(?P<size>[1-9]\d*))?")

Beginnings: TypeAlias = Mapping[tuple[str, int], tuple[int, ...]]
"""{(task, seed): rows of the experience's configurations, in the order they are tried}."""


@dataclass(frozen=True, slots=True)
class Start:
    """How the runs of all methods begin.

    `none`: each in its own way. `recorded`: with the initial designs that came with the tasks,
    seed s with design number s, from the first one again after the last. `portfolio`: with the
    list that the zero-shot builder makes of the tasks learnt from. `random`: with random members
    of the pool, other ones for every task and seed.
    """

    kind: str
    size: int | None = None

    @classmethod
    def parse(cls, text: str) -> "Start":
        """Read `none`, `recorded`, `portfolio`, `portfolio:8` or `random:5`."""
        match = _PATTERN.fullmatch(text)
        fits = match is not None and (match["size"] is not None) in _SIZES[match["kind"]]
        if match is None or not fits:
            raise UsageError(
                "a start must be none, recorded, portfolio, portfolio:K or random:K with K >= 1, "
                f"but got '{text}': choose one of them",
                rule="unknown-start",
                field="start",
                value=text,
            )
        default = PORTFOLIO_SIZE if match["kind"] == "portfolio" else None
        return cls(match["kind"], int(match["size"]) if match["size"] else default)

    def __str__(self) -> str:
        return self.kind if self.size is None else f"{self.kind}:{self.size}"


_SIZES = {
    "none": (False,),
    "recorded": (False,),
    "portfolio": (False, True),
    "random": (True,),
}
"""Whether a size may be absent (False), given (True), or either."""


def beginnings(
    start: Start,
    experience: Experience,
    split: Split,
    seeds: Sequence[int],
    *,
    progress: Progress = SILENT,
) -> Beginnings:
    """What each run on the split's test tasks begins with; empty where methods begin by themselves.

    A portfolio's configuration that the task has no record of is replaced by the nearest recorded
    one that the start does not hold yet.
    """
    if start.kind == NONE:
        return {}
    runs = [(task, seed) for task in split.test for seed in seeds]
    if start.kind == "recorded":
        return {run: _recorded_start(experience, *run) for run in runs}
    size = start.size or 0
    if start.kind == "random":
        return {run: _random(experience, *run, size) for run in runs}
    if not split.train + split.validation:
        raise UsageError(
            f"a start of the kind '{start}' is made from other tasks than the replayed ones, but "
            f"the split '{split.name}' leaves none: choose another start",
            rule="no-past-tasks",
            field="start",
            value=str(start),
        )
    past = for_learning(experience, split)
    [wanted] = track(
        (portfolio_start(past, Recipe(k=size)) for _ in range(1)), progress, "making a portfolio", 1
    )
    chosen = {task: _nearest_start(experience, task, wanted) for task in split.test}
    return {(task, seed): chosen[task] for task, seed in runs}


def seed_on_task(seed: int, task: str) -> int:
    """A seed that is another one on every task, and the same one whenever it is asked for.

    Tasks often share their configurations. With one seed for all of them, random draws would be
    lucky on all tasks at once, and statistics count each task as a sample of its own.
    """
    name = int.from_bytes(hashlib.sha256(task.encode()).digest()[:4], "little")
    return derive_seed(seed, name)


def has_recorded_start(experience: Experience, task: str) -> bool:
    """Whether the task came with an initial design of which something was evaluated on it."""
    designs = experience.starts.get(task, {})
    members = _members(experience, task)
    return bool(designs) and all(np.isin(design, members).any() for design in designs.values())


def _recorded_start(experience: Experience, task: str, seed: int) -> tuple[int, ...]:
    designs = list(experience.starts[task].values())
    members = set(_members(experience, task).tolist())
    return tuple(row for row in designs[seed % len(designs)] if row in members)


def _random(experience: Experience, task: str, seed: int, size: int) -> tuple[int, ...]:
    rng = np.random.default_rng(seed_on_task(seed, task))
    members = _members(experience, task)
    return tuple(rng.choice(members, min(size, len(members)), replace=False).tolist())


def _nearest_start(experience: Experience, task: str, wanted: Encoded) -> tuple[int, ...]:
    members = _members(experience, task)
    x = experience.configs.take(members).x
    free = np.ones(len(members), dtype=bool)
    chosen = []
    for point in wanted.x[: len(members)]:
        distances = np.where(free, np.square(x - point).sum(axis=1), np.inf)
        nearest = int(np.argmin(distances))
        free[nearest] = False
        chosen.append(int(members[nearest]))
    return tuple(chosen)


def _members(experience: Experience, task: str) -> Ints:
    """The configurations that were evaluated on the task, as rows of the experience's."""
    return np.unique(experience.task(task).config_index).astype(np.int64)
