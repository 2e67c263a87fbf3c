"""How good predictions are: the metrics by name, each a few lines of NumPy."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

from foretune.arrays import Floats
from foretune.automl.datasets import Task
from foretune.errors import UsageError
from foretune.experience import Direction, Metric

LEAST_PROBABILITY = 1e-15


@dataclass(frozen=True, slots=True)
class Predictions:
    """What a model says about rows whose target is known."""

    y: Floats
    """(n,), numbers or codes of classes."""
    predicted: Floats
    """(n,)"""
    probabilities: Floats | None = None
    """(n, number of classes)"""

    @property
    def certain(self) -> Floats:
        """The probabilities, which must have been computed."""
        if self.probabilities is None:
            raise RuntimeError("a metric of probabilities was asked for without them")
        return self.probabilities

    @property
    def blendable(self) -> Floats:
        """What can be averaged with other models: (n, classes) probabilities or (n, 1) numbers."""
        return self.predicted[:, None] if self.probabilities is None else self.probabilities


@dataclass(frozen=True, slots=True)
class Scorer:
    """One metric and what it needs."""

    metric: Metric
    task: Task
    score: Callable[[Predictions], float]
    needs_probabilities: bool = False


def accuracy(given: Predictions) -> float:
    """The share of right predictions."""
    return float(np.mean(given.predicted == given.y))


def balanced_accuracy(given: Predictions) -> float:
    """The mean over classes of the share of right predictions."""
    right = given.predicted == given.y
    return float(np.mean([right[given.y == code].mean() for code in np.unique(given.y)]))


def log_loss(given: Predictions) -> float:
    """The mean negative logarithm of the probability of the true class."""
    rows = np.arange(len(given.y))
    true = given.certain[rows, given.y.astype(np.int64)]
    return float(-np.mean(np.log(np.maximum(true, LEAST_PROBABILITY))))


def auc(given: Predictions) -> float:
    """The area under the ROC curve; of several classes, the mean of each against all others."""
    areas = [
        _binary_auc(given.y == code, given.certain[:, int(code)])
        for code in np.unique(given.y)
        if not (given.y == code).all()
    ]
    return float(np.mean(areas)) if areas else float("nan")


def _binary_auc(positive: Floats, score: Floats) -> float:
    """How often a positive row scores above a negative one; ties count half."""
    n_positive = int(positive.sum())
    n_negative = len(positive) - n_positive
    ranks = rankdata(score)
    above = ranks[positive.astype(np.bool_)].sum() - n_positive * (n_positive + 1) / 2
    return float(above / (n_positive * n_negative))


def r2(given: Predictions) -> float:
    """The share of the variance that is explained."""
    spread = np.sum((given.y - given.y.mean()) ** 2)
    error = np.sum((given.y - given.predicted) ** 2)
    return float(1.0 - error / spread) if spread > 0 else float("nan")


def rmse(given: Predictions) -> float:
    """The root of the mean squared error."""
    return float(np.sqrt(np.mean((given.y - given.predicted) ** 2)))


SCORERS: dict[str, Scorer] = {
    scorer.metric.name: scorer
    for scorer in (
        Scorer(Metric("accuracy", Direction.MAX), Task.CLASSIFICATION, accuracy),
        Scorer(Metric("balanced_accuracy", Direction.MAX), Task.CLASSIFICATION, balanced_accuracy),
        Scorer(Metric("log_loss", Direction.MIN), Task.CLASSIFICATION, log_loss, True),
        Scorer(Metric("auc", Direction.MAX), Task.CLASSIFICATION, auc, True),
        Scorer(Metric("r2", Direction.MAX), Task.REGRESSION, r2),
        Scorer(Metric("rmse", Direction.MIN), Task.REGRESSION, rmse),
    )
}


def scorer(name: str, task: Task) -> Scorer:
    """The metric with this name, if it measures such a task."""
    found = SCORERS.get(name)
    if found is None or found.task is not task:
        fitting = [each.metric.name for each in SCORERS.values() if each.task is task]
        raise UsageError(
            f"the metric of a {task} must be one of {', '.join(fitting)}, but got '{name}': "
            "choose one of them"
        )
    return found
