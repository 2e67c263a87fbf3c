"""The blend of all trials, and the losses of many blends at once."""

import numpy as np
import pytest

from foretune.automl.final_model.bagged_blend import BlendLimits, ScoredRows, bagged_blend
from foretune.automl.final_model.row_losses import RowLosses
from foretune.automl.metrics import Predictions, scorer
from foretune.tables.target import Task

RNG = np.random.default_rng(3)
FOLDS = (30, 20, 25)
N = sum(FOLDS)
WEIGHTS = RNG.uniform(0.5, 2.0, N)


def _regression(models=6):
    y = RNG.normal(size=N) + 3.0
    return y, [(y + RNG.normal(size=N) * (0.3 + 0.1 * each))[:, None] for each in range(models)]


def _classification(models=6):
    y = RNG.integers(0, 3, N).astype(float)
    found = []
    for _ in range(models):
        certain = np.exp(2.0 * np.eye(3)[y.astype(int)] + RNG.normal(size=(N, 3)))
        found.append(certain / certain.sum(axis=1, keepdims=True))
    return y, found


def _rows(y, metric="r2"):
    return ScoredRows(y, metric, Task.REGRESSION, FOLDS)


def _by_folds(metric, task, mean, y, weights):
    """The mean over folds, by the metric itself."""
    each, scores, targets, start = scorer(metric, task), [], [], 0
    for size in FOLDS:
        part = slice(start, start + size)
        start += size
        of = None if weights is None else weights[part]
        if task is Task.REGRESSION:
            given = Predictions(y[part], mean[part, 0], weights=of)
        else:
            given = Predictions(y[part], mean[part].argmax(axis=1), mean[part], of)
        scores.append(each.score(given))
        targets.append(y[part])
    return each.over_folds(scores, targets)


@pytest.mark.parametrize("weights", [None, WEIGHTS])
@pytest.mark.parametrize("metric", ["log_loss", "r2", "rmse", "mae", "mape"])
def test_losses_are_those_of_the_metric(metric, weights) -> None:
    task = Task.CLASSIFICATION if metric == "log_loss" else Task.REGRESSION
    y, predictions = _classification() if metric == "log_loss" else _regression()
    losses = RowLosses.of(predictions, y, metric, FOLDS, weights)
    shares = RNG.dirichlet(np.ones(6))
    mean = sum(share * each for share, each in zip(shares, predictions, strict=True))
    expected = _by_folds(metric, task, mean, y, weights)
    [found] = losses.losses((shares @ losses.numbers)[None])
    assert (1.0 - found if metric == "r2" else found) == pytest.approx(expected)
    parts = losses.row_losses(shares)
    if metric != "rmse":
        assert parts.mean() == pytest.approx(found)
    added = losses.after_adding(losses.numbers[0], 1.0)
    halves = [_by_folds(metric, task, (predictions[0] + p) / 2, y, weights) for p in predictions]
    assert (1.0 - added if metric == "r2" else added) == pytest.approx(halves)


def test_a_fold_of_equal_targets_does_not_count() -> None:
    y, predictions = _regression()
    y[: FOLDS[0]] = 1.0
    losses = RowLosses.of(predictions, y, "r2", FOLDS, None)
    expected = _by_folds("r2", Task.REGRESSION, predictions[0], y, None)
    assert 1.0 - losses.losses(losses.numbers[:1])[0] == pytest.approx(expected)


@pytest.mark.parametrize("metric", ["log_loss", "r2", "accuracy"])
def test_a_blend_is_better_than_its_best_and_has_the_score_that_it_says(metric) -> None:
    task = Task.REGRESSION if metric == "r2" else Task.CLASSIFICATION
    y, predictions = _regression() if metric == "r2" else _classification()
    found = bagged_blend(predictions, ScoredRows(y, metric, task, FOLDS), BlendLimits(6))
    mean = sum(w * each for w, each in zip(found.weights, predictions, strict=True))
    assert found.weights.sum() == pytest.approx(1.0)
    assert found.score == pytest.approx(_by_folds(metric, task, mean, y, None))
    sign = scorer(metric, task).metric.sign
    best = min(sign * _by_folds(metric, task, each, y, None) for each in predictions)
    assert sign * found.score <= best


def test_copies_take_one_place() -> None:
    y, predictions = _regression(3)
    copies = [predictions[0], predictions[0] + 1e-6, predictions[0] - 1e-6, *predictions[1:]]
    found = bagged_blend(copies, _rows(y, "rmse"), BlendLimits(3))
    assert found.weights[1] == found.weights[2] == 0.0
    assert np.count_nonzero(found.weights) == 3


def test_a_blend_keeps_its_limits() -> None:
    y, predictions = _regression()
    few = bagged_blend(predictions, _rows(y), BlendLimits(2))
    assert np.count_nonzero(few.weights) == 2
    limits = BlendLimits(6, [1.0, 1.0, 5.0, 1.0, 1.0, 1.0], 3.0)
    cheap = bagged_blend(predictions, _rows(y), limits)
    assert np.array(limits.costs)[cheap.weights > 0].sum() <= 3.0
    dear = BlendLimits(6, [9.0] * 6, 3.0)
    one = bagged_blend(predictions, _rows(y), dear)
    assert np.count_nonzero(one.weights) == 1


def test_predictions_that_are_no_numbers_are_never_chosen() -> None:
    y, predictions = _regression()
    predictions[2] = np.full_like(predictions[2], 1e100)
    found = bagged_blend(predictions, _rows(y), BlendLimits(6))
    assert found.weights[2] == 0.0


def test_a_blend_stays_unless_a_new_one_is_clearly_better() -> None:
    y, predictions = _regression()
    noise = [each + 1e-3 * RNG.normal(size=each.shape) for each in predictions[:2]]
    four = [*predictions[:2], *noise]
    old = bagged_blend(four, _rows(y), BlendLimits(4), among=[0, 1]).weights
    same = bagged_blend(four, _rows(y), BlendLimits(4), incumbent=old, among=[2, 3])
    assert same.weights.tolist() == old.tolist()
    poor = np.eye(6)[5]
    better = bagged_blend(predictions, _rows(y), BlendLimits(6), incumbent=poor)
    assert better.weights[5] < 1.0
    early = bagged_blend(predictions, _rows(y), BlendLimits(6), among=[1, 4])
    assert np.flatnonzero(early.weights).tolist() in ([1, 4], [1])
