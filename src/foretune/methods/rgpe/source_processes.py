"""Gaussian processes of past tasks, which several methods use to predict the target.

Each process is fitted once, to a subsample of its task. What it says about a recorded pool is
remembered for as long as the target is tuned.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

import numpy as np

from foretune._base.arrays import Floats
from foretune._base.progress import Progress, track
from foretune.experience import Experience
from foretune.methods.contracts import Learner, Prediction, Prior, Surrogate, Target
from foretune.methods.past_data import (
    CachedOnPool,
    PastTask,
    check_space,
    past_tasks,
    require_experience,
)
from foretune.methods.rgpe.stacked import Stacked
from foretune.numerics.artifact import load_artifact, save_artifact
from foretune.numerics.gp import GP, fit_hyper
from foretune.numerics.hyper import GPHyper
from foretune.space import Encoded, Space

VERSION = 1


@dataclass(frozen=True, slots=True)
class SourceLimits:
    """The limits of past processes."""

    evaluations: int
    """The most evaluations of a task that its process is conditioned on."""
    fitted: int
    """The most of these that hyperparameters are fitted to. An iteration costs their cube."""
    tasks: int | None = None
    """The most tasks, drawn at random; None means all."""


@dataclass(frozen=True)
class Sources:
    """A Gaussian process for each past task, in the unit of its transformed losses."""

    space: Space
    processes: tuple[GP, ...]

    @cached_property
    def stack(self) -> Stacked:
        """All processes at once, for single configurations."""
        return Stacked(self.processes)

    def about(self, target: Target) -> "Voices":
        """Return the processes, read at configurations of one target."""
        check_space(self.space, target)
        return Voices(
            tuple(CachedOnPool(partial(_mean, p), target.pool) for p in self.processes),
            tuple(CachedOnPool(partial(_belief, p), target.pool) for p in self.processes),
            self.stack,
        )

    def save(self, path: Path, kind: str) -> None:
        """Write the observations and the hyperparameters of each process."""
        arrays = {}
        for number, process in enumerate(self.processes):
            arrays[f"x{number}"], arrays[f"y{number}"] = process.x, process.y
            arrays[f"hyper{number}"] = process.hyper.to_vector()
        meta = {"space": self.space.to_json(), "tasks": len(self.processes)}
        save_artifact(path, kind=kind, version=VERSION, meta=meta, arrays=arrays)

    @classmethod
    def load(cls, path: Path, kind: str) -> "Sources":
        """Condition the saved processes again."""
        meta, arrays = load_artifact(path, kind=kind, newest_version=VERSION)
        processes = tuple(
            GP.condition(
                arrays[f"x{number}"],
                arrays[f"y{number}"],
                GPHyper.from_vector(arrays[f"hyper{number}"]),
            )
            for number in range(meta["tasks"])
        )
        return cls(Space.from_json(meta["space"]), processes)


@dataclass(frozen=True, slots=True)
class Voices:
    """The M past processes, read at configurations of one target."""

    means: tuple[Callable[[Encoded], Floats], ...]
    """For each process: configurations -> means (len(x),)."""
    beliefs: tuple[Callable[[Encoded], Prediction], ...]
    """For each process: configurations -> means and standard deviations."""
    stacked: Stacked


def _mean(process: GP, x: Encoded) -> Floats:
    return process.mean(x.x)


def _belief(process: GP, x: Encoded) -> Prediction:
    return Prediction(*process.predict(x.x))


@dataclass(frozen=True, slots=True)
class SourcesPrior(Prior):
    """Past processes, and how a method uses them."""

    kind: str
    sources: Sources
    listen: Callable[[Voices, Target], Surrogate]

    def surrogate(self, target: Target) -> Surrogate:
        """Return the target's own process beside those of past tasks."""
        return self.listen(self.sources.about(target), target)

    def save(self, path: Path) -> None:
        """Write the past processes."""
        self.sources.save(path, self.kind)


@dataclass(frozen=True, slots=True)
class SourcesLearner(Learner):
    """Fits the processes of past tasks. `output` brings the losses of each task to one unit."""

    name: str
    output: Callable[[Floats], Floats]
    limits: SourceLimits
    listen: Callable[[Voices, Target], Surrogate]

    def learn(
        self, experience: Experience | None, *, seed: int, progress: Progress
    ) -> SourcesPrior:
        """Fit one process for each task, to a subsample of its evaluations."""
        [sources] = fit_sources(experience, self.output, self.limits, [seed], progress)
        return SourcesPrior(self._kind, sources, self.listen)

    def learn_many(
        self, experience: Experience | None, seeds: Sequence[int], *, progress: Progress
    ) -> list[Prior]:
        """Do the same for each seed. What seeds have in common is fitted once."""
        each = fit_sources(experience, self.output, self.limits, seeds, progress)
        return [SourcesPrior(self._kind, sources, self.listen) for sources in each]

    def load(self, path: Path) -> SourcesPrior:
        """Read saved processes."""
        return SourcesPrior(self._kind, Sources.load(path, self._kind), self.listen)

    @property
    def _kind(self) -> str:
        return f"foretune-{self.name}"


def fit_sources(
    experience: Experience | None,
    output: Callable[[Floats], Floats],
    limits: SourceLimits,
    seeds: Sequence[int],
    progress: Progress,
) -> list[Sources]:
    """The processes with each of the seeds, which decide what is drawn where there is too much.

    `output` brings the losses of each task to one unit. A process that several seeds have in
    common is fitted once.
    """
    experience = require_experience(experience)
    tasks = past_tasks(experience, output)
    known: dict[tuple[int, bytes, bytes], GP] = {}

    def process(number: int, rng: np.random.Generator) -> GP:
        told = tasks[number].subsample(limits.evaluations, rng)
        fitted = told.subsample(limits.fitted, rng)
        key = (number, told.rows.tobytes(), fitted.rows.tobytes())
        if key not in known:
            known[key] = _process(told, fitted, experience.configs)
        return known[key]

    rngs = [np.random.default_rng(seed) for seed in seeds]
    chosen = [_some(len(tasks), limits.tasks, rng) for rng in rngs]
    pairs = [(seed, number) for seed, numbers in enumerate(chosen) for number in numbers]
    made: list[list[GP]] = [[] for _ in seeds]
    for seed, number in track(pairs, progress, "fitting past tasks", len(pairs)):
        made[seed].append(process(number, rngs[seed]))
    return [Sources(experience.space, tuple(processes)) for processes in made]


def _some(n: int, limit: int | None, rng: np.random.Generator) -> list[int]:
    """Draw at most `limit` numbers below n, in ascending order."""
    if limit is None or n <= limit:
        return list(range(n))
    return sorted(rng.choice(n, limit, replace=False).tolist())


def _process(told: PastTask, fitted: PastTask, configs: Encoded) -> GP:
    hyper = fit_hyper(configs.take(fitted.rows).x, fitted.z, groups=configs.space.column_groups)
    return GP.condition(configs.take(told.rows).x, told.z, hyper)
