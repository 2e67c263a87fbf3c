"""The surrogates of copula transfer.

`cts` draws from the prior and never looks at the target's trials (Algorithm 1). `gcp-prior` fits a
Gaussian process to the residuals that the trials leave (Algorithm 2).
"""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias

import numpy as np

from foretune.arrays import Floats
from foretune.contracts import Observations, Posterior, Prediction, Surrogate, Target
from foretune.learning import CachedOnPool, check_space
from foretune.methods.copula.prior import Belief, Networks
from foretune.methods.copula.scores import informed_scores
from foretune.numerics.anchored import LARGEST_GP, AnchoredFit, informative_subset
from foretune.numerics.gp import GP
from foretune.numerics.objectives import scalarise
from foretune.numerics.transforms import Standardise, copula_scores, standardise
from foretune.space import Encoded, Space

Beliefs: TypeAlias = CachedOnPool[Belief]
RESIDUALS = Standardise(0.0, 1.0)
"""Residuals have a unit already: what the prior does not explain, in its standard deviations."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What a variant does; the defaults are the paper's."""

    adapts: bool = True
    """Whether the target's own trials are looked at: not by Thompson sampling."""
    target: str = "copula"
    """The target's scores: `copula`, `standardise`, or `informed` by the prior."""
    directions: bool = False
    """Whether the target may move along the directions in which past tasks differ."""
    outcome: bool = False
    """Whether an improvement is that of a trial's outcome, noise included, or of its mean."""


@dataclass(frozen=True, slots=True)
class CopulaPrior:
    """The learnt networks, and what the variant does with them."""

    kind: str
    space: Space
    networks: Networks
    settings: Settings

    def surrogate(self, target: Target) -> Surrogate:
        """The surrogate for one task in the space that the prior was learnt on."""
        check_space(self.space, target)
        believe = CachedOnPool(lambda x: self.networks.believe(x.x), target.pool)
        if not self.settings.adapts:
            return PriorSurrogate(believe)
        return ResidualSurrogate(believe, self.settings, self._fit(len(target.objectives)))

    def _fit(self, objectives: int) -> AnchoredFit:
        """Fits of the residual process, which know how to turn losses into residuals."""
        residuals = partial(_residuals, how=self.settings.target, objectives=objectives)
        by_task = self.networks.by_task
        columns = 1 + by_task[-1][1].size if by_task else 0
        groups = self.space.column_groups
        return AnchoredFit(output=residuals, units=RESIDUALS, linear=columns, groups=groups)

    def save(self, path: Path) -> None:
        """Write one safetensors file."""
        self.networks.save(path, kind=self.kind, space=self.space)


@dataclass(frozen=True, slots=True)
class PriorPosterior:
    """The prior alone: every configuration's score is drawn on its own."""

    believe: Beliefs
    best: float = -np.inf

    def predict(self, x: Encoded) -> Prediction:
        """mu and sigma."""
        belief = self.believe(x)
        return Prediction(belief.mu, belief.sigma)

    def sample(self, x: Encoded, n: int, *, seed: int) -> Floats:
        """Independent draws from N(mu, sigma²), as in Algorithm 1."""
        belief = self.believe(x)
        noise = np.random.default_rng(seed).standard_normal((n, len(x)))
        return belief.mu + belief.sigma * noise


@dataclass(frozen=True, slots=True)
class PriorSurrogate:
    """Copula Thompson sampling: what the target tells changes nothing."""

    believe: Beliefs

    def condition(self, seen: Observations, *, seed: int) -> Posterior:
        """The prior."""
        del seen, seed
        return PriorPosterior(self.believe)


@dataclass(frozen=True, slots=True)
class ResidualPosterior:
    """g = mu + sigma r, with a Gaussian process r (section 4.2)."""

    believe: Beliefs
    model: GP
    best: float
    noise: float
    """The residuals' noise variance, where it counts as part of an outcome; else 0."""

    def predict(self, x: Encoded) -> Prediction:
        """Mean and standard deviation of the score."""
        belief = self.believe(x)
        mean, std = self.model.predict(_inputs(x, belief))
        return Prediction(
            belief.mu + belief.sigma * mean, belief.sigma * np.sqrt(std**2 + self.noise)
        )

    def sample(self, x: Encoded, n: int, *, seed: int) -> Floats:
        """Joint draws of the score."""
        belief = self.believe(x)
        inputs = _inputs(x, belief)
        drawn = self.model.sample(inputs, n, np.random.default_rng(seed))
        return belief.mu + belief.sigma * drawn


@dataclass(frozen=True, slots=True)
class ResidualSurrogate:
    """Gaussian (Copula) Process on what the prior leaves unexplained."""

    believe: Beliefs
    settings: Settings
    fit: AnchoredFit

    def condition(self, seen: Observations, *, seed: int) -> Posterior:
        """The process after all successful trials; the prior where there are none."""
        del seed
        good = seen.successes()
        if len(good) == 0:
            return PriorPosterior(self.believe)
        belief, real = self.believe(good.configs), ~good.believed
        inputs = _inputs(good.configs, belief)
        told = np.column_stack([good.losses, belief.mu, belief.sigma])
        hyper = self.fit.hyper(inputs[real], told[real])
        residuals = self.fit.output(told)
        keep = informative_subset(inputs, residuals, LARGEST_GP)
        model = GP.condition(inputs[keep], residuals[keep], hyper, units=RESIDUALS)
        scores = belief.mu + belief.sigma * residuals
        noise = float(np.exp(hyper.log_noise)) if self.settings.outcome else 0.0
        return ResidualPosterior(self.believe, model, float(scores[real].min()), noise)


def _inputs(x: Encoded, belief: Belief) -> Floats:
    """(n, W + k + 1): the cube, and what the residual may depend on linearly.

    A score that moves by w along a direction moves the residual by w / sigma; the same holds for
    a change of the prior mean's slope.
    """
    if belief.directions.shape[1] == 0:
        return x.x
    linear = np.column_stack([belief.directions, belief.mu]) / belief.sigma[:, None]
    return np.concatenate([x.x, linear], axis=1)


def _residuals(told: Floats, how: str, objectives: int) -> Floats:
    """(n,) from the columns losses, mu, sigma: the scores' distance to the prior mean in sigmas."""
    losses, mu, sigma = told[:, :objectives], told[:, objectives], told[:, objectives + 1]
    transform = standardise if how == "standardise" else copula_scores
    if how == "informed":
        one = losses[:, 0] if objectives == 1 else scalarise(losses, transform)
        scores = informed_scores(one, mu, sigma)
    else:
        scores = scalarise(losses, transform)
    return (scores - mu) / sigma
