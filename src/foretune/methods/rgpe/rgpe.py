"""RGPE: an ensemble of past processes and the target's own, weighted by how well they rank.

Feurer et al. (2018). A process weighs as much as it is probable that, of all, it misranks the
fewest pairs of the target's trials: the share of joint draws in which it does. The target's own
process, which has seen the trials, is judged by what it says of each when that one is left out.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg.lapack import dpotri

from foretune._base.arrays import Floats, Ints
from foretune.methods.contracts import Observations, Posterior, Prediction, Surrogate, Target
from foretune.methods.gp.gaussian_process import GaussianProcessSurrogate
from foretune.methods.rgpe.source_processes import SourceLimits, SourcesLearner, Voices
from foretune.methods.rgpe.stacked import JointDraws
from foretune.numerics.gp import GP
from foretune.numerics.transforms import standardise
from foretune.space import Encoded

LIMITS = SourceLimits(evaluations=150, fitted=100, tasks=100)
DRAWS = 100
"""The number of joint draws. The weights are multiples of 1 / DRAWS."""
RANKED = 100
"""The number of first trials that decide the weights. By then the target's own process leads."""
DILUTION = 0.95
"""A past process is left out if its median loss is above this quantile of the target's own."""


def ranking_losses(z: Floats, values: Floats) -> Ints:
    """How many ordered pairs of n trials each draw misranks, for `values` (n, ...): (...).

    A pair (j, k) is misranked where exactly one of the losses z (n,) and of the values says that
    its first trial is better. Values are drawn, so no two of them are equal.
    """
    order = np.argsort(z, kind="stable")
    z, values = z[order], values[order]
    better = np.searchsorted(z, z)
    tied_pairs = int((np.arange(len(z)) - better).sum())
    losses = np.full(values.shape[1:], tied_pairs, dtype=np.int64)
    for j in range(1, len(z)):
        wrong = values[: better[j]] > values[j]
        # Both orders of the pair are wrong then. A byte does not overflow with few trials.
        losses += 2 * wrong.view(np.uint8).sum(axis=0, dtype=np.uint8).astype(np.int64)
    return losses


def leave_one_out_losses(z: Floats, left_out: Floats) -> Ints:
    """The same for the target's own process: `left_out` (n, draws) -> (draws,).

    What was drawn for a trial without having seen it is compared with the other trials' losses.
    """
    claimed = left_out[:, None, :] < z[None, :, None]
    wrong = claimed != (z[:, None] < z[None, :])[:, :, None]
    wrong[np.diag_indices(len(z))] = False
    losses: Ints = np.count_nonzero(wrong, axis=(0, 1))
    return losses


def ensemble_weights(past: Ints, own: Ints) -> Floats:
    """Weights (M + 1,), the target's last, from losses of draws `past` (M, draws), `own` (draws,).

    In each draw the process of the lowest loss wins; the target's own where it is among them, else
    the past ones share.
    """
    kept = np.median(past, axis=1) <= np.quantile(own, DILUTION)
    lowest = np.minimum(own, past[kept].min(axis=0, initial=own.max()))
    wins = (past == lowest) & kept[:, None] & (own > lowest)
    weights = np.append((wins / np.maximum(wins.sum(axis=0), 1)).mean(axis=1), 0.0)
    weights[-1] = np.mean(own == lowest)
    return weights


def leave_one_out(process: GP) -> tuple[Floats, Floats]:
    """Return means and standard deviations (n,) at each observation, predicted from the others.

    With the hyperparameters of the whole, in the process's standardised unit.
    """
    inverse = dpotri(process.cholesky, lower=1)[0]
    precision = np.diagonal(inverse)
    mean = process.units(process.y) - process.alpha / precision
    variance = 1.0 / precision - np.exp(process.hyper.log_noise)
    return mean, np.sqrt(np.maximum(variance, 0.0))


@dataclass(frozen=True, slots=True)
class EnsemblePosterior(Posterior):
    """A weighted sum of independent processes."""

    own: Posterior
    past: Sequence[Callable[[Encoded], Prediction]]
    """The beliefs of M past processes."""
    past_draws: Sequence[GP]
    """The same processes, for joint draws."""
    weights: Floats
    """(M + 1,), the target's own last."""
    best: float
    """The lowest of the ensemble's means at the trials."""

    def predict(self, x: Encoded) -> Prediction:
        """Return mean and standard deviation of the weighted sum."""
        own = self.own.predict(x)
        mean, variance = self.weights[-1] * own.mean, np.square(self.weights[-1] * own.std)
        for number in np.flatnonzero(self.weights[:-1]).tolist():
            weight, belief = self.weights[number], self.past[number](x)
            mean += weight * belief.mean
            variance += np.square(weight * belief.std)
        return Prediction(mean, np.sqrt(variance))

    def sample(self, x: Encoded, n: int, *, seed: int) -> Floats:
        """Return weighted sums of joint draws of each process."""
        draws: Floats = self.weights[-1] * self.own.sample(x, n, seed=seed)
        for number in np.flatnonzero(self.weights[:-1]).tolist():
            # From 1 on: [seed, 0] is the same seed as the target's own.
            rng = np.random.default_rng([seed, number + 1])
            draws += self.weights[number] * self.past_draws[number].sample(x.x, n, rng)
        return draws


@dataclass(frozen=True, slots=True)
class EnsembleSurrogate(Surrogate):
    """The target's process in an ensemble with those of the past tasks."""

    own: GaussianProcessSurrogate
    voices: Voices
    past_draws: JointDraws

    def condition(self, seen: Observations, *, seed: int) -> Posterior:
        """Return the posterior after all successful trials. Observed ones decide the weights."""
        own = self.own.condition(seen, seed=seed)
        good = seen.successes()
        real = np.flatnonzero(~good.believed)
        weights = self._weights(good.configs.take(real), good.losses[real])
        ensemble = EnsemblePosterior(
            own, self.voices.beliefs, self.voices.stacked.processes, weights, np.inf
        )
        return replace(ensemble, best=float(ensemble.predict(good.configs).mean.min()))

    def _weights(self, configs: Encoded, losses: Floats) -> Floats:
        """Return (M + 1,), the target's own last; all equal if there is no pair to rank."""
        if len(losses) < 2:
            return np.full(len(self.voices.beliefs) + 1, 1.0 / (len(self.voices.beliefs) + 1))
        hyper = self.own.fit.hyper(configs.x, losses)
        x, z = configs.x[:RANKED], self.own.fit.output(losses)[:RANKED]
        process = GP.condition(x, z, hyper)
        mean, std = leave_one_out(process)
        noise = np.random.default_rng(DRAWS).standard_normal((len(z), DRAWS))
        left_out = mean[:, None] + std[:, None] * noise
        return ensemble_weights(
            ranking_losses(z, self.past_draws(x)), leave_one_out_losses(process.units(z), left_out)
        )


def _ensemble(voices: Voices, target: Target) -> Surrogate:
    own = GaussianProcessSurrogate.on(standardise, target)
    return EnsembleSurrogate(own, voices, JointDraws(voices.stacked, DRAWS))


def rgpe() -> SourcesLearner:
    """Return the learner of the ranking-weighted ensemble, on standardised losses."""
    return SourcesLearner("rgpe", standardise, LIMITS, _ensemble)
