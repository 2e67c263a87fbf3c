"""Learning the prior from past tasks: which configurations end well, and how curves run."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scipy.optimize import minimize
from scipy.stats import rankdata

from foretune._base.arrays import Floats, Ints
from foretune._base.progress import Progress, report_every_second
from foretune.experience import Experience
from foretune.methods.contracts import Learner
from foretune.methods.freeze_thaw.curve_prior import CurvePrior
from foretune.methods.freeze_thaw.generic import generic_statistics, plain_prior
from foretune.methods.freeze_thaw.knots import GENERIC_FIRST, place_knots
from foretune.methods.freeze_thaw.past_curves import (
    PastCurves,
    experience_knots,
    read_past_curves,
)
from foretune.methods.freeze_thaw.prior import Expert, FreezeThawPrior, load_prior
from foretune.methods.freeze_thaw.residuals import (
    estimate_shares,
    pooled_covariance,
    split_covariance,
)
from foretune.methods.freeze_thaw.units import UnitPrior
from foretune.numerics.gp import negative_log_posterior
from foretune.numerics.hyper import hyper_bounds, prior_mode
from foretune.numerics.kernels import matern52, squared_distances
from foretune.space import Encoded

CENTRES = 400
MOST_FACTORS = 8
"""The most functions by which tasks may differ from their mean."""
LEAST_RIDGE = 1e-3
FACTOR_NOISE = 0.05
"""How far a factor may explain the residuals of a task that it was not learnt from."""
FIT_TASKS, FIT_CONFIGS, FIT_ITERATIONS = 8, 128, 40
"""What the lengthscales are learnt from."""
GOOD = 3
"""The best configurations of each past task, which the search of a whole space begins with."""


@dataclass(frozen=True, slots=True)
class FreezeThawSettings:
    """The parts that an ablation leaves out."""

    configs: bool = True
    """Whether the prior knows which configurations are good."""
    curves: bool = True
    """Whether it knows how the curves of past tasks run."""


@dataclass(frozen=True, slots=True)
class FreezeThawLearner(Learner):
    """Learns a `FreezeThawPrior`."""

    settings: FreezeThawSettings = FreezeThawSettings()

    def learn(
        self, experience: Experience | None, *, seed: int, progress: Progress
    ) -> FreezeThawPrior:
        """Learn from past tasks; without experience the prior is generic."""
        if experience is None:
            return FreezeThawPrior()
        knots = experience_knots(experience) if self.settings.curves else None
        if knots is None:
            knots = place_knots(GENERIC_FIRST)
        with report_every_second(progress, "learning from past curves"):
            experts = tuple(
                self._experts(experience, metric, knots, seed)
                for metric in range(len(experience.metrics))
            )
        known = any(len(each) for each in experts)
        return FreezeThawPrior(
            experience.space,
            experts if known else (),
            _good_configs(experience),
            _common_last_step(experience),
        )

    def load(self, path: Path) -> FreezeThawPrior:
        """Read a saved prior."""
        return load_prior(path)

    def _experts(
        self, experience: Experience, metric: int, knots: Floats, seed: int
    ) -> dict[Expert, CurvePrior]:
        """Return what past tasks taught about one objective; empty if they have no loss."""
        tasks = read_past_curves(
            _without_curves(experience) if not self.settings.curves else experience,
            metric,
            knots,
            generic_statistics(knots),
            seed=seed,
        )
        if not tasks:
            return {}
        rng = np.random.default_rng(seed)
        return learn_curve_priors(
            tasks, experience.space.column_groups, knots, rng, configs=self.settings.configs
        )


def learn_curve_priors(
    tasks: Sequence[PastCurves],
    groups: Ints,
    knots: Floats,
    rng: np.random.Generator,
    *,
    configs: bool = True,
) -> dict[Expert, CurvePrior]:
    """Return the prior of past configurations and curves, and the one of past curves only."""
    units = UnitPrior.of_tasks([task.unit for task in tasks])
    log_lengthscales, ridge = _fit_lengthscales(tasks, groups, rng)
    lengthscales = np.exp(log_lengthscales)
    level = np.mean([task.scores.mean(axis=0) for task in tasks], axis=0)
    scaled = [task.x / lengthscales for task in tasks]
    whole = [task.scores - level for task in tasks]
    covariance = pooled_covariance(whole)
    shares = estimate_shares(whole, scaled, split_covariance(covariance)[0], rng)
    plain = plain_prior(knots, level, covariance, lengthscales, shares)
    found = {Expert.CURVES: _with_units(plain, units)}
    if configs:
        found[Expert.PAST] = _learn_configs(tasks, scaled, lengthscales, ridge, plain, units, rng)
    return found


def _learn_configs(
    tasks: Sequence[PastCurves],
    scaled: list[Floats],
    lengthscales: Floats,
    ridge: float,
    plain: CurvePrior,
    units: UnitPrior,
    rng: np.random.Generator,
) -> CurvePrior:
    """Return the prior whose mean and factors are functions of the configuration."""
    known = np.unique(np.concatenate(scaled), axis=0)
    centres = known[np.sort(rng.permutation(len(known))[:CENTRES])]
    functions = _TaskFunctions.fit(tasks, scaled, centres, ridge)
    everyone = np.arange(len(tasks))
    mean, factors = functions.summary(everyone)
    residuals = [functions.residuals(place, everyone) for place in everyone.tolist()]
    basis, noise = split_covariance(pooled_covariance(residuals))
    return CurvePrior(
        knots=plain.knots,
        lengthscales=lengthscales,
        centres=centres,
        level=mean[0],
        weights=mean[1:],
        factor_levels=factors[:, 0],
        factor_weights=factors[:, 1:],
        basis=basis,
        noise=noise,
        shares=estimate_shares(residuals, scaled, basis, rng),
        units=units,
    )


@dataclass(frozen=True, slots=True)
class _TaskFunctions:
    """The curve of each past task as a function of the configuration."""

    scores: list[Floats]
    """(n, K) of each task."""
    features: list[Floats]
    """(n, 1 + M) of each task; the first column is 1."""
    weights: Floats
    """(T, 1 + M, K)"""

    @classmethod
    def fit(
        cls, tasks: Sequence[PastCurves], scaled: list[Floats], centres: Floats, ridge: float
    ) -> "_TaskFunctions":
        """Regress the scores of each task on the similarity to the centres (Nyström's method)."""
        among = matern52(squared_distances(centres, centres))
        among[np.diag_indices(len(among))] += 1e-6
        features, weights = [], []
        for task, x in zip(tasks, scaled, strict=True):
            similar = matern52(squared_distances(x, centres))
            level = task.scores.mean(axis=0)
            normal = similar.T @ similar + ridge * among
            slopes = np.linalg.solve(normal, similar.T @ (task.scores - level))
            features.append(np.column_stack([np.ones(len(x)), similar]))
            weights.append(np.vstack([level, slopes]))
        return cls([task.scores for task in tasks], features, np.stack(weights))

    def summary(self, places: Ints) -> tuple[Floats, Floats]:
        """Return the mean (1 + M, K) of some tasks, and factors (Q, 1 + M, K) of how they differ.

        The factors are principal components of the functions' values, not of their weights.
        """
        weights = self.weights[places]
        mean = weights.mean(axis=0)
        count = min(MOST_FACTORS, len(places) - 1)
        if count < 1:
            return mean, np.empty((0, *mean.shape))
        different = weights - mean
        probe = self.features[int(places[0])]
        values = (probe @ different).reshape(len(places), -1)
        # The left singular vectors say which mixtures of tasks the factors are.
        mixtures = np.linalg.svd(values, full_matrices=False)[0]
        scale = 1.0 / np.sqrt(len(places) - 1)
        factors: Floats = scale * np.tensordot(mixtures[:, :count].T, different, axes=1)
        return mean, factors

    def residuals(self, place: int, everyone: Ints) -> Floats:
        """Return (n, K), what the other tasks leave unexplained of one task."""
        others = np.delete(everyone, place)
        scores, features = self.scores[place], self.features[place]
        if not len(others):
            centred: Floats = scores - scores.mean(axis=0)
            return centred
        mean, factors = self.summary(others)
        left: Floats = scores - features @ mean
        if not len(factors):
            return left
        columns = np.stack([(features @ factor).ravel() for factor in factors], axis=1)
        normal = columns.T @ columns + FACTOR_NOISE * len(scores) * np.eye(len(factors))
        explained: Floats = columns @ np.linalg.solve(normal, columns.T @ left.ravel())
        remaining: Floats = left - explained.reshape(left.shape)
        return remaining


def _fit_lengthscales(
    tasks: Sequence[PastCurves], groups: Ints, rng: np.random.Generator
) -> tuple[Floats, float]:
    """Return log lengthscales (W,), and the noise of final scores as a share of their signal."""
    data = []
    for place in rng.permutation(len(tasks))[:FIT_TASKS].tolist():
        task = tasks[place]
        rows = rng.permutation(len(task.x))[:FIT_CONFIGS]
        z = task.scores[rows, -1]
        data.append((task.x[rows] - 0.5, (z - z.mean()) / (float(z.std()) or 1.0)))

    def surprise(vector: Floats) -> tuple[float, Floats]:
        parts = [negative_log_posterior(vector, x, z, groups, 1.0 / len(data)) for x, z in data]
        return sum(value for value, _ in parts), np.sum([slope for _, slope in parts], axis=0)

    found = minimize(
        surprise,
        prior_mode(groups),
        jac=True,
        method="L-BFGS-B",
        bounds=hyper_bounds(int(groups.max()) + 1),
        options={"maxiter": FIT_ITERATIONS, "ftol": 1e-6},
    )
    ridge = float(np.exp(found.x[-2] - found.x[-3]))
    return np.asarray(found.x[:-3][groups]), max(ridge, LEAST_RIDGE)


def _with_units(prior: CurvePrior, units: UnitPrior) -> CurvePrior:
    return replace(prior, units=units)


def _without_curves(experience: Experience) -> Experience:
    return replace(experience, curves=None)


def _good_configs(experience: Experience) -> Encoded:
    """Return the best configurations of each past task, by their mean rank over objectives."""
    rows: list[int] = []
    for name in experience.tasks:
        records = experience.task(name)
        good = np.flatnonzero(np.isfinite(records.losses).all(axis=1))
        if len(good):
            ranks = rankdata(records.losses[good], axis=0).mean(axis=1)
            best = good[np.argsort(ranks, kind="stable")[:GOOD]]
            rows += records.config_index[best].tolist()
    return experience.configs.take(sorted(set(rows)))


def _common_last_step(experience: Experience) -> float | None:
    """Return the last step of all past tasks, if they agree."""
    steps = {experience.largest_step(name) for name in experience.tasks}
    return steps.pop() if len(steps) == 1 else None
