"""The metrics of predictions, by name; each is a few lines of NumPy."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from foretune._base.arrays import Bools, Floats
from foretune.errors import UsageError
from foretune.experience import Direction, Metric
from foretune.tables import Task

LEAST_PROBABILITY = 1e-15
BY_SHARES = "_by_shares"
"""The suffix of the names of metrics that are measured with `by_shares`."""


@dataclass(frozen=True, slots=True)
class Predictions:
    """The predictions of a model for rows whose target is known."""

    y: Floats
    """The targets (n,): numbers or codes of classes."""
    predicted: Floats
    """The predicted numbers or codes (n,)."""
    probabilities: Floats | None = None
    """The probabilities (n, number of classes); None if they were not computed."""
    weights: Floats | None = None
    """The weights (n,) of the rows; equal if None."""

    def mean(self, values: Floats | Bools) -> float:
        """Return the weighted mean of one value for each row."""
        return mean(values, self.weights)

    def sum(self, values: Floats | Bools) -> float:
        """Return the weighted sum of one value for each row."""
        return float(values.sum() if self.weights is None else values @ self.weights)

    @property
    def certain(self) -> Floats:
        """The probabilities, which must have been computed."""
        if self.probabilities is None:
            raise RuntimeError("a metric of probabilities was asked for without them")
        return self.probabilities

    @property
    def blendable(self) -> Floats:
        """The (n, classes) probabilities or (n, 1) numbers that a blend averages."""
        return self.predicted[:, None] if self.probabilities is None else self.probabilities


@dataclass(frozen=True, slots=True)
class Scorer:
    """A metric, how it is computed, and the predictions that it needs."""

    metric: Metric
    task: Task
    score: Callable[[Predictions], float]
    needs_probabilities: bool = False
    compares_targets: bool = False
    """Whether the metric is undefined for rows whose targets are all equal."""

    def is_defined(self, y: Floats) -> bool:
        """Return whether the metric is defined for rows with these targets."""
        return differ(y) or not self.compares_targets

    def over_folds(self, scores: Sequence[float], targets: Sequence[Floats]) -> float:
        """Return the mean over the folds whose targets define the metric; NaN if none does.

        A fold counts by its targets, so a model whose predictions are not numbers still fails.
        """
        counted = [score for score, y in zip(scores, targets, strict=True) if self.is_defined(y)]
        return float(np.mean(counted)) if counted else float("nan")


def differ(y: Floats) -> bool:
    """Return whether some targets are different."""
    return bool((y != y[:1]).any())


def mean(values: Floats | Bools, weights: Floats | None) -> float:
    """Return the mean of values (n,) by weights (n,); equal weights if None."""
    return float(np.average(values, weights=weights))


def median(values: Floats, weights: Floats | None) -> float:
    """Return the median of values (n,) by weights (n,); equal weights if None."""
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
    """Choose a class for each row of probabilities (n, classes); return the codes (n,).

    shares: probabilities are divided by these, so that rare classes are found. If empty, the most
    probable class is chosen.
    """
    relative = probabilities / np.array(shares) if shares else probabilities
    codes: Floats = relative.argmax(axis=1).astype(np.float64)
    return codes


def accuracy(given: Predictions) -> float:
    """Return the share of right predictions."""
    return given.mean(given.predicted == given.y)


def balanced_accuracy(given: Predictions) -> float:
    """Return the mean over classes of the share of right predictions."""
    right = given.predicted == given.y
    each = [given.y == code for code in np.unique(given.y)]
    return float(np.mean([given.sum(right & its) / given.sum(its) for its in each]))


def f1_macro(given: Predictions) -> float:
    """Return the mean over classes of the harmonic mean of precision and recall."""
    met = np.union1d(given.y, given.predicted)
    scores = [
        2.0 * given.sum((given.y == code) & (given.predicted == code))
        / (given.sum(given.y == code) + given.sum(given.predicted == code))
        for code in met
    ]  # fmt: skip
    return float(np.mean(scores))


def matthews(given: Predictions) -> float:
    """Return the correlation of true and predicted classes; 0 if either is constant."""
    met = np.union1d(given.y, given.predicted)
    true = np.array([given.mean(given.y == code) for code in met])
    said = np.array([given.mean(given.predicted == code) for code in met])
    spread = (1.0 - np.sum(true**2)) * (1.0 - np.sum(said**2))
    return float((accuracy(given) - true @ said) / np.sqrt(spread)) if spread > 0.0 else 0.0


def brier(given: Predictions) -> float:
    """Return half the mean squared distance of the probabilities from the truth (0 to 1)."""
    truth = np.eye(given.certain.shape[1])[given.y.astype(np.int64)]
    return given.mean(np.sum((given.certain - truth) ** 2, axis=1)) / 2.0


def log_loss(given: Predictions) -> float:
    """Return the mean negative logarithm of the probability of the true class."""
    rows = np.arange(len(given.y))
    true = given.certain[rows, given.y.astype(np.int64)]
    return -given.mean(np.log(np.maximum(true, LEAST_PROBABILITY)))


def auc(given: Predictions) -> float:
    """Return the area under the ROC curve: the mean of one class against the rest if several."""
    areas = [
        _binary_auc(given, given.y == code, given.certain[:, int(code)])
        for code in np.unique(given.y)
        if not (given.y == code).all()
    ]
    return float(np.mean(areas)) if areas else float("nan")


def _binary_auc(given: Predictions, positive: Bools, score: Floats) -> float:
    """Return how often a positive row scores above a negative one; ties count half."""
    if np.isnan(score).any():
        return float("nan")
    weights = np.ones(len(score)) if given.weights is None else given.weights
    _, level = np.unique(score, return_inverse=True)
    positives = np.bincount(level, weights * positive)
    negatives = np.bincount(level, weights * ~positive)
    below = np.cumsum(negatives) - negatives / 2.0
    return float(positives @ below / (positives.sum() * negatives.sum()))


def r2(given: Predictions) -> float:
    """Return the share of the variance that is explained."""
    # The spread of equal targets may be a rounding error above zero, so they are compared.
    if not differ(given.y):
        return float("nan")
    spread = given.sum((given.y - given.mean(given.y)) ** 2)
    error = given.sum((given.y - given.predicted) ** 2)
    return float(1.0 - np.divide(error, spread))


def rmse(given: Predictions) -> float:
    """Return the root of the mean squared error."""
    return float(np.sqrt(given.mean((given.y - given.predicted) ** 2)))


def mae(given: Predictions) -> float:
    """Return the mean absolute error."""
    return given.mean(np.abs(given.y - given.predicted))


def median_absolute_error(given: Predictions) -> float:
    """Return the median of the absolute errors."""
    return median(np.abs(given.y - given.predicted), given.weights)


def mape(given: Predictions) -> float:
    """Return the mean error as a share of the target, which should not be 0."""
    return given.mean(np.abs(given.y - given.predicted) / divisors(given.y))


def divisors(y: Floats) -> Floats:
    """Return the numbers (n,) by which `mape` divides the errors of targets y (n,)."""
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
    """Return the same metric for a model that chooses classes by shares, with a name of its own."""

    def score(given: Predictions) -> float:
        chosen = choose_classes(given.certain, shares)
        return plain.score(replace(given, predicted=chosen))

    metric = replace(plain.metric, name=f"{plain.metric.name}{BY_SHARES}")
    return replace(plain, metric=metric, score=score, needs_probabilities=True)


def of_the_model(values: Mapping[str, float], shares: Sequence[float]) -> dict[str, float]:
    """Return the values of a trial for people: metrics of classes as the model chooses them.

    Stored values are those of the most probable class, so that different fits can be compared. A
    metric of classes is left out if it was only measured for the most probable class.
    """
    if not shares:
        return dict(values)
    return {
        name: values.get(f"{name}{BY_SHARES}", value)
        for name, value in values.items()
        if name in SCORERS and (SCORERS[name].needs_probabilities or f"{name}{BY_SHARES}" in values)
    }


def check_divisible(metric: str | None, y: Floats, *, of: str = "") -> None:
    """Refuse targets of 0 for a metric that divides by them.

    of: the words that name the table, if there are several.
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
    """Refuse recorded metrics of another task or with the wrong direction."""
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
    """Return the scorer of the metric with this name; refuse one of another task."""
    found = SCORERS.get(name)
    if found is None or found.task is not task:
        names = [each.metric.name for each in SCORERS.values() if each.task is task]
        raise UsageError(
            f"the metric of a {task} must be one of {', '.join(names)}, but got '{name}': "
            "choose one of them",
            rule="unknown-metric",
            value=name,
        )
    return found
