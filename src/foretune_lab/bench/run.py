"""Playing one method on one task: learning from the other tasks, then trials from the pool."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter

import numpy as np
import pyarrow as pa

from foretune.errors import explain_missing_extras
from foretune.experience import Experience, Status, for_learning
from foretune.methods import Prior, Target
from foretune.numerics import Floats
from foretune.plugins import SILENT, quote_names
from foretune.search import Method, Optimizer, Told
from foretune_lab.bench.curve_replay import CurveRun
from foretune_lab.bench.curve_stage import CurveStage
from foretune_lab.bench.entrants import Entrant, find_entrant
from foretune_lab.bench.metrics import best_so_far
from foretune_lab.bench.plan import Group, RunPlan
from foretune_lab.bench.pools import TaskPool, pool_of
from foretune_lab.bench.results import ReplaySettings, value_columns
from foretune_lab.bench.starts import seed_on_task


@dataclass(frozen=True, slots=True)
class MethodRun:
    """The run of one method with one seed on one task."""

    task: str
    method: str
    seed: int
    losses: Floats
    """(trials, objectives), minimised; NaN if a trial failed."""
    suggest_seconds: Floats
    """(trials,)"""
    learn_seconds: float

    def rows(self, settings: ReplaySettings) -> pa.Table:
        """Return one row for each trial, with the columns of a results file."""
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


def play(
    experience: Experience, group: Group, settings: ReplaySettings
) -> Iterator[MethodRun | CurveRun]:
    """Yield the runs of the group, one after the other."""
    entrant = find_entrant(group.method, on_curves=settings.curves is not None)
    seeds = sorted({run.seed for run in group.runs})
    past = None if group.split is None else for_learning(experience, group.split)
    held_out = list(dict.fromkeys(run.task for run in group.runs))
    with _name_run_in_errors(f"'{group.method}' was learning, for {quote_names(held_out)}"):
        learnt = dict(zip(seeds, _learn(entrant.method, past, seeds), strict=True))
    for task in held_out:
        stage = _stage_of(experience, task, settings)
        for run in (run for run in group.runs if run.task == task):
            with _name_run_in_errors(f"'{group.method}' was on '{task}' with seed {run.seed}"):
                played = stage.play(entrant, learnt[run.seed].prior, run)
            if isinstance(played, MethodRun):
                played = replace(played, learn_seconds=learnt[run.seed].seconds)
            yield played


def _stage_of(
    experience: Experience, task: str, settings: ReplaySettings
) -> "_PoolStage | CurveStage":
    if settings.curves is not None:
        return CurveStage.of(experience, task, settings.curves)
    return _PoolStage(experience, pool_of(experience, task), settings)


@dataclass(frozen=True, slots=True)
class _PoolStage:
    """A task with the values of complete trials, on which runs are played."""

    experience: Experience
    pool: TaskPool
    settings: ReplaySettings

    def play(self, entrant: Entrant, prior: Prior, run: RunPlan) -> MethodRun:
        """Play one run; the seconds of learning are not known here."""
        target = Target(
            space=self.experience.space,
            objectives=self.settings.objectives,
            pool=self.pool.configs,
            meta_features=self.experience.meta_features.get(run.task, {}),
            budget=self.settings.trials,
        )
        start = None if run.start is None else self.experience.configs.take(list(run.start))
        seed = seed_on_task(run.seed, run.task)
        make = partial(Optimizer, target, entrant.method, prior, seed=seed, start=start)
        losses, seconds = _trials(make, self.pool, self.settings.trials)
        return MethodRun(run.task, entrant.name, run.seed, losses, seconds, math.nan)


@contextmanager
def _name_run_in_errors(where: str) -> Iterator[None]:
    """Add the name of the run to the traceback of an error, so that it can be played alone."""
    try:
        yield
    except Exception as fault:
        fault.add_note(f"In the replay, {where}.")
        raise


def _learn(chosen: Method, past: Experience | None, seeds: Sequence[int]) -> list[_Learnt]:
    """Return what the method learns with each seed, and the seconds for one seed."""
    chosen.check(past, seed=seeds[0])
    with explain_missing_extras(f"the method '{chosen.name}'"):
        start = perf_counter()
        priors = chosen.learner().learn_many(past, seeds, progress=SILENT)
        share = (perf_counter() - start) / len(seeds)
    return [_Learnt(prior, share) for prior in priors]


def _trials(make: Callable[[], Optimizer], pool: TaskPool, trials: int) -> tuple[Floats, Floats]:
    """Return the losses (trials, objectives) and the seconds of each suggestion (trials,).

    The seconds of making the optimiser are part of the first suggestion.
    """
    trials = min(trials, len(pool.configs))
    losses, seconds = np.empty((trials, pool.losses.shape[1])), np.empty(trials)
    start = perf_counter()
    optimizer = make()
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
