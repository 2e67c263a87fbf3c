"""The configurations that every run begins with, for any method."""

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
    """The start of the runs of all methods.

    `none`: each method has its own start. `recorded`: the initial designs that came with the tasks;
    seed s has design number s, and after the last design the first one follows again. `portfolio`:
    the list that the zero-shot builder makes of the tasks learnt from. `random`: random members of
    the pool, different ones for every task and seed.
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
    """Return the start of each run on the split's test tasks; empty if methods have their own.

    If the task has no record of a portfolio's configuration, the nearest recorded one that is not
    in the start yet replaces it.
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
    """Return a seed that differs from task to task, and is always the same for one task.

    Tasks often share their configurations. With one seed for all of them, random draws would be
    lucky on all tasks at once, but statistics count each task as a separate sample.
    """
    name = int.from_bytes(hashlib.sha256(task.encode()).digest()[:4], "little")
    return derive_seed(seed, name)


def has_recorded_start(experience: Experience, task: str) -> bool:
    """Return whether an initial design of the task was evaluated on it at least in part."""
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
    """Return the configurations that were evaluated on the task, as rows of the experience's."""
    return np.unique(experience.task(task).config_index).astype(np.int64)
