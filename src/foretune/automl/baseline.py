"""Scores a guess that uses no column: always one number, or the shares of the classes."""

import numpy as np

from foretune._base.arrays import Floats
from foretune.automl.estimators.fitted_pipeline import Member
from foretune.automl.estimators.plain_linear import constant_model
from foretune.automl.evaluation import Protocol
from foretune.automl.metrics import Predictions, divisors, mean, median
from foretune.tables import Table, Task

BY_SQUARES = ("r2", "rmse")
"""Metrics for which the mean is the best guess; for others it is the median."""
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
    """Return the guess as a model that a file can hold: a linear model that reads no column."""
    columns = table.x.shape[1]
    if table.task is Task.REGRESSION:
        level = np.array([_best_number(metric, table.y, table.weights)])
        return Member({}, constant_model(columns, level, is_classifier=False))
    known, codes = np.unique(table.y.astype(np.int64), return_inverse=True)
    level = np.log(np.bincount(codes, table.weights))
    return Member({}, constant_model(columns, level, is_classifier=True), tuple(known.tolist()))


def _best_number(metric: str, y: Floats, weights: Floats | None) -> float:
    """Return the number that scores best if it is predicted for all rows."""
    if metric in BY_SQUARES:
        return mean(y, weights)
    if metric == RELATIVE:
        return median(y, (1.0 if weights is None else weights) / divisors(y))
    return median(y, weights)
