"""`factors`: a new task is the mean of past tasks, plus a mixture of what they differ by.

The copula makes the losses of all tasks comparable. On configurations that all tasks know, or that
a forest a task predicts, their scores are a table; its mean and its principal components are
functions of the configuration, which a forest carries over to the whole space. The target is a
Gaussian process about the mean, of a mixture of the components and of what is new
(`numerics/factor_gp.py`): which tasks it is like, a few trials tell for the whole space at once.
"""

from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path

import numpy as np

from foretune._base.arrays import Floats, Ints
from foretune._base.progress import Progress
from foretune.experience import Experience
from foretune.methods.contracts import (
    Learner,
    Observations,
    Posterior,
    Prediction,
    Prior,
    Surrogate,
    Target,
)
from foretune.methods.past_data import (
    CachedOnPool,
    PastTask,
    check_space,
    past_tasks,
    require_experience,
    trial_shares,
)
from foretune.numerics.anchored import LARGEST_GP, informative_subset
from foretune.numerics.artifact import load_artifact, save_artifact
from foretune.numerics.factor_gp import VARIANCES_MODE, FactorGP, FactorHyper, fit_factors
from foretune.numerics.forests import Forest
from foretune.numerics.objectives import scalarise
from foretune.numerics.remembered import BoundedCache
from foretune.numerics.scores import Shares, midrank_scores, scores_from_past
from foretune.space import Encoded, Space

KIND = "foretune-factors"
VERSION = 1
MOST_CONFIGS = 10_000
"""So many configurations stand for all, at most half of them for having been good."""
BEST_OF_EACH = 20
"""So many of the best configurations of each past task are among them."""
MOST_TASKS = 100
"""So many tasks stand for more of them."""
MOST_FACTORS = 10
"""So many components are kept."""
LARGEST_FOREST = 2000
"""A task's forest learns from at most so many evaluations."""
SMOOTH_LEAF = 3
"""Evaluations in a leaf of a task's forest: what is noise in one of them does not carry over."""
LARGEST_FIT = 200
"""Hyperparameters are fitted to at most so many trials."""
FITS_KEPT = 64
LEAST_ODDS = 1e-6
"""Where others know more (decision 014)."""


@dataclass(frozen=True)
class FactorsPrior(Prior):
    """The mean and the components of past tasks, at configurations that stand for all."""

    configs: Encoded
    table: Floats
    """(configs, 1 + K): the mean, and each component, as large as tasks differ by it."""
    reads_all: bool = True
    """Whether there were no more past tasks than it could read."""

    @property
    def space(self) -> Space:
        """The space that it holds for."""
        return self.configs.space

    @cached_property
    def forest(self) -> Forest:
        """The same at any configuration; grown when it is needed, and always alike."""
        return Forest.grow(self.configs.x, self.table, leaf=1, seed=0)

    def odds(self, target: Target) -> float:
        """How far it is to be believed before any trial, beside 1 for a network.

        Others read descriptions, and all of very many past tasks.
        """
        return LEAST_ODDS if target.meta_features or not self.reads_all else 1.0

    def opening(self, target: Target) -> Encoded:
        """What is best on average."""
        check_space(self.space, target)
        return self.configs.take([int(self.table[:, 0].argmin())])

    def surrogate(self, target: Target) -> "FactorsSurrogate":
        """The process for one target."""
        check_space(self.space, target)
        read = CachedOnPool(lambda configs: self.forest.predict(configs.x), target.pool)
        return FactorsSurrogate(read, target.space.column_groups, trial_shares(target))

    def save(self, path: Path) -> None:
        """Write configurations and their table."""
        arrays = {**self.configs.pack(), "table": self.table.astype(np.float32)}
        meta = {"space": self.space.to_json(), "reads_all": self.reads_all}
        save_artifact(path, kind=KIND, version=VERSION, meta=meta, arrays=arrays)


@dataclass(frozen=True, slots=True)
class FactorsSurrogate(Surrogate):
    """Fits the process to the scores of the trials."""

    read: CachedOnPool[Floats]
    """The mean and the components of configurations, (n, 1 + K)."""
    groups: Ints
    shares: Shares
    _fitted: BoundedCache[FactorHyper] = field(default_factory=lambda: BoundedCache(FITS_KEPT))

    def condition(self, seen: Observations, *, seed: int) -> "FactorsPosterior":
        """The belief after all successful trials; what is believed of pending ones counts."""
        del seed
        good = seen.successes()
        x, read, real = good.configs.x, self.read(good.configs), ~good.believed
        mean, factors = read[:, 0], read[:, 1:]
        scores = self._scores(good.losses, mean, factors)
        hyper = self._hyper(x[real], good.losses[real], read[real])
        keep = informative_subset(x, scores, LARGEST_GP)
        model = FactorGP.condition(factors[keep], x[keep], (scores - mean)[keep], hyper)
        expected = mean + model.predict(factors, x)[0]
        return FactorsPosterior(self.read, model, float(expected.min(initial=np.inf)))

    def _scores(self, losses: Floats, mean: Floats, factors: Floats) -> Floats:
        sigma = np.sqrt(np.square(factors).sum(axis=1) + np.exp(VARIANCES_MODE[1]))
        return scalarise(
            losses, partial(scores_from_past, mu=mean, sigma=sigma, shares=self.shares)
        )

    def _hyper(self, x: Floats, losses: Floats, read: Floats) -> FactorHyper:
        """Of what was told alone, so that pending trials do not change it."""
        if len(x) < 3:
            return FactorHyper.default(self.groups)
        return self._fitted.get(x.tobytes() + losses.tobytes(), lambda: self._fit(x, losses, read))

    def _fit(self, x: Floats, losses: Floats, read: Floats) -> FactorHyper:
        mean, factors = read[:, 0], read[:, 1:]
        scores = self._scores(losses, mean, factors)
        keep = informative_subset(x, scores, LARGEST_FIT)
        return fit_factors(factors[keep], x[keep], (scores - mean)[keep], self.groups)


@dataclass(frozen=True, slots=True)
class FactorsPosterior(Posterior):
    """The mean of past tasks, and the conditioned process about it."""

    read: CachedOnPool[Floats]
    model: FactorGP
    best: float
    """The least score that is expected of a trial, pending ones included."""

    def predict(self, x: Encoded) -> Prediction:
        """Mean and standard deviation of the score."""
        read = self.read(x)
        mean, std = self.model.predict(read[:, 1:], x.x)
        return Prediction(read[:, 0] + mean, std)

    def sample(self, x: Encoded, n: int, *, seed: int) -> Floats:
        """Joint draws of the score."""
        read = self.read(x)
        drawn = self.model.sample(read[:, 1:], x.x, n, np.random.default_rng(seed))
        return read[:, 0] + drawn


@dataclass(frozen=True, slots=True)
class FactorsLearner(Learner):
    """Finds what past tasks have in common and what they differ by."""

    def learn(
        self, experience: Experience | None, *, seed: int, progress: Progress
    ) -> FactorsPrior:
        """The mean and the principal components of the table of scores."""
        known, rng = require_experience(experience), np.random.default_rng(seed)
        every = past_tasks(known, midrank_scores)
        drawn = np.sort(rng.permutation(len(every))[:MOST_TASKS])
        tasks = [every[place] for place in drawn.tolist()]
        rows = _standing_for_all(tasks, rng)
        progress.start("reading past tasks", len(tasks))
        try:
            table = np.empty((len(tasks), len(rows)))
            for place, task in enumerate(tasks):
                table[place] = _scores_at(rows, task, known.configs, rng)
                progress.step(1)
        finally:
            progress.stop()
        found = mean_and_components(table, MOST_FACTORS)
        # As it is saved, so that a loaded prior believes the same.
        kept = found.astype(np.float32).astype(np.float64)
        return FactorsPrior(known.configs.take(rows), kept, len(tasks) == len(every))

    def load(self, path: Path) -> FactorsPrior:
        """Read what was saved."""
        meta, arrays = load_artifact(path, kind=KIND, newest_version=VERSION)
        configs = Space.from_json(meta["space"]).unpack(arrays)
        return FactorsPrior(configs, arrays["table"].astype(np.float64), meta["reads_all"])


def mean_and_components(table: Floats, most: int) -> Floats:
    """(configs, 1 + K) of the scores (tasks, configs): their mean, and at most so many principal
    components, each of the length by which tasks differ along it.
    """
    mean = table.mean(axis=0)
    _, lengths, directions = np.linalg.svd(table - mean, full_matrices=False)
    kept = min(most, len(table) - 1)
    deviations = lengths[:kept] / np.sqrt(max(len(table) - 1, 1))
    return np.column_stack([mean, directions[:kept].T * deviations])


def _standing_for_all(tasks: list[PastTask], rng: np.random.Generator) -> Ints:
    """Configurations, as rows of the experience's: good ones of each task, and others."""
    best = [task.rows[np.argsort(task.z, kind="stable")[:BEST_OF_EACH]] for task in tasks]
    good = rng.permutation(np.unique(np.concatenate(best)))[: MOST_CONFIGS // 2]
    others = np.setdiff1d(np.concatenate([task.rows for task in tasks]), good)
    drawn = rng.permutation(others)[: MOST_CONFIGS - len(good)]
    return np.sort(np.concatenate([good, drawn]))


def _scores_at(rows: Ints, task: PastTask, configs: Encoded, rng: np.random.Generator) -> Floats:
    """(rows,), the scores of a task there: recorded, or predicted where some are not."""
    order = np.argsort(task.rows, kind="stable")
    places = np.minimum(np.searchsorted(task.rows[order], rows), len(order) - 1)
    recorded = task.rows[order][places] == rows
    if recorded.all():
        return task.z[order][places]
    some = task.subsample(LARGEST_FOREST, rng)
    seed = int(rng.integers(2**31))
    forest = Forest.grow(configs.take(some.rows).x, some.z[:, None], leaf=SMOOTH_LEAF, seed=seed)
    return forest.predict(configs.take(rows).x)[:, 0]


def factors() -> FactorsLearner:
    """The learner of the method `factors`."""
    return FactorsLearner()
