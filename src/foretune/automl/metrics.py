"""How good predictions are: the metrics by name, each a few lines of NumPy."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from foretune._base.arrays import Bools, Floats
from foretune.errors import UsageError
from foretune.experience import Direction, Metric
from foretune.tables import Task

LEAST_PROBABILITY = 1e-15
BY_SHARES = "_by_shares"
"""At the end of the names of what is measured with `by_shares`."""


@dataclass(frozen=True, slots=True)
class Predictions:
    """What a model says about rows whose target is known."""

    y: Floats
    """(n,), numbers or codes of classes."""
    predicted: Floats
    """(n,)"""
    probabilities: Floats | None = None
    """(n, number of classes)"""
    weights: Floats | None = None
    """(n,), how much each row counts; alike if None."""

    def mean(self, values: Floats | Bools) -> float:
        """Of a value a row, by weight."""
        return mean(values, self.weights)

    def sum(self, values: Floats | Bools) -> float:
        """Of a value a row, by weight."""
        return float(values.sum() if self.weights is None else values @ self.weights)

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
    compares_targets: bool = False
    """Whether it says nothing about rows whose targets are all equal."""

    def is_defined(self, y: Floats) -> bool:
        """Whether it can be computed on rows with these targets, whatever is predicted."""
        return differ(y) or not self.compares_targets

    def over_folds(self, scores: Sequence[float], targets: Sequence[Floats]) -> float:
        """The mean over the folds that define it; NaN where none does.

        By their targets, so that a model whose predictions are no numbers still fails.
        """
        defined = [score for score, y in zip(scores, targets, strict=True) if self.is_defined(y)]
        return float(np.mean(defined)) if defined else float("nan")


def differ(y: Floats) -> bool:
    """Whether some targets are not equal."""
    return bool((y != y[:1]).any())


def mean(values: Floats | Bools, weights: Floats | None) -> float:
    """Of values (n,) by weights (n,), which are alike if None."""
    return float(np.average(values, weights=weights))


def median(values: Floats, weights: Floats | None) -> float:
    """Of values (n,): half of the weights (n,), which are alike if None, belong to smaller ones."""
    if weights is None:
        return float(np.median(values))
    if np.isnan(values).any():
        return float("nan")
    order = np.argsort(values)
    up_to = np.cumsum(weights[order])
    half = up_to[-1] / 2.0
    last = len(values) - 1
    middle = [min(int(np.searchsorted(up_to, half, side)), last) for side in ("left", "right")]
    return float(values[order[middle]].mean())


def choose_classes(probabilities: Floats, shares: Sequence[float]) -> Floats:
    """(n,), the codes of the classes that probabilities (n, classes) come to.

    shares: what they are divided by, so that rare classes are found; the most probable class is
    chosen where there are none.
    """
    relative = probabilities / np.array(shares) if shares else probabilities
    codes: Floats = relative.argmax(axis=1).astype(np.float64)
    return codes


def accuracy(given: Predictions) -> float:
    """The share of right predictions."""
    return given.mean(given.predicted == given.y)


def balanced_accuracy(given: Predictions) -> float:
    """The mean over classes of the share of right predictions."""
    right = given.predicted == given.y
    each = [given.y == code for code in np.unique(given.y)]
    return float(np.mean([given.sum(right & its) / given.sum(its) for its in each]))


def f1_macro(given: Predictions) -> float:
    """The mean over classes of the harmonic mean of precision and recall."""
    met = np.union1d(given.y, given.predicted)
    scores = [
        2.0 * given.sum((given.y == code) & (given.predicted == code))
        / (given.sum(given.y == code) + given.sum(given.predicted == code))
        for code in met
    ]  # fmt: skip
    return float(np.mean(scores))


def matthews(given: Predictions) -> float:
    """The correlation of the true classes with the predicted ones; 0 where either is constant."""
    met = np.union1d(given.y, given.predicted)
    true = np.array([given.mean(given.y == code) for code in met])
    said = np.array([given.mean(given.predicted == code) for code in met])
    spread = (1.0 - np.sum(true**2)) * (1.0 - np.sum(said**2))
    return float((accuracy(given) - true @ said) / np.sqrt(spread)) if spread > 0.0 else 0.0


def brier(given: Predictions) -> float:
    """Half the mean squared distance of the probabilities from the truth, between 0 and 1."""
    truth = np.eye(given.certain.shape[1])[given.y.astype(np.int64)]
    return given.mean(np.sum((given.certain - truth) ** 2, axis=1)) / 2.0


def log_loss(given: Predictions) -> float:
    """The mean negative logarithm of the probability of the true class."""
    rows = np.arange(len(given.y))
    true = given.certain[rows, given.y.astype(np.int64)]
    return -given.mean(np.log(np.maximum(true, LEAST_PROBABILITY)))


def auc(given: Predictions) -> float:
    """The area under the ROC curve; of several classes, the mean of each against all others."""
    areas = [
        _binary_auc(given, given.y == code, given.certain[:, int(code)])
        for code in np.unique(given.y)
        if not (given.y == code).all()
    ]
    return float(np.mean(areas)) if areas else float("nan")


def _binary_auc(given: Predictions, positive: Bools, score: Floats) -> float:
    """How often a positive row scores above a negative one; ties count half."""
    if np.isnan(score).any():
        return float("nan")
    weights = np.ones(len(score)) if given.weights is None else given.weights
    _, level = np.unique(score, return_inverse=True)
    positives = np.bincount(level, weights * positive)
    negatives = np.bincount(level, weights * ~positive)
    below = np.cumsum(negatives) - negatives / 2.0
    return float(positives @ below / (positives.sum() * negatives.sum()))


def r2(given: Predictions) -> float:
    """The share of the variance that is explained."""
    # Not by the spread: that of equal targets may be a rounding error above zero.
    if not differ(given.y):
        return float("nan")
    spread = given.sum((given.y - given.mean(given.y)) ** 2)
    error = given.sum((given.y - given.predicted) ** 2)
    return float(1.0 - np.divide(error, spread))


def rmse(given: Predictions) -> float:
    """The root of the mean squared error."""
    return float(np.sqrt(given.mean((given.y - given.predicted) ** 2)))


def mae(given: Predictions) -> float:
    """The mean absolute error."""
    return given.mean(np.abs(given.y - given.predicted))


def median_absolute_error(given: Predictions) -> float:
    """Half of the errors are smaller."""
    return median(np.abs(given.y - given.predicted), given.weights)


def mape(given: Predictions) -> float:
    """The mean error as a share of the target, which should not be 0."""
    return given.mean(np.abs(given.y - given.predicted) / divisors(given.y))


def divisors(y: Floats) -> Floats:
    """(n,), by what `mape` divides the errors of targets y (n,)."""
    sizes: Floats = np.maximum(np.abs(y), np.finfo(np.float64).eps)
    return sizes


SCORERS: dict[str, Scorer] = {
    scorer.metric.name: scorer
    for scorer in (
        Scorer(Metric("accuracy", Direction.MAX), Task.CLASSIFICATION, accuracy),
        Scorer(Metric("balanced_accuracy", Direction.MAX), Task.CLASSIFICATION, balanced_accuracy),
        Scorer(Metric("log_loss", Direction.MIN), Task.CLASSIFICATION, log_loss, True),
        Scorer(Metric("auc", Direction.MAX), Task.CLASSIFICATION, auc, True, True),
        Scorer(Metric("f1_macro", Direction.MAX), Task.CLASSIFICATION, f1_macro),
        Scorer(Metric("matthews", Direction.MAX), Task.CLASSIFICATION, matthews, False, True),
        Scorer(Metric("brier", Direction.MIN), Task.CLASSIFICATION, brier, True),
        Scorer(Metric("r2", Direction.MAX), Task.REGRESSION, r2, compares_targets=True),
        Scorer(Metric("rmse", Direction.MIN), Task.REGRESSION, rmse),
        Scorer(Metric("mae", Direction.MIN), Task.REGRESSION, mae),
        Scorer(
            Metric("median_absolute_error", Direction.MIN), Task.REGRESSION, median_absolute_error
        ),
        Scorer(Metric("mape", Direction.MIN), Task.REGRESSION, mape),
    )
}


def by_shares(plain: Scorer, shares: Sequence[float]) -> Scorer:
    """The same metric of a model that chooses classes by shares; its name says so."""

    def score(given: Predictions) -> float:
        chosen = choose_classes(given.certain, shares)
        return plain.score(replace(given, predicted=chosen))

    metric = replace(plain.metric, name=f"{plain.metric.name}{BY_SHARES}")
    return replace(plain, metric=metric, score=score, needs_probabilities=True)


def of_the_model(values: Mapping[str, float], shares: Sequence[float]) -> dict[str, float]:
    """What a trial measured, for people: metrics of classes as the model chooses them.

    Records are of the most probable class, whatever a fit is asked for, so that they can be
    compared. Metrics of classes are left out where only that was measured.
    """
    if not shares:
        return dict(values)
    return {
        name: values.get(f"{name}{BY_SHARES}", value)
        for name, value in values.items()
        if name in SCORERS and (SCORERS[name].needs_probabilities or f"{name}{BY_SHARES}" in values)
    }


def check_divisible(metric: str | None, y: Floats, *, of: str = "") -> None:
    """Refuse targets by which a metric would divide, where some are 0.

    of: which table they are of, where there are several.
    """
    zeros = int((y == 0.0).sum())
    if metric == "mape" and zeros:
        raise UsageError(
            f"mape divides by the target, which must not be 0, but it is in {zeros:,} of "
            f"{len(y):,} rows{of}: choose mae",
            rule="mape-of-zero",
            value=zeros,
        )


def check_metric_directions(metrics: Sequence[Metric], task: Task) -> None:
    """Refuse recorded metrics that are no metrics of such a task, or point the other way."""
    for metric in metrics:
        wanted = scorer(metric.name, task).metric
        if metric != wanted:
            raise UsageError(
                f"'{wanted.name}' must be recorded as '{wanted.direction}', but got "
                f"'{metric.direction}': correct the direction, and the values if they were turned",
                rule="metric-direction",
                field=wanted.name,
                value=str(metric.direction),
            )


def scorer(name: str, task: Task) -> Scorer:
    """The metric with this name, if it measures such a task."""
    found = SCORERS.get(name)
    if found is None or found.task is not task:
        fitting = [each.metric.name for each in SCORERS.values() if each.task is task]
        raise UsageError(
            f"the metric of a {task} must be one of {', '.join(fitting)}, but got '{name}': "
            "choose one of them",
            rule="unknown-metric",
            value=name,
        )
    return found
