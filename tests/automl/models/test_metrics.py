from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics

from foretune.automl.metrics import (
    SCORERS,
    Predictions,
    by_shares,
    choose_classes,
    of_the_model,
    scorer,
)
from foretune.tables.target import Task
from tests.refusals import refuses


def classes(n_classes, seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, 80).astype(float)
    probabilities = np.round(rng.dirichlet(np.ones(n_classes), 80), 1) + 1e-3
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    return Predictions(y, probabilities.argmax(axis=1).astype(float), probabilities)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_classification_scores_are_those_of_scikit_learn(n_classes):
    given = classes(n_classes, seed=n_classes)
    certain = given.certain[:, 1] if n_classes == 2 else given.certain
    expected = {
        "accuracy": metrics.accuracy_score(given.y, given.predicted),
        "balanced_accuracy": metrics.balanced_accuracy_score(given.y, given.predicted),
        "log_loss": metrics.log_loss(given.y, given.certain),
        "auc": metrics.roc_auc_score(given.y, certain, multi_class="ovr"),
        "f1_macro": metrics.f1_score(given.y, given.predicted, average="macro"),
        "matthews": metrics.matthews_corrcoef(given.y, given.predicted),
        "brier": np.mean(np.sum((given.certain - np.eye(n_classes)[given.y.astype(int)]) ** 2, 1))
        / 2,
    }
    if n_classes == 2:
        expected["brier"] = metrics.brier_score_loss(given.y, certain)
    for name, value in expected.items():
        assert SCORERS[name].score(given) == pytest.approx(value)


def test_regression_scores_by_hand():
    given = Predictions(np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 5.0]))
    assert SCORERS["rmse"].score(given) == pytest.approx((4 / 3) ** 0.5)
    assert SCORERS["r2"].score(given) == pytest.approx(1 - 4 / 2)
    assert SCORERS["mae"].score(given) == pytest.approx(2 / 3)
    assert SCORERS["median_absolute_error"].score(given) == 0.0
    assert SCORERS["mape"].score(given) == pytest.approx(2 / 3 / 3)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_weighed_classification_scores_are_those_of_scikit_learn(n_classes):
    w = np.random.default_rng(9).exponential(size=80)
    given = replace(classes(n_classes, seed=n_classes), weights=w)
    truth = np.eye(n_classes)[given.y.astype(int)]
    areas = [metrics.roc_auc_score(truth[:, c], given.certain[:, c], sample_weight=w)
             for c in range(n_classes)]  # fmt: skip
    expected = {
        "accuracy": metrics.accuracy_score(given.y, given.predicted, sample_weight=w),
        "balanced_accuracy": metrics.balanced_accuracy_score(
            given.y, given.predicted, sample_weight=w
        ),
        "log_loss": metrics.log_loss(given.y, given.certain, sample_weight=w),
        "auc": np.mean(areas),
        "f1_macro": metrics.f1_score(given.y, given.predicted, average="macro", sample_weight=w),
        "matthews": metrics.matthews_corrcoef(given.y, given.predicted, sample_weight=w),
        "brier": np.average(np.sum((given.certain - truth) ** 2, 1), weights=w) / 2,
    }
    for name, value in expected.items():
        assert SCORERS[name].score(given) == pytest.approx(value), name


def test_weighed_regression_scores_are_those_of_scikit_learn():
    rng = np.random.default_rng(3)
    y, predicted, w = rng.normal(5.0, 1.0, 41), rng.normal(5.0, 1.0, 41), rng.exponential(size=41)
    given = Predictions(y, predicted, weights=w)
    expected = {
        "r2": metrics.r2_score,
        "rmse": metrics.root_mean_squared_error,
        "mae": metrics.mean_absolute_error,
        "median_absolute_error": metrics.median_absolute_error,
        "mape": metrics.mean_absolute_percentage_error,
    }
    for name, theirs in expected.items():
        assert SCORERS[name].score(given) == pytest.approx(theirs(y, predicted, sample_weight=w))


@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(1, 4)), min_size=2, max_size=20
    )
)
def test_a_row_of_weight_k_is_k_rows(rows):
    code, level, times = np.array(rows).T
    certain = np.stack([level + 1.0, 4.0 - level, np.full(len(rows), 2.0)], axis=1)
    certain /= certain.sum(axis=1, keepdims=True)
    weighed = Predictions(code * 1.0, certain.argmax(axis=1) * 1.0, certain, times * 1.0)
    repeated = Predictions(
        np.repeat(weighed.y, times), np.repeat(weighed.predicted, times), certain.repeat(times, 0)
    )
    for each in SCORERS.values():
        if each.task is Task.CLASSIFICATION and each.is_defined(weighed.y):
            assert each.score(weighed) == pytest.approx(each.score(repeated)), each.metric.name
    numbers = Predictions(code + 1.0, level * 1.0, weights=times * 1.0)
    repeated = Predictions(np.repeat(numbers.y, times), np.repeat(numbers.predicted, times))
    for each in SCORERS.values():
        if each.task is Task.REGRESSION and each.is_defined(numbers.y):
            assert each.score(numbers) == pytest.approx(each.score(repeated)), each.metric.name


def test_probabilities_that_are_no_numbers_have_no_area():
    certain = np.array([[0.5, 0.5], [np.nan, np.nan], [0.2, 0.8]])
    given = Predictions(np.array([0.0, 1.0, 1.0]), np.zeros(3), certain)
    assert np.isnan(SCORERS["auc"].score(given))


def test_classes_by_shares_are_weighed_as_well():
    certain = np.array([[0.6, 0.4], [0.6, 0.4], [0.9, 0.1]])
    given = Predictions(np.array([1.0, 0.0, 0.0]), np.zeros(3), certain, np.array([5.0, 1.0, 2.0]))
    assert by_shares(SCORERS["accuracy"], (0.8, 0.2)).score(given) == pytest.approx(7 / 8)


@pytest.mark.parametrize("name", ["r2", "rmse", "mae", "median_absolute_error", "mape"])
@pytest.mark.parametrize("weights", [None, np.ones(5)])
def test_numbers_that_are_none_have_no_score(name, weights):
    y = np.arange(1.0, 6.0)
    given = Predictions(y, np.where(y == 3.0, np.nan, y), weights=weights)
    assert np.isnan(SCORERS[name].score(given))


def test_shares_of_a_target_of_zero_are_those_of_scikit_learn():
    y, predicted = np.array([0.0, 2.0]), np.array([1.0, 1.0])
    expected = metrics.mean_absolute_percentage_error(y, predicted)
    assert SCORERS["mape"].score(Predictions(y, predicted)) == pytest.approx(expected)


@pytest.mark.parametrize("predicted", [[1.0, 1.0, 1.0], [0.0, 2.0, 2.0]])
def test_classes_that_were_only_predicted_and_constant_predictions(predicted):
    y = np.array([0.0, 1.0, 1.0])
    given = Predictions(y, np.array(predicted))
    macro = metrics.f1_score(y, predicted, average="macro", zero_division=0.0)
    assert SCORERS["f1_macro"].score(given) == pytest.approx(macro)
    assert SCORERS["matthews"].score(given) == pytest.approx(
        metrics.matthews_corrcoef(y, predicted)
    )


def test_classes_that_are_not_held_out_do_not_count():
    given = Predictions(np.array([0.0, 0.0]), np.array([0.0, 2.0]), np.full((2, 3), 1 / 3))
    assert SCORERS["balanced_accuracy"].score(given) == 0.5
    assert np.isnan(SCORERS["auc"].score(given))


def test_a_probability_of_zero_is_a_finite_loss():
    given = Predictions(np.array([0.0]), np.array([1.0]), np.array([[0.0, 1.0]]))
    assert SCORERS["log_loss"].score(given) == pytest.approx(-np.log(1e-15))


def test_metrics_belong_to_a_task():
    assert scorer("r2", Task.REGRESSION).metric.name == "r2"
    with refuses("unknown-metric", value="accuracy"):
        scorer("accuracy", Task.REGRESSION)


def test_equal_targets_leave_nothing_to_compare():
    # Their mean is not exactly 0.1, so that their spread is a rounding error above zero.
    given = Predictions(np.full(12, 0.1), np.full(12, 0.2))
    assert np.sum((given.y - given.y.mean()) ** 2) > 0
    assert np.isnan(SCORERS["r2"].score(given))
    undefined = {name for name, each in SCORERS.items() if not each.is_defined(given.y)}
    assert undefined == {"r2", "auc", "matthews"}
    assert all(each.is_defined(np.array([0.0, 1.0])) for each in SCORERS.values())


def test_classes_by_shares():
    certain = np.array([[0.9, 0.1], [0.96, 0.04]])
    assert choose_classes(certain, ()).tolist() == [0.0, 0.0]
    assert choose_classes(certain, (0.95, 0.05)).tolist() == [1.0, 0.0]
    given = Predictions(np.array([1.0, 0.0]), np.zeros(2), certain)
    found = by_shares(SCORERS["accuracy"], (0.95, 0.05))
    assert (SCORERS["accuracy"].score(given), found.score(given)) == (0.5, 1.0)
    assert found.metric.name == "accuracy_by_shares"
    assert found.needs_probabilities


def test_people_are_told_what_the_model_chooses():
    values = {"log_loss": 0.1, "accuracy": 0.99, "accuracy_by_shares": 0.9, "auc": 0.8}
    assert of_the_model(values, ()) == values
    told = of_the_model(values, (0.95, 0.05))
    assert told == {"log_loss": 0.1, "accuracy": 0.9, "auc": 0.8}
    # Trials of before have no such value: nothing is said instead of something else.
    assert of_the_model({"log_loss": 0.1, "accuracy": 0.99}, (0.95, 0.05)) == {"log_loss": 0.1}
