"""The surrogates of copula transfer.

`cts` draws from the prior and never looks at the target's losses (Algorithm 1). `gcp-prior` fits a
Gaussian process to the residuals that the trials leave (Algorithm 2). Several objectives become
one by a weighted sum of their scores (section 5.2).
"""

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeAlias

import numpy as np

from foretune._base.arrays import Floats
from foretune.errors import MethodError
from foretune.methods.contracts import Observations, Posterior, Prediction, Prior, Surrogate, Target
from foretune.methods.copula.prior import ObjectiveNetworks, ScoreBelief
from foretune.methods.past_data import CachedOnPool, check_space, trial_shares
from foretune.numerics.anchored import AnchoredFit, informative_subset
from foretune.numerics.gp import GP
from foretune.numerics.scores import DOUBT, Shares, scores_from_past, smooth_shares
from foretune.numerics.transforms import AS_THEY_ARE, copula_scores, standardise
from foretune.space import Encoded, Space

Beliefs: TypeAlias = CachedOnPool[ScoreBelief]


@dataclass(frozen=True, slots=True)
class CopulaSettings:
    """The settings of a variant. The defaults are the paper's."""

    adapts: bool = True
    """Whether the variant uses the target's own trials. Thompson sampling does not."""
    target: str = "copula"
    """The target's scores: `copula`, `standardise`, or `informed` by the prior."""
    doubt: float = DOUBT
    """The chance that past tasks say nothing about the target, for `informed` scores."""
    shares: Shares = smooth_shares
    """Turns the target's trials into `informed` scores."""
    prior_weight: float = 0.01
    """The weight of the prior on the process's hyperparameters. Almost none is the paper's type-II
    maximum likelihood."""
    grouped: bool = False
    """Whether the columns of one categorical share a lengthscale."""
    random_weights: bool = False
    """Whether the weights of several objectives are drawn at each trial, or equal."""

    def weights(self, objectives: int, seed: int) -> Floats:
        """Return (objectives,), adding up to 1."""
        if objectives == 1 or not self.random_weights:
            return np.full(objectives, 1.0 / objectives)
        return np.random.default_rng(seed).dirichlet(np.ones(objectives))


@dataclass(frozen=True, slots=True)
class CopulaPrior(Prior):
    """The learnt networks, and the settings of the variant."""

    kind: str
    space: Space
    networks: ObjectiveNetworks
    settings: CopulaSettings

    def surrogate(self, target: Target) -> Surrogate:
        """Return the surrogate for one task in the space that the prior was learnt on."""
        check_space(self.space, target)
        self._check_objectives(target)
        believe = CachedOnPool(lambda x: self.networks.believe(x.x), target.pool)
        objectives = len(self.networks.layers)
        settings = replace(self.settings, shares=trial_shares(target))
        fit = AnchoredFit(
            output=partial(_residuals, settings=settings, objectives=objectives),
            order=partial(_scores, settings=settings, objectives=objectives),
            units=AS_THEY_ARE,
            groups=self.space.column_groups if settings.grouped else None,
            prior_weight=settings.prior_weight,
        )
        return CopulaSurrogate(believe, settings, fit)

    def _check_objectives(self, target: Target) -> None:
        learnt = len(self.networks.layers)
        if len(target.objectives) != learnt:
            raise MethodError(
                f"a prior holds for as many objectives as it was learnt from, which are {learnt}, "
                f"but the target has {len(target.objectives)} ({', '.join(target.objectives)}): "
                "learn from `experience.with_metrics([...])` with the target's objectives",
                rule="prior-of-other-objectives",
                field="objectives",
                value=target.objectives,
            )

    def save(self, path: Path) -> None:
        """Write one safetensors file."""
        self.networks.save(path, kind=self.kind, space=self.space)


@dataclass(frozen=True, slots=True)
class PriorPosterior(Posterior):
    """The prior without the target's trials. Scores are drawn independently."""

    believe: Beliefs
    weights: Floats
    """(objectives,), adding up to 1."""
    best: float = -np.inf

    def objective_weights(self) -> Floats:
        """The weights of the sum that is predicted."""
        return self.weights

    def predict(self, x: Encoded) -> Prediction:
        """Return mu and sigma."""
        return Prediction(*self.believe(x).weighted_sum(self.weights))

    def sample(self, x: Encoded, n: int, *, seed: int) -> Floats:
        """Draw independently from N(mu, sigma²), as in Algorithm 1."""
        mu, sigma = self.believe(x).weighted_sum(self.weights)
        return mu + sigma * np.random.default_rng(seed).standard_normal((n, len(x)))


@dataclass(frozen=True, slots=True)
class ResidualPosterior(Posterior):
    """g = mu + sigma r, with a Gaussian process r (section 4.2)."""

    believe: Beliefs
    weights: Floats
    """(objectives,), adding up to 1."""
    model: GP
    best: float

    def objective_weights(self) -> Floats:
        """The weights of the sum that is predicted."""
        return self.weights

    def predict(self, x: Encoded) -> Prediction:
        """Return mean and standard deviation of the score."""
        mu, sigma = self.believe(x).weighted_sum(self.weights)
        mean, std = self.model.predict(x.x)
        return Prediction(mu + sigma * mean, sigma * std)

    def sample(self, x: Encoded, n: int, *, seed: int) -> Floats:
        """Draw the scores jointly."""
        mu, sigma = self.believe(x).weighted_sum(self.weights)
        return mu + sigma * self.model.sample(x.x, n, np.random.default_rng(seed))


@dataclass(frozen=True, slots=True)
class CopulaSurrogate(Surrogate):
    """Gaussian (Copula) Process on the residuals of the prior, or the prior alone."""

    believe: Beliefs
    settings: CopulaSettings
    fit: AnchoredFit

    def condition(self, seen: Observations, *, seed: int) -> Posterior:
        """Return the process after all successful trials, or the prior if there are none."""
        good = seen.successes()
        weights = self.settings.weights(seen.losses.shape[1], seed)
        if len(good) == 0 or not self.settings.adapts:
            return PriorPosterior(self.believe, weights)
        x, real = good.configs.x, ~good.believed
        mu, sigma = self.believe(good.configs).weighted_sum(weights)
        told = np.column_stack([good.losses, np.tile(weights, (len(good), 1)), mu, sigma])
        hyper = self.fit.hyper(x[real], told[real])
        residuals = self.fit.output(told)
        scores = mu + sigma * residuals
        keep = informative_subset(x, scores, self.fit.limits.largest_gp)
        model = GP.condition(x[keep], residuals[keep], hyper, units=AS_THEY_ARE)
        best = float(scores.min())
        return ResidualPosterior(self.believe, weights, model, best)


def _residuals(told: Floats, settings: CopulaSettings, objectives: int) -> Floats:
    """Return (n,), the scores' distances to the prior mean, in the prior's standard deviations."""
    return (_scores(told, settings, objectives) - told[:, -2]) / told[:, -1]


def _scores(told: Floats, settings: CopulaSettings, objectives: int) -> Floats:
    """Return (n,), the scores of the trials.

    `told` (n, 2 L + 2) holds L losses, their L weights (equal in all rows), mu and sigma.
    """
    losses, weights = told[:, :objectives], told[0, objectives:-2]
    mu, sigma = told[:, -2], told[:, -1]
    transform = standardise if settings.target == "standardise" else copula_scores
    scores = np.column_stack([transform(column) for column in losses.T]) @ weights
    if settings.target == "informed":
        # One objective is ranked by its losses, because Winsorised scores make the best equal.
        ranked = losses[:, 0] if objectives == 1 else scores
        scores = scores_from_past(ranked, mu, sigma, doubt=settings.doubt, shares=settings.shares)
    return scores
