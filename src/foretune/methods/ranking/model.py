"""The surrogate: an ensemble fine-tuned on the target's trials, and its belief about ranks."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from scipy.special import ndtri

from foretune._base.arrays import Floats
from foretune.methods.contracts import Observations, Posterior, Prediction, Prior, Surrogate, Target
from foretune.methods.past_data import check_space
from foretune.methods.ranking.curvature import criterion
from foretune.methods.ranking.ensemble import Ensemble, Singles, one_loss, scores
from foretune.methods.ranking.tuning import FineTuning, fine_tune
from foretune.numerics.acquisition import log_of_improvement
from foretune.numerics.anchored import informative_subset
from foretune.numerics.networks import Layers
from foretune.space import Encoded, Space

REFERENCES = 1000
"""If there is no pool, ranks are taken among this number of configurations of the space."""
LARGEST_LIST = 200
"""The most observations that scorers are tuned to. A step costs O(n³)."""
CHUNK = 256
"""Rows scored at once, so that the activations of all scorers stay in the cache."""
BLUR = 0.05
"""The blur of each scorer's rank, in Gaussian scores. It keeps an order among poor candidates."""


@dataclass(frozen=True, slots=True)
class RankingSettings:
    """The settings of a variant."""

    tuning: FineTuning | None
    """None means that the weights stay as they were learnt (no T in the paper's ablation)."""
    loss: str = "list-wise"
    unit: str = "scores"
    """The numbers that are averaged over scorers: `ranks`, or their Gaussian `scores`."""


@dataclass(frozen=True, slots=True)
class RankingPrior(Prior):
    """An ensemble, and the settings of the variant."""

    kind: str
    space: Space
    ensemble: Ensemble
    settings: RankingSettings

    def surrogate(self, target: Target) -> Surrogate:
        """Return the surrogate for one task in the space that the prior was learnt on."""
        check_space(self.space, target)
        return RankingSurrogate(self.ensemble, self.settings, self._references(target))

    def opening(self, target: Target) -> Encoded:
        """Return the configuration that the scorers rank best before the first trial."""
        references = self._references(target)
        nothing = Observations(references.take([]), np.empty((0, 1)), np.empty(0, dtype=bool))
        expected = self.surrogate(target).condition(nothing, seed=0).predict(references).mean
        return references.take([int(np.argmin(expected))])

    def _references(self, target: Target) -> Encoded:
        return self.space.sample(REFERENCES, seed=0) if target.pool is None else target.pool

    def save(self, path: Path) -> None:
        """Write one safetensors file."""
        self.ensemble.save(path, kind=self.kind, space=self.space)


@dataclass(frozen=True, slots=True)
class RankingSurrogate(Surrogate):
    """Fine-tunes the scorers to rank the target's own trials."""

    ensemble: Ensemble
    settings: RankingSettings
    references: Encoded
    """Configurations among which ranks are taken."""

    def condition(self, seen: Observations, *, seed: int) -> Posterior:
        """Return the posterior after all successful trials, or that of the initial scorers."""
        del seed
        good = seen.successes()
        y = one_loss(good.losses) if len(good) else np.empty(0)
        z = self.ensemble.meta_features(good.configs.x, y)
        scorers = self._tune(good.configs.x, y, z)
        incumbent = good.configs.take([int(np.argmin(y))]) if len(good) else None
        return RankPosterior(
            self.ensemble, scorers, z, self.references, self.settings.unit, incumbent
        )

    def _tune(self, x: Floats, y: Floats, z: Singles) -> Layers:
        tuning = self.settings.tuning
        if tuning is None or len(y) == 0:
            return self.ensemble.scorers
        keep = informative_subset(x, y, LARGEST_LIST)
        inputs = self.ensemble.inputs(x[keep], z)
        return fine_tune(
            self.ensemble.scorers, inputs, criterion(self.settings.loss, y[keep]), tuning
        )


@dataclass(frozen=True)
class RankPosterior(Posterior):
    """The ranks that each scorer gives to configurations among the references (section 3.2)."""

    ensemble: Ensemble
    scorers: Layers
    meta_features: Singles
    references: Encoded
    unit: str
    incumbent: Encoded | None
    """The best trial, pending ones included."""

    @cached_property
    def best(self) -> float:
        """The predicted mean rank of the incumbent (Appendix A)."""
        return np.inf if self.incumbent is None else float(self.predict(self.incumbent).mean[0])

    def predict(self, x: Encoded) -> Prediction:
        """Return mean and standard deviation of the rank over the scorers."""
        each = self._ranks(x)
        return Prediction(each.mean(axis=0), each.std(axis=0))

    def log_utility(self, x: Encoded) -> Floats:
        """Return the logarithm of the expected improvement in rank over the incumbent.

        The paper fits a normal distribution to the scorers' ranks of a candidate and compares its
        mean with that of the incumbent. But a scorer that ranks one high also ranks the other high,
        so here the difference is computed for each scorer, and differences are averaged.
        """
        if self.incumbent is None:
            return np.zeros(len(x))
        gain = self._ranks(self.incumbent) - self._ranks(x)
        return log_of_improvement(np.mean(BLUR * np.logaddexp(0.0, gain / BLUR), axis=0))

    def sample(self, x: Encoded, n: int, *, seed: int) -> Floats:
        """Return the ranks that random scorers give."""
        drawn = np.random.default_rng(seed).integers(len(self.scorers[0][0]), size=n)
        return self._ranks(x)[drawn]

    def _ranks(self, x: Encoded) -> Floats:
        """Return (M, len(x)), in the unit of the posterior; lower is better."""
        found = self._reference_scores if x is self.references else self._scores(x)
        rows = zip(found, self._sorted_scores, strict=True)
        return np.stack([_ranks_among(ordered, s, self.unit) for s, ordered in rows])

    def _scores(self, x: Encoded) -> Floats:
        """(M, len(x))"""
        starts = range(0, max(len(x), 1), CHUNK)
        inputs = self.ensemble.inputs(x.x, self.meta_features)
        parts = [scores(self.scorers, inputs[start : start + CHUNK]) for start in starts]
        return np.concatenate(parts, axis=1).astype(np.float64)

    @cached_property
    def _reference_scores(self) -> Floats:
        """(M, references), their scores."""
        return self._scores(self.references)

    @cached_property
    def _sorted_scores(self) -> Floats:
        """(M, references), the highest score last."""
        return np.sort(self._reference_scores, axis=1)


def _ranks_among(ordered: Floats, s: Floats, unit: str) -> Floats:
    """Return the ranks (m,) of scores s among the ascending scores of the references.

    Between two references the rank is interpolated. A score beyond all of them is ranked by a
    normal distribution of the same spread, so that local search sees in which direction to go.
    """
    n = len(ordered)
    if unit == "ranks":
        return n - np.searchsorted(ordered, s, side="left").astype(np.float64)
    grid = -ndtri((np.arange(n) + 0.5) / n)
    beyond = np.maximum(s - ordered[-1], 0.0) - np.maximum(ordered[0] - s, 0.0)
    spread = float(ordered.std())
    extra: Floats = beyond / (spread if spread > 0.0 else 1.0)
    return np.interp(s, ordered, grid) - extra
