import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretune.automl.final_model.greedy_blend import blend
from foretune.automl.metrics import Predictions, scorer
from foretune.tables.target import Task
from tests.refusals import refuses


def numbers(*models):
    return np.array(models, dtype=float)[:, :, None]


def test_by_hand_two_models_that_err_in_opposite_ways():
    # Alone: errors +0.8, +1 and -1. The mean of the last two has none.
    y = np.array([1.0, 2.0, 3.0])
    found = blend(numbers(y + 0.8, y + 1, y - 1), y, "rmse", Task.REGRESSION, most=2)
    # Best alone is the first; with the third, 4 parts against 5 cancel: 5 * 0.8 = 4 * 1.
    assert found.weights == pytest.approx([5 / 9, 0, 4 / 9])
    assert found.score == pytest.approx(0.0, abs=1e-12)


def test_by_hand_a_model_counts_double():
    # Errors 1 and -2: two parts of the first, one of the second.
    y = np.array([0.0, 5.0])
    found = blend(numbers(y + 1, y - 2), y, "rmse", Task.REGRESSION, most=2)
    assert found.weights == pytest.approx([2 / 3, 1 / 3])


def test_by_hand_sorted_beginning_of_classes():
    # Rows of classes 0, 1, 1. Each model is wrong on one row, all three together on none.
    y = np.array([0.0, 1.0, 1.0])
    share = np.array([[0.4, 0.9, 0.9], [0.9, 0.4, 0.9], [0.9, 0.9, 0.4]])
    right = np.where(y == 0, share, 1 - share)
    models = np.stack([right, 1 - right], axis=2)
    found = blend(models, y, "accuracy", Task.CLASSIFICATION, most=3)
    assert found.score == 1.0
    # The first two do it alone: (0.4 + 0.9) / 2 on rows 0 and 1.
    assert found.weights == pytest.approx([0.5, 0.5, 0])


def test_predictions_in_single_precision_are_blended_in_double():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 60).astype(float)
    given = [np.exp(np.eye(3)[y.astype(int)] + rng.normal(size=(60, 3))) for _ in range(5)]
    single = [(each / each.sum(axis=1, keepdims=True)).astype(np.float32) for each in given]
    double = np.stack(single).astype(np.float64)
    found = blend(single, y, "log_loss", Task.CLASSIFICATION, most=3)
    expected = blend(double, y, "log_loss", Task.CLASSIFICATION, most=3)
    assert found.weights.tolist() == expected.weights.tolist()
    assert found.score == expected.score


def test_a_model_whose_score_is_beyond_any_float_has_no_part():
    y = np.array([1.0, 2.0, 3.0])
    with np.errstate(over="ignore"):
        found = blend(numbers(y + 0.1, y + 1e200), y, "rmse", Task.REGRESSION, most=2)
    assert found.weights.tolist() == [1.0, 0.0]


def test_ties_go_to_the_earlier_model():
    y = np.array([0.0, 1.0, 4.0])
    found = blend(numbers(y + 1, y + 1, y + 1), y, "rmse", Task.REGRESSION, most=2)
    assert found.weights.tolist() == [1.0, 0.0, 0.0]
    assert found.score == 1.0


@pytest.mark.parametrize("metric", ["accuracy", "balanced_accuracy", "log_loss", "auc"])
@settings(max_examples=25)
@given(seed=st.integers(0, 10**6), most=st.integers(1, 5))
def test_a_blend_is_never_worse_than_its_best_model(metric, seed, most):
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(3), rng.integers(0, 3, 12)]).astype(float)
    models = rng.dirichlet(np.ones(3), size=(6, len(y)))
    chosen = scorer(metric, Task.CLASSIFICATION)

    def score(mean):
        return chosen.score(Predictions(y, mean.argmax(axis=1).astype(float), mean))

    models = np.stack(sorted(models, key=score, reverse=metric != "log_loss"))
    found = blend(models, y, metric, Task.CLASSIFICATION, most=most, rounds=8)
    assert found.weights.sum() == pytest.approx(1.0)
    assert 1 <= np.count_nonzero(found.weights) <= most
    assert found.weights[0] > 0
    mean = np.tensordot(found.weights, models, axes=1)
    if metric in ("log_loss", "auc"):
        assert score(mean) == pytest.approx(found.score)
    sign = 1 if metric == "log_loss" else -1
    assert sign * found.score <= min(sign * score(each) for each in models) + 1e-12


@pytest.mark.parametrize("metric", ["r2", "rmse", "median_absolute_error"])
def test_folds_are_scored_apart_as_trials_are(metric):
    """Each fold has its own level, which pooled rows would reward a model for knowing."""
    rng = np.random.default_rng(0)
    y = np.concatenate([rng.normal(size=20), 50.0 + rng.normal(size=12)])
    models = numbers(*(y + rng.normal(size=len(y)) for _ in range(4)))
    found = blend(models, y, metric, Task.REGRESSION, most=3, folds=(20, 12))
    mean = np.tensordot(found.weights, models, axes=1)[:, 0]
    score = scorer(metric, Task.REGRESSION).score
    parts = (slice(0, 20), slice(20, 32))
    apart = np.mean([score(Predictions(y[part], mean[part])) for part in parts])
    assert found.score == pytest.approx(apart)
    assert found.score != pytest.approx(score(Predictions(y, mean)), rel=1e-3)


def test_a_fold_that_does_not_define_the_metric_does_not_count():
    y = np.array([1.0, 1.0, 2.0, 3.0])
    errors = np.array([[9, 9, 0.5, 0], [0, 0, 2, 2]])
    models = numbers(*(y + errors))
    found = blend(models, y, "r2", Task.REGRESSION, most=1, folds=(2, 2))
    assert found.score == pytest.approx(1 - 0.25 / 0.5)


def test_mistakes():
    y = np.zeros(3)
    for models, most in ((numbers(y)[:0], 1), (numbers(y), 0)):
        with refuses("empty-blend"):
            blend(models, y, "rmse", Task.REGRESSION, most=most)
    with refuses("unknown-metric"):
        blend(numbers(y), y, "auc", Task.REGRESSION, most=1)
