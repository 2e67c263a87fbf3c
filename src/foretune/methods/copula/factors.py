"""`factors`: a new task is the mean of past tasks, plus a mixture of their main differences.

The copula makes the losses of all tasks comparable. Their scores form a table of configurations
that all tasks know, or that a forest for each task predicts. The mean and the principal components
of the table are functions of the configuration, and a forest extends them to the whole space. The
target is a Gaussian process around the mean, with a mixture of the components and an own part
(`numerics/factor_gp.py`). A few trials tell for the whole space which tasks it is like.
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
from foretune.numerics.bounded_cache import BoundedCache
from foretune.numerics.factor_gp import VARIANCES_MODE, FactorGP, FactorHyper, fit_factors
from foretune.numerics.forests import Forest
from foretune.numerics.objectives import scalarise
from foretune.numerics.scores import Shares, midrank_scores, scores_from_past
from foretune.space import Encoded, Space

KIND = "foretune-factors"
VERSION = 1
MOST_CONFIGS = 10_000
"""The most configurations in the table. At most half of them are there because they were good."""
BEST_OF_EACH = 20
"""The number of best configurations of each past task in the table."""
MOST_TASKS = 100
"""The most tasks to read."""
MOST_FACTORS = 10
"""The most components to keep."""
LARGEST_FOREST = 2000
"""The most evaluations that a task's forest learns from."""
SMOOTH_LEAF = 3
"""The evaluations in a leaf of a task's forest. Several of them average out noise."""
LARGEST_FIT = 200
"""The most trials that hyperparameters are fitted to."""
FITS_KEPT = 64
LEAST_ODDS = 1e-6
"""The weight if others know more (decision 014)."""


@dataclass(frozen=True)
class FactorsPrior(Prior):
    """The mean and the components of past tasks, at configurations that represent all."""

    configs: Encoded
    table: Floats
    """(configs, 1 + K): the mean, and each component, scaled by how much tasks differ in it."""
    reads_all: bool = True
    """Whether it read all past tasks."""

    @property
    def space(self) -> Space:
        """The space of the past tasks."""
        return self.configs.space

    @cached_property
    def forest(self) -> Forest:
        """A forest that predicts the table at any configuration. It is always the same."""
        return Forest.grow(self.configs.x, self.table, leaf=1, seed=0)

    def odds(self, target: Target) -> float:
        """Return the weight before any trial; a network has the weight 1.

        Other experts read meta-features, and all of very many past tasks.
        """
        return LEAST_ODDS if target.meta_features or not self.reads_all else 1.0

    def opening(self, target: Target) -> Encoded:
        """Return the configuration that is best on average."""
        check_space(self.space, target)
        return self.configs.take([int(self.table[:, 0].argmin())])

    def surrogate(self, target: Target) -> "FactorsSurrogate":
        """Return the process for one target."""
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
        """Return the posterior after all successful trials and the believed pending ones."""
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
        """Fit to the told trials only, so that pending ones do not change the result."""
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
    """The mean of past tasks, and the conditioned process around it."""

    read: CachedOnPool[Floats]
    model: FactorGP
    best: float
    """The lowest expected score of a trial, pending ones included."""

    def predict(self, x: Encoded) -> Prediction:
        """Return mean and standard deviation of the score."""
        read = self.read(x)
        mean, std = self.model.predict(read[:, 1:], x.x)
        return Prediction(read[:, 0] + mean, std)

    def sample(self, x: Encoded, n: int, *, seed: int) -> Floats:
        """Draw the scores jointly."""
        read = self.read(x)
        drawn = self.model.sample(read[:, 1:], x.x, n, np.random.default_rng(seed))
        return read[:, 0] + drawn


@dataclass(frozen=True, slots=True)
class FactorsLearner(Learner):
    """Finds what past tasks have in common, and how they differ."""

    most_tasks: int = MOST_TASKS
    most_configs: int = MOST_CONFIGS

    def learn(
        self, experience: Experience | None, *, seed: int, progress: Progress
    ) -> FactorsPrior:
        """Find the mean and the principal components of the table of scores."""
        known, rng = require_experience(experience), np.random.default_rng(seed)
        every = past_tasks(known, midrank_scores)
        drawn = np.sort(rng.permutation(len(every))[: self.most_tasks])
        tasks = [every[place] for place in drawn.tolist()]
        rows = _standing_for_all(tasks, self.most_configs, rng)
        progress.start("reading past tasks", len(tasks))
        try:
            table = np.empty((len(tasks), len(rows)))
            for place, task in enumerate(tasks):
                table[place] = _scores_at(rows, task, known.configs, rng)
                progress.step(1)
        finally:
            progress.stop()
        found = mean_and_components(table, MOST_FACTORS)
        # Round to the precision of the file, so that a loaded prior predicts the same.
        kept = found.astype(np.float32).astype(np.float64)
        return FactorsPrior(known.configs.take(rows), kept, len(tasks) == len(every))

    def load(self, path: Path) -> FactorsPrior:
        """Read a saved prior."""
        meta, arrays = load_artifact(path, kind=KIND, newest_version=VERSION)
        configs = Space.from_json(meta["space"]).unpack(arrays)
        return FactorsPrior(configs, arrays["table"].astype(np.float64), meta["reads_all"])


def mean_and_components(table: Floats, most: int) -> Floats:
    """Return (configs, 1 + K): the mean of the scores (tasks, configs), and principal components.

    There are at most `most` components, each scaled by how much tasks differ along it.
    """
    mean = table.mean(axis=0)
    _, lengths, directions = np.linalg.svd(table - mean, full_matrices=False)
    kept = min(most, len(table) - 1)
    deviations = lengths[:kept] / np.sqrt(max(len(table) - 1, 1))
    return np.column_stack([mean, directions[:kept].T * deviations])


def _standing_for_all(tasks: list[PastTask], most: int, rng: np.random.Generator) -> Ints:
    """Draw at most `most` configurations: good ones of each task, and others."""
    best = [task.rows[np.argsort(task.z, kind="stable")[:BEST_OF_EACH]] for task in tasks]
    good = rng.permutation(np.unique(np.concatenate(best)))[: most // 2]
    others = np.setdiff1d(np.concatenate([task.rows for task in tasks]), good)
    drawn = rng.permutation(others)[: most - len(good)]
    return np.sort(np.concatenate([good, drawn]))


def _scores_at(rows: Ints, task: PastTask, configs: Encoded, rng: np.random.Generator) -> Floats:
    """Return (rows,), the scores of a task: recorded, or predicted if one is not recorded."""
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
    """Return the learner of the method `factors`."""
    return FactorsLearner()
