"""Small recorded tables and results, made by hand."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from foretune.experience import Direction, Experience, Metric
from foretune.experience.curves import build_curves
from foretune.methods.contracts import Learner, Prior, Surrogate, Target
from foretune.methods.wrapped import WrappedPrior
from foretune.search import method
from foretune.space import Space
from foretune_lab.bench.pools import PoolFacts
from foretune_lab.bench.results import ReplaySettings, Results

SPACE = Space.of({"rate": (0.0, 1.0), "kind": ["a", "b"]})
CURVE_SPACE = Space.of({"x": (0.0, 1.0)})
LAST = 9
"""The last step of curves."""


def table(tasks: int = 3, configs: int = 12, direction: Direction = Direction.MIN) -> Experience:
    """Every configuration on every task, with two metrics and a named split."""
    rng = np.random.default_rng(7)
    names = [f"task{number}" for number in range(tasks)]
    metrics = [Metric("error", direction), Metric("seconds")]
    matrices = {metric.name: rng.random((tasks, configs)) for metric in metrics}
    return Experience.from_matrix(
        SPACE,
        SPACE.sample(configs, seed=1),
        names,
        metrics,
        matrices,
        splits={"paper": {"train": names[:1], "validation": names[1:2], "test": names[2:]}},
    )


def table_with_curves(ends: list[list[float]], pace: list[float] | None = None) -> Experience:
    """Tasks with these losses at the end of nine steps; all are 0.9 before.

    pace: the seconds of a step, one a configuration.
    """
    tasks, n = len(ends), len(ends[0])
    steps = np.arange(1.0, LAST + 1)
    values = [[*[0.9] * (LAST - 1), end] for of in ends for end in of]
    seconds = [steps * each for each in (pace or [1.0] * n)] * tasks
    x = np.linspace(0.0, 1.0, n).tolist()
    return Experience.build(
        CURVE_SPACE,
        [Metric("error")],
        [f"task{number}" for number in range(tasks)],
        np.repeat(np.arange(tasks), n),
        CURVE_SPACE.from_columns({"x": x}, n),
        np.tile(np.arange(n), tasks),
        np.concatenate(ends),
        curves=build_curves(
            [LAST] * n * tasks,
            np.tile(steps, n * tasks),
            np.concatenate(values),
            np.concatenate(seconds),
        ),
    )


@dataclass
class Spy(Learner):
    """A learner that remembers what it was given, and a prior that remembers its targets."""

    given: list[tuple[Experience, int]] = field(default_factory=list)
    targets: list[Target] = field(default_factory=list)
    learning_fault: Exception | None = None
    """What `learn` raises."""
    suggesting_fault: Exception | None = None
    """What the prior raises when a run begins."""

    def learn(self, experience: Experience, *, seed: int, progress: Any) -> Prior:
        if self.learning_fault is not None:
            raise self.learning_fault
        self.given.append((experience, seed))
        random = method("random").learn(None, seed=seed, progress=progress)
        return _SpyPrior(random, self.targets, self.suggesting_fault)

    def load(self, path: Path) -> Prior:
        raise NotImplementedError


@dataclass
class SpyOfMany(Spy):
    """The same, with all seeds at once."""

    batches: list[tuple[int, ...]] = field(default_factory=list)

    def learn_many(self, experience: Experience, seeds: Any, *, progress: Any) -> list[Prior]:
        self.batches.append(tuple(seeds))
        return [self.learn(experience, seed=seed, progress=progress) for seed in seeds]


@dataclass(frozen=True)
class _SpyPrior(WrappedPrior):
    inner: Prior
    targets: list[Target]
    fault: Exception | None

    def surrogate(self, target: Target) -> Surrogate:
        if self.fault is not None:
            raise self.fault
        self.targets.append(target)
        return self.inner.surrogate(target)


def facts(low: float = 0.0, high: float = 1.0, trials: int = 3) -> PoolFacts:
    """A pool of the losses `low` and `high` only, of which random search finds half at first."""
    random = np.full(trials, low)
    random[0] = (low + high) / 2
    return PoolFacts(2, low, high, random, np.array([[low]]), np.array([high]))


def results(
    losses: Mapping[tuple[str, str, int], list[float]],
    pools: Mapping[str, PoolFacts] | None = None,
    suite: str = "toy",
    direction: str = "min",
) -> Results:
    """Results of runs given as {(task, method, seed): losses of the trials}."""
    longest = max(map(len, losses.values()))
    settings = ReplaySettings(
        suite, longest, "leave-one-out", ("error",), (direction,), "fingerprint"
    )
    rows = [
        pd.DataFrame(
            {
                "suite": suite,
                "task": task,
                "method": method,
                "seed": seed,
                "trial": np.arange(1, len(values) + 1),
                "value": values,
                "best": np.fmin.accumulate(values),
                "suggest_seconds": 0.5,
                "learn_seconds": 2.0,
            }
        )
        for (task, method, seed), values in losses.items()
    ]
    known = pools or {task: facts(trials=longest) for task, _, _ in losses}
    return Results(settings, known, pd.concat(rows, ignore_index=True))
