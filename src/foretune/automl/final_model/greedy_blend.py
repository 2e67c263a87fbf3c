"""Selects greedily, with replacement, the models that do best together.

Caruana, Niculescu-Mizil, Crew and Ksikes, "Ensemble selection from libraries of models" (ICML
2004): start with the best few models, then repeatedly add the model that improves the mean of the
out-of-fold predictions most. A model that is added twice counts twice. The best model is always
part of the blend.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from foretune._base.arrays import Floats
from foretune.automl.metrics import Predictions, scorer
from foretune.errors import UsageError
from foretune.tables import Task

ROUNDS = 50
"""The number of times that a model is added after the first few."""
PATIENCE = 10
"""Selection stops after this many additions without improvement."""


@dataclass(frozen=True, slots=True)
class Blend:
    """The weight of each model."""

    weights: Floats
    """(m,), with sum 1; zero for models that are left out."""
    score: float
    """The score of the blend on the rows that chose it."""


def blend(
    predictions: Sequence[Floats],
    y: Floats,
    metric: str,
    task: Task,
    *,
    most: int,
    rounds: int = ROUNDS,
    folds: Sequence[int] = (),
    counting: Floats | None = None,
) -> Blend:
    """Find the weights with which the mean of some predictions scores best.

    predictions: for each model, the best model first, finite out-of-fold predictions: (n, classes)
    probabilities or (n, 1) numbers. They are not copied, because they may be large. y: (n,) codes
    or numbers. most: how many models may have a weight. folds: the numbers of rows that are scored
    together, in order; all rows if empty. counting: (n,) row weights; equal if None.
    """
    if not len(predictions) or most < 1:
        raise UsageError(
            f"a blend needs at least one model and one place, but got {len(predictions)} for at "
            f"most {most} places: give it more",
            rule="empty-blend",
        )
    loss = _loss_of(y, metric, task, folds or (len(y),), counting)
    counts, total, lowest = _choose_first(predictions, most, loss)
    found, last_gain = counts.copy(), 0
    for number in range(rounds):
        full = np.count_nonzero(counts) >= most
        allowed = np.flatnonzero(counts).tolist() if full else range(len(predictions))
        losses = [loss((total + predictions[each]) / (counts.sum() + 1)) for each in allowed]
        added = allowed[int(np.argmin(losses))]
        counts[added] += 1
        total += predictions[added]
        if min(losses) < lowest:
            found, lowest, last_gain = counts.copy(), min(losses), number
        elif number - last_gain >= PATIENCE:
            break
    weights: Floats = found / found.sum()
    return Blend(weights, scorer(metric, task).metric.sign * lowest)


def _loss_of(
    y: Floats, metric: str, task: Task, folds: Sequence[int], counting: Floats | None
) -> Callable[[Floats], float]:
    """Return the function from mean predictions (n, classes or 1) to the loss.

    The loss is the mean over folds, as for trials. An undefined score is the worst.
    """
    chosen = scorer(metric, task)
    ends = np.cumsum(folds)
    parts = [slice(end - size, end) for end, size in zip(ends, folds, strict=True)]
    targets = [y[part] for part in parts]

    def score(mean: Floats, part: slice) -> float:
        weights = None if counting is None else counting[part]
        if task is Task.REGRESSION:
            return chosen.score(Predictions(y[part], mean[part, 0], weights=weights))
        codes = mean[part].argmax(axis=1).astype(np.float64)
        return chosen.score(Predictions(y[part], codes, mean[part], weights))

    def loss(mean: Floats) -> float:
        scores = [score(mean, part) for part in parts]
        value = chosen.over_folds(scores, targets)
        return chosen.metric.sign * value if np.isfinite(value) else np.inf

    return loss


def _choose_first(
    predictions: Sequence[Floats], most: int, loss: Callable[[Floats], float]
) -> tuple[Floats, Floats, float]:
    """Choose how many of the best models, once each, do best together; the fewest if tied.

    Returns how often each model counts, the sum of their predictions, and their loss.
    """
    total = np.zeros(predictions[0].shape)
    losses = []
    for n, each in enumerate(predictions[:most], start=1):
        total += each
        losses.append(loss(total / n))
    best = int(np.argmin(losses)) + 1
    counts = np.zeros(len(predictions))
    counts[:best] = 1.0
    return counts, sum(predictions[:best], np.zeros_like(total)), losses[best - 1]
