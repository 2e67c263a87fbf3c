"""Oboe-style search: a low-rank table of losses, completed for the target by linear regression.

Yang et al. (2019) factorise the past losses into latent factors of tasks and of configurations.
They try the configurations that say most about a new task's factors (a D-optimal design), and fill
in the task's other losses by least squares. Here the regression is Bayesian, about the mean of the
past tasks: it gives the uncertainty that expected improvement needs, and trials go on one by one.
As in the authors' code, the rank leaves out directions below a hundredth of the strongest one, and
the design chooses by what a trial tells for each second, where past tasks recorded seconds. The
authors predict seconds from the size of a table; here they are the geometric mean over past tasks.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import numpy as np

from foretune.experience import Experience
from foretune.methods import (
    CachedOnPool,
    Catalogue,
    Learner,
    Observations,
    Posterior,
    Prediction,
    Prior,
    Surrogate,
    Target,
    check_space,
    past_tasks,
    require_experience,
)
from foretune.numerics import Floats, Ints, load_artifact, save_artifact, scalarise, standardise
from foretune.plugins import Progress
from foretune.space import Encoded, Space
from foretune_lab.baselines.factorisation import (
    LowRank,
    catalogue_of,
    factorise,
    loss_matrix,
    renumber_rows,
)
from foretune_lab.baselines.regression import Regression

VERSION = 2
KIND = "foretune-oboe"
INFORMATIVE = 5
"""The number of trials that open the search."""
LEAST_NOISE = 1e-4
LEAST_DIRECTION = 0.01
"""The least singular value of a direction that counts, as a share of the largest."""
Rows: TypeAlias = Callable[[Encoded], Ints]


@dataclass(frozen=True, slots=True)
class OboePosterior(Posterior):
    """The mean of the past tasks, plus the part that the target's factors explain."""

    table: LowRank
    rows: Rows
    head: Regression
    best: float

    def predict(self, x: Encoded) -> Prediction:
        """Return mean and standard deviation of the loss in the unit of the past tasks."""
        rows = self.rows(x)
        phi = self.table.factors[rows]
        variance = np.einsum("ij,ij->i", phi @ self.head.covariance, phi)
        mean = self.table.mean[rows] + phi @ self.head.mean
        return Prediction(mean, np.sqrt(np.maximum(variance, 0.0)))

    def sample(self, x: Encoded, n: int, *, seed: int) -> Floats:
        """Draw tasks whose factors come from their posterior."""
        rng = np.random.default_rng(seed)
        rows = self.rows(x)
        tasks = rng.multivariate_normal(self.head.mean, self.head.covariance, n, method="eigh")
        drawn: Floats = self.table.mean[rows] + tasks @ self.table.factors[rows].T
        return drawn


@dataclass(frozen=True, slots=True)
class OboeSurrogate(Surrogate):
    """Regresses the target's losses on the configurations' factors."""

    table: LowRank
    rows: Rows

    def condition(self, seen: Observations, *, seed: int) -> Posterior:
        """Return the posterior after all successful trials."""
        del seed
        good = seen.successes()
        rows = self.rows(good.configs)
        mean, phi = self.table.mean[rows], self.table.factors[rows]
        spread = np.sqrt(mean.var() + np.square(phi).sum(axis=1).mean() + self.table.noise)
        # In the unit of the past tasks these trials would have this mean and this spread.
        z = mean.mean() + spread * scalarise(good.losses, standardise)
        noise = max(self.table.noise, LEAST_NOISE)
        head = Regression.of(phi, z - mean, 0.0, -float(np.log(noise)))
        return OboePosterior(self.table, self.rows, head, float(z.min()))


@dataclass(frozen=True, slots=True)
class OboePrior(Prior):
    """The factorised losses of the past tasks."""

    catalogue: Catalogue
    table: LowRank
    seconds: Floats
    """(configurations,), what a trial usually takes; ones if past tasks recorded no seconds."""

    def opening(self, target: Target) -> Encoded:
        """Return the candidates that say most about the target's factors."""
        check_space(self.catalogue.configs.space, target)
        choice = self.catalogue.configs if target.pool is None else target.pool
        rows = self.catalogue.rows(choice)
        phi, seconds = self.table.factors[rows], self.seconds[rows]
        return choice.take(informative(phi, self.table.noise, INFORMATIVE, seconds))

    def surrogate(self, target: Target) -> Surrogate:
        """Return the regression for one task."""
        check_space(self.catalogue.configs.space, target)
        return OboeSurrogate(self.table, CachedOnPool(self.catalogue.rows, target.pool))

    def save(self, path: Path) -> None:
        """Write the configurations and their factors."""
        arrays = {
            **self.catalogue.configs.pack(),
            "mean": self.table.mean,
            "factors": self.table.factors,
            "seconds": self.seconds,
        }
        meta = {"space": self.catalogue.configs.space.to_json(), "noise": self.table.noise}
        save_artifact(path, kind=KIND, version=VERSION, meta=meta, arrays=arrays)


def informative(phi: Floats, noise: float, k: int, seconds: Floats | float = 1.0) -> Ints:
    """Choose greedily the k rows of phi (n, rank) that reduce the doubt about the factors most.

    The row with the largest predicted variance reduces the determinant of the posterior covariance
    most. Each chosen row counts as observed with this noise. A row that takes twice the seconds
    (n,) must have twice the variance. If there are fewer rows, all are chosen.
    """
    covariance = np.eye(phi.shape[1])
    free = np.ones(len(phi), dtype=bool)
    chosen: list[int] = []
    for _ in range(min(k, len(phi))):
        variances = np.einsum("ij,ij->i", phi @ covariance, phi)
        pick = int(np.argmax(np.where(free, variances / seconds, -1.0)))
        gain = covariance @ phi[pick]
        covariance -= np.outer(gain, gain) / (variances[pick] + max(noise, LEAST_NOISE))
        free[pick] = False
        chosen.append(pick)
    return np.array(chosen, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class OboeLearner(Learner):
    """Factorises the past tasks' standardised losses."""

    def learn(self, experience: Experience | None, *, seed: int, progress: Progress) -> OboePrior:
        """Factorise the losses; nothing here is random."""
        del seed
        experience = require_experience(experience)
        progress.start("factorising past losses", None)
        tasks = past_tasks(experience, standardise)
        catalogue = catalogue_of(tasks, experience.configs)
        tasks = renumber_rows(tasks, experience.configs, catalogue)
        table = without_weak_directions(factorise(loss_matrix(tasks, len(catalogue.configs))))
        progress.stop()
        return OboePrior(catalogue, table, usual_seconds(experience, catalogue))

    def load(self, path: Path) -> OboePrior:
        """Read saved factors."""
        meta, arrays = load_artifact(path, kind=KIND, newest_version=VERSION)
        catalogue = Catalogue(Space.from_json(meta["space"]).unpack(arrays))
        table = LowRank(arrays["mean"], arrays["factors"], meta["noise"])
        # The first version kept no seconds.
        seconds = arrays.get("seconds", np.ones(len(catalogue.configs)))
        return OboePrior(catalogue, table, seconds)


def without_weak_directions(table: LowRank) -> LowRank:
    """Return the table without directions that are weak beside the strongest one."""
    sizes = np.linalg.norm(table.factors, axis=0)
    kept = sizes >= LEAST_DIRECTION * sizes.max(initial=0.0)
    return replace(table, factors=np.where(kept, table.factors, 0.0))


def usual_seconds(experience: Experience, catalogue: Catalogue) -> Floats:
    """Return the geometric mean (configurations,) of the seconds of each over past tasks.

    A configuration without seconds takes the median of the others.
    """
    known = np.isfinite(experience.seconds) & (experience.seconds > 0)
    size = len(experience.configs)
    rows = experience.config_index[known]
    counts = np.bincount(rows, minlength=size)
    logs = np.bincount(rows, weights=np.log(experience.seconds[known]), minlength=size)
    means = np.divide(logs, counts, out=np.full(size, np.nan), where=counts > 0)
    if not known.any():
        return np.ones(len(catalogue.configs))
    means = np.where(np.isnan(means), np.nanmedian(means), means)
    usual = np.full(len(catalogue.configs), np.exp(np.median(means)))
    places = catalogue.rows(experience.configs)
    same = experience.configs.keys() == catalogue.configs.keys()[places]
    usual[places[same]] = np.exp(means[same])
    return usual


def oboe() -> OboeLearner:
    """Make the learner of Oboe-style search."""
    return OboeLearner()
