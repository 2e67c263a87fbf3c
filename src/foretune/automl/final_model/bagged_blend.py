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
CLEARLY = 1.0
"""A new blend must be better by this many standard errors."""
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


@dataclass(frozen=True, slots=True)
class ScoredRows:
    """The rows that a blend is scored on."""

    y: Floats
    """(n,): numbers, or codes of classes."""
    metric: str
    task: Task
    folds: Sequence[int] = ()
    """The numbers of rows that are scored together, in order; all rows if empty."""
    counting: Floats | None = None
    """(n,): the weights of the rows; equal if None."""


def bagged_blend(
    predictions: Sequence[Floats],
    rows: ScoredRows,
    limits: BlendLimits,
    *,
    seed: int = 0,
    among: Sequence[int] | None = None,
    incumbent: Floats | None = None,
) -> Blend:
    """Find the weights with which the mean of some predictions scores best.

    predictions: those of each model, the best model first, as `greedy_blend.blend` takes them.
    among: the models that may be members; all if None. incumbent: the weights (models,) of an
    earlier blend, which stays unless the new one is better by more than chance explains.
    """
    possible = list(range(len(predictions)) if among is None else among)
    losses = RowLosses.of(
        predictions, rows.y, rows.metric, rows.folds or (len(rows.y),), rows.counting
    )
    if losses is None:
        return _without_row_losses(predictions, rows, limits, possible)
    different = _leave_out_copies(losses, possible)
    rng = np.random.default_rng(seed)
    shares = np.zeros(len(predictions))
    for _ in range(BAGS):
        drawn = rng.multinomial(len(rows.y), np.full(len(rows.y), 1.0 / len(rows.y)))
        shares += _choose(losses, losses.weights * drawn, different)
    bagged = limits.apply(shares / shares.sum())
    plain = limits.apply(_choose(losses, losses.weights, different))
    best = np.eye(len(predictions))[possible[0]]
    tried = [bagged, plain, best]
    lost = [_loss(losses, each) for each in tried]
    # The plain choice looks better on the rows that chose it, so it must not win by that.
    chosen = tried[0 if lost[0] <= lost[2] else int(np.argmin(lost))]
    if incumbent is not None and not is_clearly_better(losses, chosen, incumbent):
        chosen = incumbent
    return Blend(chosen, _score(_loss(losses, chosen), rows.metric, rows.task))


def is_clearly_better(losses: RowLosses, new: Floats, old: Floats) -> bool:
    """Return whether a blend is better than another one by more than its standard error.

    Both blends predict the same rows, so the differences of the rows' losses are compared.
    """
    gained = losses.row_losses(old) - losses.row_losses(new)
    error = float(np.std(gained)) / np.sqrt(len(gained))
    return bool(np.mean(gained) > CLEARLY * error)


def _without_row_losses(
    predictions: Sequence[Floats], rows: ScoredRows, limits: BlendLimits, possible: list[int]
) -> Blend:
    """Choose once among few models, by a metric that is no sum over rows."""
    few = possible[:MOST_WITHOUT_ROWS]
    found = blend(
        [predictions[place] for place in few],
        rows.y,
        rows.metric,
        rows.task,
        most=limits.most,
        folds=rows.folds,
        counting=rows.counting,
    )
    weights = np.zeros(len(predictions))
    weights[few] = found.weights
    return Blend(weights, found.score)


def _loss(losses: RowLosses, shares: Floats) -> float:
    return float(losses.losses((shares @ losses.numbers)[None])[0])


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


def _leave_out_copies(losses: RowLosses, possible: Sequence[int]) -> list[int]:
    """Return the models, the best first, without those that are nearly equal to a better one."""
    errors = losses.numbers - losses.perfect
    products = errors @ errors.T
    own = np.diag(products)
    kept: list[int] = []
    for place in possible:
        apart = own[place] + own[kept] - 2.0 * products[place, kept]
        if (apart > ALIKE * own[kept]).all():
            kept.append(place)
    return kept or [possible[0]]


def _score(loss: float, metric: str, task: Task) -> float:
    """Return the metric's own value of a loss."""
    if metric == "r2":
        return 1.0 - loss
    return scorer(metric, task).metric.sign * loss
