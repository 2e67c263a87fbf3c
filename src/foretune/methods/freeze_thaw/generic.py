"""What is believed where no past task tells: curves that were drawn from a few simple laws.

A curve falls by a power law to its final loss. Some configurations learn nothing, some begin to
learn late, and some overfit towards the end. Their scores are measured as those of past tasks are.
"""

from functools import lru_cache

import numpy as np

from foretune._base.arrays import Floats, Ints
from foretune.methods.freeze_thaw.curve_prior import CurvePrior, Shares
from foretune.methods.freeze_thaw.residuals import split_covariance
from foretune.methods.freeze_thaw.units import Unit
from foretune.numerics.hyper import prior_mode

TASKS, CONFIGS = 40, 50
EXPONENTS = (0.2, 1.5)
SHARE_FLAT, SHARE_LATE, SHARE_OVERFIT = 0.2, 0.25, 0.1
SHARES = Shares(0.2, 0.75, 0.1, 1.0)
SMALLEST_STEP = 1e-3


def generic_statistics(knots: Floats) -> tuple[Floats, Floats]:
    """Return mean (K,) and covariance (K, K) of the scores of drawn curves."""
    mean, covariance = _statistics(tuple(knots.tolist()))
    return mean.copy(), covariance.copy()


@lru_cache(maxsize=16)
def _statistics(knots: tuple[float, ...]) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(0)
    steps = np.maximum(np.array(knots), SMALLEST_STEP)
    scores = []
    for _ in range(TASKS):
        losses = _draw_task(steps, rng)
        scores.append(Unit.measure(losses[:, -1]).to_scores(losses))
    drawn = np.concatenate(scores)
    return drawn.mean(axis=0), np.cov(drawn, rowvar=False).reshape(len(steps), len(steps))


def _draw_task(steps: Floats, rng: np.random.Generator) -> Floats:
    """Return (CONFIGS, K), the losses of one task."""
    ends = rng.gamma(2.0, 0.5, CONFIGS)
    heights = rng.lognormal(-0.5, 1.0, CONFIGS)
    exponents = rng.uniform(*EXPONENTS, CONFIGS)
    lowest = min(float(steps[0]), 0.5)
    powers = steps[None, :] ** -exponents[:, None]
    falls = (powers - 1.0) / (lowest ** -exponents[:, None] - 1.0)
    losses = ends[:, None] + heights[:, None] * falls
    late = rng.random(CONFIGS) < SHARE_LATE
    begins = np.exp(rng.uniform(np.log(lowest), 0.0, CONFIGS))
    drops = 1.0 / (1.0 + np.power(steps[None, :] / begins[:, None], 3.0))
    losses[late] = (ends[:, None] + heights[:, None] * drops)[late]
    flat = rng.random(CONFIGS) < SHARE_FLAT
    losses[flat] = (ends + heights)[flat, None]
    rises = rng.gamma(1.0, 0.5, CONFIGS) * (rng.random(CONFIGS) < SHARE_OVERFIT)
    losses += rises[:, None] * np.square(np.maximum(steps - 0.3, 0.0))
    return np.asarray(losses + 0.02 * rng.standard_normal(losses.shape))


def generic_prior(knots: Floats, groups: Ints, stretch: float = 1.0) -> CurvePrior:
    """Return the prior of a task without past tasks; columns of a group share a lengthscale.

    stretch: a factor for all lengthscales.
    """
    mean, covariance = generic_statistics(knots)
    lengthscales = np.exp(prior_mode(groups)[:-3])[groups] * stretch
    return plain_prior(knots, mean, covariance, lengthscales, SHARES)


def plain_prior(
    knots: Floats, level: Floats, covariance: Floats, lengthscales: Floats, shares: Shares
) -> CurvePrior:
    """Return a prior that knows how curves run, but not which configurations are good."""
    basis, noise = split_covariance(covariance)
    width, count = len(lengthscales), len(knots)
    return CurvePrior(
        knots=knots,
        lengthscales=lengthscales,
        centres=np.empty((0, width)),
        level=level,
        weights=np.empty((0, count)),
        factor_levels=np.empty((0, count)),
        factor_weights=np.empty((0, 0, count)),
        basis=basis,
        noise=noise,
        shares=shares,
        units=None,
    )
