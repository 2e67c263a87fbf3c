"""What one scores without any column: always the same number, or the shares of the classes."""

import numpy as np

from foretune.arrays import Floats
from foretune.automl.models.evaluation import Protocol
from foretune.automl.models.scores import Predictions
from foretune.automl.tables.datasets import Table
from foretune.automl.tables.targets import Task

BY_SQUARES = ("r2", "rmse")
"""Metrics for which the mean is the best number to repeat; for others it is the median."""


def guessed(metric: str, task: Task) -> str:
    """What is always predicted, for people."""
    if task is Task.CLASSIFICATION:
        return "the classes' shares"
    return "the mean" if metric in BY_SQUARES else "the median"


def without_columns(table: Table, protocol: Protocol) -> float:
    """The first metric of such a guess, on the rows that trials are scored on."""
    scorer = protocol.scorers(table.task)[protocol.metrics[0]]
    splits = [(table.y[learn], table.y[held]) for learn, held in protocol.splits(table)]
    guesses = [_guess(table, protocol.metrics[0], learnt, y) for learnt, y in splits]
    return scorer.over_folds([scorer.score(guess) for guess in guesses], [y for _, y in splits])


def _guess(table: Table, metric: str, learnt: Floats, y: Floats) -> Predictions:
    if table.task is Task.REGRESSION:
        number = learnt.mean() if metric in BY_SQUARES else np.median(learnt)
        return Predictions(y, np.full(len(y), number))
    counts = np.bincount(learnt.astype(np.int64), minlength=len(table.classes))
    shares = np.tile(counts / counts.sum(), (len(y), 1))
    return Predictions(y, shares.argmax(axis=1).astype(np.float64), shares)
