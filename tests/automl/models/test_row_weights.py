"""Rows that do not count alike are learnt from and scored by their weight."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.linear_model import LogisticRegression
from sklearn.utils.fixes import parse_version

from foretune.automl.baseline import without_columns
from foretune.automl.column_importance import column_worth
from foretune.automl.estimators.fitted_pipeline import refit
from foretune.automl.estimators.pipelines import weight_arguments
from foretune.automl.evaluation import Protocol, evaluate
from foretune.automl.final_model.greedy_blend import blend
from foretune.automl.final_model.model import Model
from foretune.automl.model_scores import scores_on
from foretune.automl.plan import FitOptions, make_plan
from foretune.automl.spaces import SPACES, load_shipped_space
from foretune.tables.column_roles import ColumnRoles
from foretune.tables.row_weights import RowWeights
from foretune.tables.table import Table
from foretune.tables.target import Task
from tests.automl.samples import mixed_table, with_few_trees
from tests.refusals import refuses

CANNOT = {"knn", "lda", "qda"}
if parse_version(sklearn.__version__) < parse_version("1.7"):
    CANNOT |= {"mlp"}
CASES = [(name, algorithm) for name, space in SPACES.items() for algorithm in space.algorithms()]


def weighed(table, weights):
    return replace(table, weighting=RowWeights("w", np.asarray(weights, dtype=float)))


def a_config(name, algorithm):
    [config] = load_shipped_space(name).build([algorithm]).sample(1, seed=3).dicts()
    return with_few_trees(config, 20)


def with_contradictions(task):
    """Every row once more, with another target: what weighs more must win."""
    table = mixed_table(task)
    twice = table.rows(np.tile(np.arange(len(table)), 2))
    other = table.y + 3.0 if task is Task.REGRESSION else (table.y + 1.0) % len(table.classes)
    return replace(twice, y=np.concatenate([table.y, other]))


def two_truths(n=400):
    """Rows of weight 9 say that high x is good, as many of weight 1 say the opposite."""
    rng = np.random.default_rng(0)
    x, heavy = rng.normal(size=n), np.arange(n) % 2 == 0
    good = np.where(heavy, x > 0, x < 0)
    frame = pd.DataFrame({"x": x, "good": good, "w": np.where(heavy, 9.0, 1.0)})
    return frame, Table.of(frame, "good", roles=ColumnRoles(weight="w"))


@pytest.mark.parametrize(("name", "algorithm"), CASES)
def test_every_estimator_that_can_weighs_rows(name, algorithm):
    table, config = with_contradictions(load_shipped_space(name).task), a_config(name, algorithm)
    given = np.repeat([0.05, 1.95], len(table) // 2)
    members = [refit(config, each, seed=0) for each in (table, weighed(table, given))]
    assert bool(weight_arguments(members[0].pipeline, given)) == (algorithm not in CANNOT)
    if table.task is Task.REGRESSION:
        plain, other = (member.predict(table.x) for member in members)
    else:
        plain, other = (member.probabilities(table.x, len(table.classes)) for member in members)
    assert np.array_equal(plain, other) == (algorithm in CANNOT)


@pytest.mark.parametrize("algorithm", ["logistic", "hist_boosting", "naive_bayes"])
def test_heavy_rows_are_believed(algorithm):
    frame, table = two_truths()
    config = a_config("pipeline-classification", algorithm)
    score = evaluate(config, table, Protocol(("accuracy",)))
    assert score.values["accuracy"] > 0.8
    member = refit(config, table, seed=0)
    model = Model.of(table, [member], target="good", metric="accuracy")
    by_weight = scores_on(model, frame, ["accuracy"], weighting=table.weighting)["accuracy"]
    alike = scores_on(model, frame, ["accuracy"])["accuracy"]
    assert by_weight > 0.8
    assert 0.4 < alike < 0.6


def test_a_fitted_pipeline_is_that_of_scikit_learn():
    _, table = two_truths()
    config = a_config("pipeline-classification", "logistic") | {
        "scaler": "none",
        "reducer": "none",
        "estimator:logistic:balanced": False,
    }
    config = {k: v for k, v in config.items() if not k.startswith("reducer:")}
    ours = refit(config, table, seed=0).probabilities(table.x, 2)
    theirs = LogisticRegression(C=config["estimator:logistic:C"], max_iter=300)
    theirs.fit(table.x, table.y, sample_weight=table.weights)
    np.testing.assert_allclose(ours, theirs.predict_proba(table.x), rtol=1e-3)


def test_scores_are_weighed_in_every_fold():
    """By hand: a constant prediction, two folds."""
    y = np.array([0.0, 0.0, 1.0, 1.0] * 10)
    table = Table.of(pd.DataFrame({"x": np.arange(40.0) ** 2, "y": y}), "y")
    heavy = weighed(table, np.where(table.y == 1.0, 3.0, 1.0))
    protocol = Protocol(("accuracy", "log_loss"), folds=2)
    assert without_columns(table, protocol) == pytest.approx(0.5)
    assert without_columns(heavy, protocol) == pytest.approx(0.75)
    loss = without_columns(heavy, replace(protocol, metrics=("log_loss",)))
    assert loss == pytest.approx(-(0.75 * np.log(0.75) + 0.25 * np.log(0.25)))


def test_numbers_without_columns_are_the_weighed_mean_and_median():
    y = np.tile([1.0, 2.0, 10.0, 20.0], 10)
    table = Table.of(pd.DataFrame({"x": np.arange(40.0) ** 2, "y": y}), "y", task=Task.REGRESSION)
    heavy = weighed(table, np.where(table.y == 20.0, 9.0, 1.0))
    # The mean squared error about the mean (193 / 12) is the weighed variance; one in four is 20.
    mean = 193 / 12
    variance = np.average((np.array([1.0, 2.0, 10.0, 20.0]) - mean) ** 2, weights=[1, 1, 1, 9])
    assert without_columns(heavy, Protocol(("rmse",), folds=2)) == pytest.approx(variance**0.5)
    assert without_columns(heavy, Protocol(("mae",), folds=2)) == pytest.approx(47 / 12)


def test_a_blend_is_chosen_by_weighed_rows():
    y = np.array([0.0, 1.0, 0.0, 1.0])
    first, second = np.array([0.0, 1.0, 1.0, 0.0]), np.array([1.0, 0.0, 0.0, 1.0])
    predictions = np.stack([first, second])[:, :, None]
    heavy = np.array([1.0, 1.0, 5.0, 5.0])
    plain = blend(predictions, y, "rmse", Task.REGRESSION, most=1)
    assert plain.weights.tolist() == [1.0, 0.0]
    by_weight = blend(predictions, y, "rmse", Task.REGRESSION, most=2, counting=heavy)
    assert by_weight.weights[1] > by_weight.weights[0]
    folded = blend(predictions, y, "rmse", Task.REGRESSION, most=2, counting=heavy, folds=(2, 2))
    assert folded.score == pytest.approx(0.5)


def test_columns_are_worth_what_they_tell_of_heavy_rows():
    rng = np.random.default_rng(0)
    left, right = rng.normal(size=(2, 300))
    heavy = np.arange(300) % 2 == 0
    y = np.where(heavy, left, right)
    frame = pd.DataFrame({"left": left, "right": right, "y": y, "w": np.where(heavy, 50.0, 1.0)})
    table = Table.of(frame, "y", roles=ColumnRoles(weight="w"))
    config = a_config("pipeline-regression", "elastic_net")
    config["estimator:elastic_net:alpha"] = 1e-3
    first, second = column_worth(config, table, Protocol(("r2",)))
    assert first.column == "left"
    assert first.lost > 5 * abs(second.lost)


@pytest.mark.parametrize(("side", "column"), [(0.0, "left"), (1.0, "right")])
def test_columns_are_worth_what_heavy_rows_lose(side, column):
    """Of a pipeline that learns from all rows alike."""
    rng = np.random.default_rng(0)
    left, right = rng.normal(size=(2, 300))
    where = np.arange(300) % 2 * 5.0
    frame = pd.DataFrame({"left": left, "right": right, "where": where})
    frame["y"] = np.where(where == 0.0, left, right)
    table = Table.of(frame, "y")
    heavy = weighed(table, np.where(where == 5.0 * side, 1.9, 0.1))
    config = a_config("pipeline-regression", "knn") | {"scaler": "none", "reducer": "none"}
    config = {k: v for k, v in config.items() if not k.startswith("reducer:")}
    found = {each.column: each.lost for each in column_worth(config, heavy, Protocol(("rmse",)))}
    other = {"left": "right", "right": "left"}[column]
    assert found[column] > 2 * found[other]


def test_errors_on_a_test_table_are_weighed():
    frame = pd.DataFrame({"x": np.arange(40.0) / 2, "y": np.arange(40.0) ** 2})
    frame["w"] = np.where(frame["x"] > 15, 20, 1)
    table = Table.of(frame, "y", roles=ColumnRoles(weight="w"))
    member = refit(a_config("pipeline-regression", "elastic_net"), table, seed=0)
    model = Model.of(table, [member], target="y", metric="mae")
    errors = np.abs(frame["y"] - model.predict(frame))
    found = scores_on(model, frame, ["mae"], weighting=table.weighting)["mae"]
    assert found == pytest.approx(np.average(errors, weights=frame["w"]))
    assert found != pytest.approx(errors.mean())


def test_a_test_table_needs_the_weights():
    frame, table = two_truths()
    member = refit(a_config("pipeline-classification", "naive_bayes"), table, seed=0)
    model = Model.of(table, [member], target="good", metric="accuracy")
    with refuses("missing-column", field="w"):
        scores_on(model, frame.drop(columns="w"), ["accuracy"], weighting=table.weighting)
    with_zeros = frame.assign(w=np.where(frame["x"] > 0, 0.0, frame["w"]))
    kept = frame[frame["x"] <= 0]
    assert scores_on(model, with_zeros, ["accuracy"], weighting=table.weighting) == pytest.approx(
        scores_on(model, kept, ["accuracy"], weighting=table.weighting)
    )


def test_a_class_of_little_weight_is_rare():
    x = np.random.default_rng(0).normal(size=100)
    frame = pd.DataFrame({"x": x, "y": np.arange(100) % 2, "w": np.where(np.arange(100) % 2, 1, 9)})
    table = Table.of(frame, "y", roles=ColumnRoles(weight="w"))
    plan = make_plan(table, FitOptions())
    assert plan.shares == pytest.approx((0.9**0.5, 0.1**0.5))
    assert any("has 10.0% of the rows, weighed by 'w':" in note for note in plan.notes)
    assert not make_plan(replace(table, weighting=None), FitOptions()).shares
    by_classes = make_plan(table, FitOptions(space="cash"))
    assert "10.0% of the rows, weighed by 'w'." in by_classes.notes[0]


def test_the_weights_are_named_where_scores_are_explained():
    _, table = two_truths()
    assert Protocol(("accuracy",)).describe(table).endswith("on 400 rows, weighed by 'w'")
