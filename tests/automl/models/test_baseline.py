from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.metrics import log_loss, mean_absolute_error, r2_score

from foretune.automl.baseline import describe_guess, without_columns
from foretune.automl.evaluation import Protocol
from foretune.tables.row_weights import RowWeights
from foretune.tables.table import Table
from foretune.tables.target import Task


def a_table(y):
    return Table.of(pd.DataFrame({"x": np.random.default_rng(0).random(len(y)), "y": y}), "y")


NUMBERS = a_table(np.random.default_rng(1).exponential(size=60))
CLASSES = a_table(["a"] * 40 + ["b"] * 15 + ["c"] * 5)


def by_scikit_learn(table, protocol, model, score):
    scores = []
    for learn, held in protocol.splits(table):
        model.fit(table.x[learn], table.y[learn])
        scores.append(score(model, table.x[held], table.y[held]))
    return np.mean(scores)


@pytest.mark.parametrize(
    ("metric", "strategy", "score"),
    [("r2", "mean", r2_score), ("mae", "median", mean_absolute_error)],
)
def test_numbers_are_always_the_same(metric, strategy, score):
    protocol = Protocol((metric,))
    expected = by_scikit_learn(
        NUMBERS, protocol, DummyRegressor(strategy=strategy),
        lambda model, x, y: score(y, model.predict(x)),
    )  # fmt: skip
    assert without_columns(NUMBERS, protocol) == pytest.approx(expected)
    assert describe_guess(metric, Task.REGRESSION) == f"the {strategy}"


@pytest.mark.parametrize("weighed", [False, True])
def test_no_number_has_a_smaller_mape_than_what_is_guessed(weighed):
    """On the rows that it is guessed from, which are those it is scored on."""
    y = np.array([1.0, 1.5, 2.0, -3.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 100.0, 200.0])
    weights = np.where(y > 60.0, 0.2, 1.0) if weighed else np.ones(len(y))
    table = replace(a_table(y), weighting=RowWeights("w", weights) if weighed else None)
    twice = table.rows(np.tile(np.arange(len(y)), 2))

    class Same(Protocol):
        def splits(self, table):
            return [(np.arange(len(y)), len(y) + np.arange(len(y)))]

    def of(number):
        return np.average(np.abs(y - number) / np.abs(y), weights=weights)

    least = min(of(number) for number in y)
    assert without_columns(twice, Same(("mape",))) == pytest.approx(least)
    assert of(np.median(y)) > 2.0 * least
    assert "small numbers count more" in describe_guess("mape", Task.REGRESSION)


def test_classes_are_always_as_probable():
    protocol = Protocol(("log_loss",))
    expected = by_scikit_learn(
        CLASSES, protocol, DummyClassifier(strategy="prior"),
        lambda model, x, y: log_loss(y, model.predict_proba(x), labels=[0, 1, 2]),
    )  # fmt: skip
    assert without_columns(CLASSES, protocol) == pytest.approx(expected)
    assert without_columns(CLASSES, Protocol(("accuracy",))) == pytest.approx(2 / 3)
    assert without_columns(CLASSES, Protocol(("balanced_accuracy",))) == pytest.approx(1 / 3)
    assert without_columns(CLASSES, Protocol(("auc",))) == pytest.approx(0.5)
    assert describe_guess("auc", Task.CLASSIFICATION) == "the classes' shares"
