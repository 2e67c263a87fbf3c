"""The surrogate: several experts, weighted by how well each ranks the target's own trials.

Every expert predicts Gaussian scores of the loss, so their expected improvements have one unit,
and that of the mixture is their weighted mean. An expert that past tasks mislead ranks new trials
badly, and loses its weight to an expert that does not use past tasks.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.special import logsumexp, softmax

from foretune._base.arrays import Bools, Floats
from foretune.methods.contracts import (
    Observations,
    Posterior,
    Prediction,
    Surrogate,
)
from foretune.numerics.objectives import scalarise
from foretune.numerics.order import order_score
from foretune.numerics.scores import midrank_scores
from foretune.space import Encoded

FIRST_BLOCK = 2
"""The trials that an expert knows when it first predicts others. Then blocks double."""
BLOCKS = 2
"""The number of latest blocks that count, because early predictions say little about later ones."""
MOST_JUDGED = 512
"""The latest trials of a block that weigh the experts. All pairs of them are compared."""
LEAST_WEIGHT = 0.01
"""An expert with at most this weight is left out."""


@dataclass(frozen=True, slots=True)
class MixturePosterior(Posterior):
    """Posteriors in one unit, each with a weight."""

    experts: tuple[Posterior, ...]
    weights: Floats
    """(experts,), adding up to 1."""
    taught: Bools
    """(experts,), those that learnt from past tasks."""
    greedy: bool = False
    """Whether the lowest mean is chosen, without regard to its uncertainty."""

    @property
    def trusts_past(self) -> bool:
        """Whether the experts that learnt from past tasks have the majority."""
        return bool(self.weights[self.taught].sum() > 0.5)

    @property
    def best(self) -> float:
        """The weighted mean of the experts' best values."""
        return float(self.weights @ [expert.best for expert in self.experts])

    def predict(self, x: Encoded) -> Prediction:
        """Return mean and standard deviation of the mixture."""
        each = [expert.predict(x) for expert in self.experts]
        means, stds = np.stack([e.mean for e in each]), np.stack([e.std for e in each])
        mean = self.weights @ means
        variance = self.weights @ (np.square(stds) + np.square(means - mean))
        return Prediction(mean, np.sqrt(variance))

    def predict_each(self, x: Encoded) -> Floats:
        """Return (len(x), objectives), or one column if no expert tells objectives apart."""
        each = [expert.predict_each(x) for expert in self.experts]
        width = max(means.shape[1] for means in each)
        wide = [np.broadcast_to(means, (len(x), width)) for means in each]
        return np.average(wide, axis=0, weights=self.weights)

    def sample(self, x: Encoded, n: int, *, seed: int) -> Floats:
        """Draw an expert for each row, and a sample of it."""
        rng = np.random.default_rng(seed)
        drawn = rng.choice(len(self.experts), size=n, p=self.weights)
        draws = np.empty((n, len(x)))
        for number, expert in enumerate(self.experts):
            rows = np.flatnonzero(drawn == number)
            if len(rows):
                draws[rows] = expert.sample(x, len(rows), seed=int(rng.integers(2**32)))
        return draws

    def log_improvement(self, x: Encoded) -> Floats:
        """Return the log of the expected improvement, or the negated mean if it is greedy."""
        if self.greedy:
            return -self.predict(x).mean
        each = [expert.log_utility(x) for expert in self.experts]
        total: Floats = logsumexp(np.stack(each), axis=0, b=self.weights[:, None])
        return total


@dataclass(frozen=True, slots=True)
class AutoSurrogate(Surrogate):
    """Conditions all experts, and weighs them by trials that they had not seen."""

    names: tuple[str, ...]
    experts: tuple[Surrogate, ...]
    log_prior: Floats
    """(experts,), the log weights before any trial."""
    taught: Bools
    """(experts,), those that learnt from past tasks."""
    greedy_trials: int = 0
    """The number of trials that are chosen greedily, as long as past tasks are a guide."""
    most_judged: int = MOST_JUDGED
    _earlier: dict[bytes, tuple[Posterior, ...]] = field(default_factory=dict)
    """The experts after the first 2, 4, 8, ... trials, kept to save time."""
    _weighed: dict[bytes, Floats] = field(default_factory=dict)
    """The weights after the latest trials, kept to save time."""

    def condition(self, seen: Observations, *, seed: int) -> Posterior:
        """Return the mixture after all successful trials."""
        weights = self.weights(seen)
        # An expert with little weight is not worth its time.
        heard = np.flatnonzero(weights > LEAST_WEIGHT)
        each = tuple(self.experts[number].condition(seen, seed=seed) for number in heard.tolist())
        mixture = MixturePosterior(each, weights[heard] / weights[heard].sum(), self.taught[heard])
        greedy = len(seen) < self.greedy_trials and mixture.trusts_past
        return replace(mixture, greedy=greedy)

    def explain(self, seen: Observations) -> str:
        """Return a sentence about the weights of the experts."""
        if not self.taught.any():
            who = "a model of this task's own trials chose"
            if seen.losses.shape[1] > 1:
                who = "models of this task's own trials, one for each objective, chose trials that "
                who += "widen the front"
            return f"There were no past tasks, so {who}."
        weights = self.weights(seen)
        order = np.argsort(-weights, kind="stable").tolist()
        shares = ", ".join(
            f"{self.names[number]} {weights[number]:.0%}"
            + ("" if self.taught[number] else " (which uses this task's own trials only)")
            for number in order
        )
        return (
            "In the end its models were weighted by how well each had predicted the order of the "
            f"latest trials: {shares}."
        )

    def weights(self, seen: Observations) -> Floats:
        """Return (experts,), adding up to 1. They depend on the observed trials only."""
        if len(self.experts) == 1:
            return np.ones(1)
        good = seen.successes()
        real = _rows(good, np.flatnonzero(~good.believed))
        key = _digest(real)
        if key not in self._weighed:
            self._weighed.clear()
            self._weighed[key] = self._weigh(real)
        return self._weighed[key]

    def _weigh(self, real: Observations) -> Floats:
        scores = self.log_prior.copy()
        for known in _blocks(len(real)):
            end = min(2 * known, len(real))
            begin = max(end - self.most_judged, 0)
            judged = _rows(real, np.arange(begin, end))
            for number, posterior in enumerate(self._after(_rows(real, np.arange(known)))):
                belief, y = posterior.predict(judged.configs), _in_one(judged.losses, posterior)
                first = max(known - begin, 0)
                scores[number] += order_score(belief.mean, belief.std, y, first)
        weights: Floats = softmax(scores)
        return weights

    def _after(self, seen: Observations) -> tuple[Posterior, ...]:
        key = _digest(seen)
        if key not in self._earlier:
            self._earlier[key] = tuple(
                expert.condition(seen, seed=len(seen)) for expert in self.experts
            )
        return self._earlier[key]


def _in_one(losses: Floats, posterior: Posterior) -> Floats:
    """Turn losses (n, L) into (n,) numbers in the posterior's weighting of objectives.

    They are ranks and not Winsorised, because the order of the best trials matters most.
    """
    weights = posterior.objective_weights()
    if losses.shape[1] == 1 or weights is None:
        return scalarise(losses, midrank_scores)
    each = np.column_stack([midrank_scores(column) for column in losses.T])
    return np.asarray(each @ weights)


def _blocks(n: int) -> Sequence[int]:
    """Return the number of trials before each of the latest blocks of n trials."""
    known = FIRST_BLOCK
    found = []
    while known < n:
        found.append(known)
        known *= 2
    return found[-BLOCKS:]


def _digest(seen: Observations) -> bytes:
    return hashlib.sha256(seen.configs.values.tobytes() + seen.losses.tobytes()).digest()


def _rows(seen: Observations, rows: "np.ndarray[tuple[int], np.dtype[np.int64]]") -> Observations:
    return replace(
        seen,
        configs=seen.configs.take(rows),
        losses=seen.losses[rows],
        believed=seen.believed[rows],
    )
