"""Playing one method on one task: learning from the other tasks, then trials from the pool."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Protocol, runtime_checkable

import numpy as np
import pyarrow as pa

from foretune.arrays import Floats
from foretune.bench.metrics import best_so_far
from foretune.bench.pools import TaskPool, pool_of
from foretune.bench.results import Settings, value_columns
from foretune.contracts import Prior, Target
from foretune.experience import Experience, Status
from foretune.progress import SILENT, Progress
from foretune.search import Method, Optimizer, Told, method


@runtime_checkable
class LearnsMany(Protocol):
    """A learner that is faster when it learns with several seeds at once."""

    def learn_many(
        self, experience: Experience, seeds: Sequence[int], *, progress: Progress
    ) -> list[Prior]:
        """The priors that `learn` would give for each seed."""


@dataclass(frozen=True, slots=True)
class Group:
    """Runs of one method that learn from the same tasks."""

    method: str
    train: tuple[str, ...] | None
    """The tasks to learn from, none of which is replayed; None for methods that do not learn."""
    runs: tuple[tuple[str, int], ...]
    """(task, seed) pairs."""


@dataclass(frozen=True, slots=True)
class Run:
    """What one method with one seed did on one task."""

    task: str
    method: str
    seed: int
    losses: Floats
    """(trials, objectives), minimised; NaN where a trial failed."""
    suggest_seconds: Floats
    """(trials,)"""
    learn_seconds: float

    def rows(self, settings: Settings) -> pa.Table:
        """One row a trial, with the columns of a results file."""
        n = len(self.losses)
        first = self.losses[:, 0]
        columns = {
            "suite": [settings.suite] * n,
            "task": [self.task] * n,
            "method": [self.method] * n,
            "seed": np.full(n, self.seed, dtype=np.int64),
            "trial": np.arange(1, n + 1),
            "value": first,
            "best": best_so_far(first),
            "suggest_seconds": self.suggest_seconds,
            "learn_seconds": np.full(n, self.learn_seconds),
        }
        if len(settings.objectives) > 1:
            columns.update(zip(value_columns(settings.objectives), self.losses.T, strict=True))
        return pa.table(columns)


@dataclass(frozen=True, slots=True)
class _Learnt:
    prior: Prior
    seconds: float


def play(experience: Experience, group: Group, settings: Settings) -> Iterator[Run]:
    """The runs of the group, one after the other."""
    chosen = method(group.method)
    seeds = sorted({seed for _, seed in group.runs})
    past = None if group.train is None else experience.only(group.train)
    learnt = dict(zip(seeds, _learn(chosen, past, seeds), strict=True))
    for task in dict.fromkeys(task for task, _ in group.runs):
        pool = pool_of(experience, task)
        target = Target(
            space=experience.space,
            objectives=settings.objectives,
            pool=pool.configs,
            meta_features=experience.meta_features.get(task, {}),
        )
        for seed in (seed for other, seed in group.runs if other == task):
            prior, learn_seconds = learnt[seed].prior, learnt[seed].seconds
            losses, seconds = _trials(chosen, prior, target, pool, seed, settings.trials)
            yield Run(task, group.method, seed, losses, seconds, learn_seconds)


def _learn(chosen: Method, past: Experience | None, seeds: Sequence[int]) -> list[_Learnt]:
    """What the method learns with each seed, and how long it took for one."""
    learner = chosen.learner()
    if past is not None and isinstance(learner, LearnsMany):
        start = perf_counter()
        priors = learner.learn_many(past, seeds, progress=SILENT)
        share = (perf_counter() - start) / len(seeds)
        return [_Learnt(prior, share) for prior in priors]
    learnt = []
    for seed in seeds:
        start = perf_counter()
        prior = chosen.learn(past, seed=seed, progress=SILENT)
        learnt.append(_Learnt(prior, perf_counter() - start))
    return learnt


def _trials(
    chosen: Method, prior: Prior, target: Target, pool: TaskPool, seed: int, trials: int
) -> tuple[Floats, Floats]:
    """The losses (trials, objectives) and the seconds of each suggestion (trials,)."""
    trials = min(trials, len(pool.configs))
    losses, seconds = np.empty((trials, pool.losses.shape[1])), np.empty(trials)
    start = perf_counter()
    optimizer = Optimizer(target, chosen, prior, seed=seed)
    for trial in range(trials):
        suggestion = optimizer.ask()[0]
        seconds[trial] = perf_counter() - start
        losses[trial] = outcome = pool.losses[_member(suggestion.pool_index)]
        status = Status.DONE if np.isfinite(outcome).all() else Status.FAILED
        start = perf_counter()
        optimizer.tell([Told(tuple(outcome.tolist()), id=suggestion.id, status=status)])
    return losses, seconds


def _member(pool_index: int | None) -> int:
    if pool_index is None:
        raise RuntimeError("an optimiser with a pool suggested a configuration without its row")
    return pool_index
