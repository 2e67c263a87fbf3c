"""Tasks of an experience as plain problem files; needs Foretune."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from benchmarks.peers.objective import Floats, Parameter, Past, Problem
from ConfigSpace import conditions as given

from foretune.experience import Experience, Split
from foretune.space import Space
from foretune.space.parameters import Kind
from foretune_lab.bench.pools import TaskPool, pool_of

PAST_ROWS, PAST_TASKS = 5_000, 100
"""The limits on past rows and past tasks that peers get. Both are drawn at random among
the tasks that have a success: recorded failures are left out."""


def problem_of(experience: Experience, file: Path, split: Split, task: str) -> Problem:
    """Make the problem of one held-out task, with the records of the other tasks of the split."""
    learnt_from = split.train + split.validation
    columns = [place for place, p in enumerate(experience.space.parameters) if p.size > 1]
    values, losses = _recorded(pool_of(experience, task), columns)
    seed = int(hashlib.sha256(task.encode()).hexdigest()[:8], 16)
    telling = [name for name in learnt_from if experience.task(name).is_success.any()]
    chosen = np.random.default_rng(seed).permutation(telling)[:PAST_TASKS]
    return Problem(
        task=task,
        parameters=tuple(list_parameters(experience.space, columns)),
        values=values,
        losses=losses,
        past={
            str(name): Past(*_recorded(pool_of(experience, str(name)), columns)).some(
                PAST_ROWS, seed
            )
            for name in chosen
        },
        experience=str(file.resolve()),
        learnt_from=learnt_from,
    )


def _recorded(pool: TaskPool, columns: list[int]) -> tuple[Floats, Floats]:
    done = np.isfinite(pool.losses[:, 0])
    return pool.configs.values[done][:, columns], pool.losses[done, 0]


def list_parameters(space: Space, columns: list[int]) -> Iterator[Parameter]:
    parents = _parents(space, columns)
    for column in columns:
        own = space.parameters[column]
        yield Parameter(
            name=own.name,
            kind=str(own.kind) if own.kind is not Kind.CONSTANT else "categorical",
            low=own.low,
            high=own.high,
            log=own.log,
            parents=tuple(parents.get(own.name, [])),
        )


def _parents(space: Space, columns: list[int]) -> dict[str, list[tuple[int, tuple[float, ...]]]]:
    """Return for each child the indices of its parents, and their values that allow it."""
    parameters = {p.name: (place, p) for place, p in enumerate(space.parameters)}
    found: dict[str, list[tuple[int, tuple[float, ...]]]] = {}
    for condition in space.config_space.conditions:
        for part in getattr(condition, "components", [condition]):
            if isinstance(condition, given.OrConjunction) or not isinstance(
                part, given.EqualsCondition | given.InCondition
            ):
                raise NotImplementedError(f"peers are given conditions on values, but got {part}")
            place, parent = parameters[part.parent.name]
            allowed = part.values if isinstance(part, given.InCondition) else [part.value]
            if place in columns:
                numbers = tuple(parent.number_of(value) for value in allowed)
                found.setdefault(part.child.name, []).append((columns.index(place), numbers))
    return found
