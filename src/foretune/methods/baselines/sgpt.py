"""SGPT: past tasks as Gaussian processes of their own, which vote where they rank as the target.

Wistuba et al. (2018), as the copula paper's appendix B has it. Each past task has a process of its
own, fitted once. The more a process ranks the target's trials as the target does, the more it
weighs in the transfer acquisition function: the weighted mean of the target's expected improvement
and of the improvements that the past processes predict.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from foretune.arrays import Floats
from foretune.contracts import Observations, Posterior, Prediction, Surrogate, Target
from foretune.experience import Experience
from foretune.learning import CachedOnPool, PastTask, check_space, given, past_tasks
from foretune.methods.baselines.gaussian_process import GaussianProcessSurrogate
from foretune.numerics.acquisition import expected_improvement
from foretune.numerics.artifact import load_artifact, save_artifact
from foretune.numerics.gp import GP, fit_hyper
from foretune.numerics.hyper import GPHyper
from foretune.numerics.objectives import scalarise
from foretune.numerics.transforms import copula_scores, standardise
from foretune.progress import Progress, tracked
from foretune.space import Encoded, Space

VERSION = 1
EVALUATIONS = 1000
"""A past task's process is conditioned on at most so many evaluations."""
FITTED = 300
"""Its hyperparameters are fitted to at most so many of these: an iteration costs their cube."""
BANDWIDTH = 0.01
"""rho: a past task counts only while it misranks less than this share of the pairs of trials."""


def rank_distances(z: Floats, predicted: Floats) -> Floats:
    """The share of pairs among n trials that each row of `predicted` (M, n) misranks: (M,).

    `z` (n,) are the losses. A pair is misranked where exactly one of the two says that its first
    trial is worse than its second.
    """
    n = len(z)
    if n < 2:
        return np.zeros(len(predicted))
    worse = z[:, None] > z[None, :]
    misranked = [np.count_nonzero((row[:, None] > row[None, :]) != worse) for row in predicted]
    return np.array(misranked) / (n * (n - 1))


def epanechnikov(distances: Floats) -> Floats:
    """Weights that fall from 3/4 at distance 0 to nothing at `BANDWIDTH` and beyond."""
    return 0.75 * np.maximum(1.0 - np.square(distances / BANDWIDTH), 0.0)


@dataclass(frozen=True, slots=True)
class TransferPosterior:
    """The target's own posterior, and the past processes as far as they agree with it."""

    own: Posterior
    past_means: Callable[[Encoded], Floats]
    """Configurations -> the past processes' means (M, len(x))."""
    weights: Floats
    """(M,), how much each past process counts."""
    past_best: Floats
    """(M,), the lowest mean of each at the target's trials."""

    @property
    def best(self) -> float:
        """The target's lowest loss, transformed."""
        return self.own.best

    def predict(self, x: Encoded) -> Prediction:
        """The target's own belief."""
        return self.own.predict(x)

    def sample(self, x: Encoded, n: int, *, seed: int) -> Floats:
        """Draws from the target's own belief."""
        return self.own.sample(x, n, seed=seed)

    def utility(self, x: Encoded) -> Floats:
        """The transfer acquisition function: a weighted mean of improvements (len(x),)."""
        weight = float(epanechnikov(np.zeros(1))[0])
        own = self.own.predict(x)
        total = weight * expected_improvement(own.mean, own.std, self.own.best)
        if self.weights.any():
            predicted = np.maximum(self.past_best[:, None] - self.past_means(x), 0.0)
            total = total + self.weights @ predicted
        return total / (weight + float(self.weights.sum()))


@dataclass(frozen=True, slots=True)
class TransferSurrogate:
    """The target's process beside those of the past tasks."""

    own: GaussianProcessSurrogate
    output: Callable[[Floats], Floats]
    past_means: Callable[[Encoded], Floats]
    """Configurations -> the past processes' means (M, len(x))."""

    def condition(self, seen: Observations, *, seed: int) -> Posterior:
        """The belief after all successful trials; weights follow from those that were observed."""
        good = seen.successes()
        real = ~good.believed
        predicted = self.past_means(good.configs)
        z = scalarise(good.losses[real], self.output)
        weights = epanechnikov(rank_distances(z, predicted[:, real]))
        own = self.own.condition(seen, seed=seed)
        return TransferPosterior(own, self.past_means, weights, predicted.min(axis=1))


@dataclass(frozen=True, slots=True)
class SgptPrior:
    """A Gaussian process for each past task."""

    name: str
    output: Callable[[Floats], Floats]
    space: Space
    past: tuple[GP, ...]

    def surrogate(self, target: Target) -> Surrogate:
        """The target's own process beside those of the past."""
        check_space(self.space, target)
        own = GaussianProcessSurrogate.on(self.output, target)
        return TransferSurrogate(own, self.output, CachedOnPool(self.means, target.pool))

    def means(self, x: Encoded) -> Floats:
        """(M, len(x)), what each past process expects."""
        return np.stack([process.mean(x.x) for process in self.past])

    def save(self, path: Path) -> None:
        """Write what each process learnt from, and its hyperparameters."""
        arrays = {}
        for number, process in enumerate(self.past):
            arrays[f"x{number}"], arrays[f"y{number}"] = process.x, process.y
            arrays[f"hyper{number}"] = process.hyper.to_vector()
        meta = {"space": self.space.to_json(), "tasks": len(self.past)}
        save_artifact(path, kind=_kind(self.name), version=VERSION, meta=meta, arrays=arrays)


@dataclass(frozen=True, slots=True)
class SgptLearner:
    """Fits the past tasks' processes; `output` brings the losses of each task to one unit."""

    name: str
    output: Callable[[Floats], Floats]

    def learn(self, experience: Experience | None, *, seed: int, progress: Progress) -> SgptPrior:
        """One process a task, on a subsample of its evaluations."""
        experience = given(experience)
        tasks = past_tasks(experience, self.output)
        rng = np.random.default_rng(seed)
        steps = tracked(tasks, progress, "fitting past tasks", len(tasks))
        past = tuple(_process(task, experience.configs, rng) for task in steps)
        return SgptPrior(self.name, self.output, experience.space, past)

    def load(self, path: Path) -> SgptPrior:
        """Condition the saved processes again."""
        meta, arrays = load_artifact(path, kind=_kind(self.name), newest_version=VERSION)
        past = tuple(
            GP.condition(
                arrays[f"x{number}"],
                arrays[f"y{number}"],
                GPHyper.from_vector(arrays[f"hyper{number}"]),
            )
            for number in range(meta["tasks"])
        )
        return SgptPrior(self.name, self.output, Space.from_json(meta["space"]), past)


def _process(task: PastTask, configs: Encoded, rng: np.random.Generator) -> GP:
    known = task.subsample(EVALUATIONS, rng)
    fitted = known.subsample(FITTED, rng)
    hyper = fit_hyper(configs.take(fitted.rows).x, fitted.z, groups=configs.space.column_groups)
    return GP.condition(configs.take(known.rows).x, known.z, hyper)


def _kind(name: str) -> str:
    return f"foretune-{name}"


def sgpt() -> SgptLearner:
    """SGPT on standardised losses."""
    return SgptLearner("sgpt", standardise)


def sgpt_copula() -> SgptLearner:
    """SGPT on Gaussian scores of the losses."""
    return SgptLearner("sgpt-copula", copula_scores)
