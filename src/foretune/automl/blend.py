"""Which models do best together: greedy selection with replacement on out-of-fold predictions.

Caruana, Niculescu-Mizil, Crew and Ksikes, "Ensemble selection from libraries of models" (ICML
2004): begin with the best few models, then add, again and again, the model that helps the mean
most; a model that is added twice counts double.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from foretune.arrays import Floats, Ints
from foretune.automl.datasets import Task
from foretune.automl.scores import Predictions, scorer
from foretune.errors import UsageError
from foretune.experience import Direction

ROUNDS = 50
"""How many models are added after the first few, with repetition."""


@dataclass(frozen=True, slots=True)
class Blend:
    """How much each model counts."""

    weights: Floats
    """(m,), with sum 1; zero for those left out."""
    score: float
    """What the blend scores on the rows it was chosen on."""


def blend(
    predictions: Floats,
    y: Floats,
    metric: str,
    task: Task,
    *,
    most: int,
    rounds: int = ROUNDS,
) -> Blend:
    """The weights under which the mean of some predictions scores best.

    predictions: (m, n, classes) probabilities or (m, n, 1) numbers, of models that had not seen
    those rows. y: (n,), codes or numbers. most: how many models may have a weight.
    """
    if not len(predictions) or most < 1 or not np.isfinite(predictions).all():
        raise UsageError(
            "a blend needs models with finite predictions, but got "
            f"{len(predictions)} for at most {most} places: leave out those that failed"
        )
    loss = _loss_of(y, metric, task)
    alone = np.array([loss(each) for each in predictions])
    # Equal ones keep their order, so the earlier one wins every tie.
    order = np.argsort(alone, kind="stable")
    counts, best = _beginning(predictions, order[:most], loss)
    total = np.tensordot(counts, predictions, axes=1)
    found, lowest = counts.copy(), best
    for _ in range(rounds):
        allowed = order if np.count_nonzero(counts) < most else order[counts[order] > 0]
        losses = [loss((total + predictions[each]) / (counts.sum() + 1)) for each in allowed]
        added = allowed[int(np.argmin(losses))]
        counts[added] += 1
        total += predictions[added]
        if min(losses) < lowest:
            found, lowest = counts.copy(), min(losses)
    weights: Floats = found / found.sum()
    sign = -1.0 if scorer(metric, task).metric.direction is Direction.MAX else 1.0
    return Blend(weights, sign * lowest)


def _loss_of(y: Floats, metric: str, task: Task) -> Callable[[Floats], float]:
    """(n, classes or 1) predictions -> what is minimised; undefined scores count as the worst."""
    chosen = scorer(metric, task)
    sign = -1.0 if chosen.metric.direction is Direction.MAX else 1.0

    def loss(mean: Floats) -> float:
        if task is Task.REGRESSION:
            value = chosen.score(Predictions(y, mean[:, 0]))
        else:
            value = chosen.score(Predictions(y, mean.argmax(axis=1).astype(np.float64), mean))
        return sign * value if np.isfinite(value) else np.inf

    return loss


def _beginning(
    predictions: Floats, order: Ints, loss: Callable[[Floats], float]
) -> tuple[Floats, float]:
    """As many of the best models as do best together, once each; of equals, the fewest."""
    means = np.cumsum(predictions[order], axis=0) / np.arange(1, len(order) + 1)[:, None, None]
    losses = [loss(mean) for mean in means]
    n = int(np.argmin(losses)) + 1
    counts = np.zeros(len(predictions))
    counts[order[:n]] = 1.0
    return counts, losses[n - 1]
