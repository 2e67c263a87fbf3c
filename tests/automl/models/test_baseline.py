import numpy as np
import pandas as pd
import pytest
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.metrics import log_loss, mean_absolute_error, r2_score

from foretune.automl.models.baseline import guessed, without_columns
from foretune.automl.models.evaluation import Protocol
from foretune.automl.tables.datasets import Table
from foretune.automl.tables.targets import Task


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
    assert guessed(metric, Task.REGRESSION) == f"the {strategy}"


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
    assert guessed("auc", Task.CLASSIFICATION) == "the classes' shares"
