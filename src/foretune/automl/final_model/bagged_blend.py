"""Chooses the weights of a blend among all trials, so that chance in the rows matters little.

Caruana, Munson and Niculescu-Mizil, "Getting the most out of ensemble selection" (ICDM 2006): the
greedy choice with replacement is repeated on samples of the rows, and the weights are averaged.
Models whose predictions are nearly those of a better one are left out first.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from foretune._base.arrays import Floats
from foretune.automl.final_model.greedy_blend import Blend, blend
from foretune.automl.final_model.row_losses import RowLosses
from foretune.automl.metrics import scorer
from foretune.tables import Task

BAGS = 12
ROUNDS = 40
PATIENCE = 8
"""The choice ends after this many additions without improvement."""
ALIKE = 0.003
"""A model is a near-copy if its mean squared difference from a better one is below this share of
the mean squared error of that one."""
LEAST_SHARE = 0.01
"""Members with a smaller share are left out."""
MOST_WITHOUT_ROWS = 25
"""The most models to choose among by a metric that is no sum over rows, which is slow."""


@dataclass(frozen=True, slots=True)
class BlendLimits:
    """The limits of a blend."""

    most: int
    """The most models."""
    costs: Sequence[float] = ()
    """What each model costs; nothing if empty."""
    most_cost: float = np.inf
    """The most that all members cost together, unless the first one alone costs more."""

    def apply(self, shares: Floats) -> Floats:
        """Return the shares of the members with the largest shares that have room, with sum 1."""
        kept, cost = np.zeros(len(shares)), 0.0
        for place in np.argsort(-shares, kind="stable").tolist():
            if shares[place] < LEAST_SHARE or np.count_nonzero(kept) >= self.most:
                break
            more = self.costs[place] if len(self.costs) else 0.0
            if cost + more <= self.most_cost or not kept.any():
                kept[place] = shares[place]
                cost += more
        limited: Floats = kept / kept.sum()
        return limited


def bagged_blend(
    predictions: Sequence[Floats],
    y: Floats,
    metric: str,
    task: Task,
    limits: BlendLimits,
    *,
    folds: Sequence[int] = (),
    counting: Floats | None = None,
    seed: int = 0,
) -> Blend:
    """Find the weights with which the mean of some predictions scores best.

    The other arguments are those of `blend`.
    """
    sizes = folds or (len(y),)
    losses = RowLosses.of(predictions, y, metric, sizes, counting)
    if losses is None:
        few = predictions[:MOST_WITHOUT_ROWS]
        found = blend(few, y, metric, task, most=limits.most, folds=folds, counting=counting)
        weights = np.zeros(len(predictions))
        weights[: len(few)] = found.weights
        return Blend(weights, found.score)
    different = _leave_out_copies(losses)
    rng = np.random.default_rng(seed)
    shares = np.zeros(len(predictions))
    for _ in range(BAGS):
        drawn = rng.multinomial(len(y), np.full(len(y), 1.0 / len(y)))
        shares += _choose(losses, losses.weights * drawn, different)
    bagged = limits.apply(shares / shares.sum())
    plain = limits.apply(_choose(losses, losses.weights, different))
    best = np.eye(len(predictions))[0]
    tried = [bagged, plain, best]
    lost = [float(losses.losses((each @ losses.numbers)[None])[0]) for each in tried]
    # The plain choice looks better on the rows that chose it, so it must not win by that.
    chosen = 0 if lost[0] <= lost[2] else int(np.argmin(lost))
    return Blend(tried[chosen], _score(lost[chosen], metric, task))


def _choose(losses: RowLosses, weights: Floats, among: Sequence[int]) -> Floats:
    """Add the model that helps most, again and again; return the share (models,) of each."""
    allowed = np.full(len(losses.numbers), np.inf)
    allowed[list(among)] = 0.0
    counts, total = np.zeros(len(losses.numbers)), np.zeros(losses.numbers.shape[1])
    found, lowest, last_gain = counts, np.inf, 0
    for number in range(ROUNDS):
        each = losses.after_adding(total, float(counts.sum()), weights) + allowed
        added = int(np.argmin(each))
        counts[added] += 1.0
        total += losses.numbers[added]
        if each[added] < lowest:
            found, lowest, last_gain = counts.copy(), float(each[added]), number
        elif number - last_gain >= PATIENCE:
            break
    if not found.any():  # No loss is finite.
        found[0] = 1.0
    shares: Floats = found / found.sum()
    return shares


def _leave_out_copies(losses: RowLosses) -> list[int]:
    """Return the models, the best first, without those that are nearly equal to a better one."""
    errors = losses.numbers - losses.perfect
    products = errors @ errors.T
    own = np.diag(products)
    kept: list[int] = []
    for place in range(len(errors)):
        apart = own[place] + own[kept] - 2.0 * products[place, kept]
        if (apart > ALIKE * own[kept]).all():
            kept.append(place)
    return kept or [0]


def _score(loss: float, metric: str, task: Task) -> float:
    """Return the metric's own value of a loss."""
    if metric == "r2":
        return 1.0 - loss
    return scorer(metric, task).metric.sign * loss
