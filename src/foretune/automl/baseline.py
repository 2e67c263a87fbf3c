"""Scores a guess that uses no column: always one number, or the shares of the classes."""

import numpy as np

from foretune._base.arrays import Floats
from foretune.automl.estimators.fitted_pipeline import Member
from foretune.automl.evaluation import Protocol
from foretune.automl.metrics import Predictions, divisors, mean, median
from foretune.tables import Table, Task

BY_SQUARES = ("r2", "rmse")
"""Metrics for which the mean is the best guess; for others it is the median."""
ONLY_ROOT = 0.9
"""If a leaf needs this share of the rows, the tree is only a root."""
RELATIVE = "mape"
"""The metric for which the same error counts more if the target is small."""


def describe_guess(metric: str, task: Task) -> str:
    """Return the guess in words."""
    if task is Task.CLASSIFICATION:
        return "the classes' shares"
    if metric == RELATIVE:
        return "the median, where small numbers count more"
    return "the mean" if metric in BY_SQUARES else "the median"


def without_columns(table: Table, protocol: Protocol) -> float:
    """Return the score of a guess by the first metric, on the rows that trials are scored on."""
    scorer = protocol.scorers(table.task)[protocol.metrics[0]]
    splits = [(table.rows(learn), table.rows(held)) for learn, held in protocol.splits(table)]
    guesses = [guess(protocol.metrics[0], learnt, held) for learnt, held in splits]
    targets = [held.y for _, held in splits]
    return scorer.over_folds([scorer.score(each) for each in guesses], targets)


def guess(metric: str, learnt: Table, held: Table) -> Predictions:
    """Guess the targets of held-out rows from the rows to learn from."""
    y, weights = held.y, held.weights
    if held.task is Task.REGRESSION:
        number = _best_number(metric, learnt.y, learnt.weights)
        return Predictions(y, np.full(len(y), number), weights=weights)
    counts = np.bincount(learnt.y.astype(np.int64), learnt.weights, minlength=len(held.classes))
    shares = np.tile(counts / counts.sum(), (len(y), 1))
    return Predictions(y, shares.argmax(axis=1).astype(np.float64), shares, weights)


def baseline_member(table: Table, metric: str) -> Member:
    """Return the guess as a pipeline that a model file can hold: a tree that is only a root."""
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import Pipeline
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    columns = SimpleImputer(strategy="constant", fill_value=0.0, keep_empty_features=True)
    if table.task is Task.REGRESSION:
        root = DecisionTreeRegressor(min_samples_leaf=ONLY_ROOT)
        y = np.full(len(table), _best_number(metric, table.y, table.weights))
        return Member({}, Pipeline([("columns", columns), ("estimator", root)]).fit(table.x, y))
    known, codes = np.unique(table.y.astype(np.int64), return_inverse=True)
    root = DecisionTreeClassifier(min_samples_leaf=ONLY_ROOT)
    pipeline = Pipeline([("columns", columns), ("estimator", root)])
    pipeline.fit(table.x, codes, estimator__sample_weight=table.weights)
    return Member({}, pipeline, tuple(known.tolist()))


def _best_number(metric: str, y: Floats, weights: Floats | None) -> float:
    """Return the number that scores best if it is predicted for all rows."""
    if metric in BY_SQUARES:
        return mean(y, weights)
    if metric == RELATIVE:
        return median(y, (1.0 if weights is None else weights) / divisors(y))
    return median(y, weights)
