import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretune.automl.blend import blend
from foretune.automl.datasets import Task
from foretune.automl.scores import Predictions, scorer
from foretune.errors import UsageError


def numbers(*models):
    return np.array(models, dtype=float)[:, :, None]


def test_by_hand_two_models_that_err_in_opposite_ways():
    # Alone: errors +1 and -1 (rmse 1), and +0.8. The mean of the first two has none.
    y = np.array([1.0, 2.0, 3.0])
    found = blend(numbers(y + 1, y - 1, y + 0.8), y, "rmse", Task.REGRESSION, most=2)
    # Best alone is the third; with the second, 4 parts against 5 cancel: 5 * 0.8 = 4 * 1.
    assert found.weights == pytest.approx([0, 4 / 9, 5 / 9])
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
    found = blend(models, y, metric, Task.CLASSIFICATION, most=most, rounds=8)
    assert found.weights.sum() == pytest.approx(1.0)
    assert 1 <= np.count_nonzero(found.weights) <= most
    chosen = scorer(metric, Task.CLASSIFICATION)

    def score(mean):
        return chosen.score(Predictions(y, mean.argmax(axis=1).astype(float), mean))

    mean = np.tensordot(found.weights, models, axes=1)
    if metric in ("log_loss", "auc"):
        assert score(mean) == pytest.approx(found.score)
    sign = 1 if metric == "log_loss" else -1
    assert sign * found.score <= min(sign * score(each) for each in models) + 1e-12


def test_mistakes():
    y = np.zeros(3)
    for models, most in ((numbers(y)[:0], 1), (numbers(y), 0), (numbers(y + np.nan), 1)):
        with pytest.raises(UsageError, match="models with finite predictions"):
            blend(models, y, "rmse", Task.REGRESSION, most=most)
    with pytest.raises(UsageError, match="metric of a regression"):
        blend(numbers(y), y, "auc", Task.REGRESSION, most=1)
