"""Callbacks with the libraries that they are for."""

import os
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from sklearn.datasets import make_classification

from foretune.integrations import keras_callback, lightgbm_callback, xgboost_callback
from foretune.run.reports import DirectLine, Report, TrialStart
from foretune.run.running_trial import RunningTrial
from tests.refusals import refuses

X, Y = make_classification(200, 5, random_state=0)
STOP_AT = 4


@pytest.fixture
def reports() -> list[Report]:
    return []


@pytest.fixture
def trial(reports: list[Report]) -> RunningTrial:
    """A trial that is asked to stop at its fourth report."""

    def listen(key: int, new: Sequence[Report]) -> bool:
        reports.extend(new)
        return len(reports) == STOP_AT

    return RunningTrial(TrialStart(0), DirectLine(0, listen), lambda: 0.0)


@pytest.fixture
def lightgbm_train() -> Callable:
    lightgbm = pytest.importorskip("lightgbm")
    data = lightgbm.Dataset(X, Y, free_raw_data=False)
    sets = [data, data.create_valid(X[:50], Y[:50])]
    params = {"objective": "binary", "verbose": -1, "metric": ["auc", "binary_logloss"]}

    def train(callback, rounds=10, **options):
        record: dict = {}
        callbacks = [lightgbm.record_evaluation(record), callback]
        names = ["train", "valid"]
        options = {"valid_sets": sets, "valid_names": names} | options
        return lightgbm.train(params, data, rounds, callbacks=callbacks, **options), record

    return train


def test_lightgbm_reports_each_round_and_stops(lightgbm_train, trial, reports):
    booster, record = lightgbm_train(lightgbm_callback(trial))
    assert [report.step for report in reports] == [1, 2, 3, 4]
    assert [report.value for report in reports] == record["valid"]["binary_logloss"]
    assert booster.num_trees() == STOP_AT
    assert booster.best_score["valid"]["binary_logloss"] == reports[-1].value


def test_lightgbm_reports_the_metric_and_the_data_that_are_named(lightgbm_train, trial, reports):
    _, record = lightgbm_train(lightgbm_callback(trial, "auc", "train"), rounds=2)
    assert [report.value for report in reports] == record["train"]["auc"]


def test_lightgbm_counts_on_from_an_earlier_model(lightgbm_train, trial, reports):
    booster, _ = lightgbm_train(lambda env: None, rounds=3)
    lightgbm_train(lightgbm_callback(trial), rounds=2, init_model=booster)
    assert [report.step for report in reports] == [4, 5]


def test_lightgbm_without_an_evaluation_is_a_mistake(lightgbm_train, trial):
    with refuses("no-evaluation", value="f1"):
        lightgbm_train(lightgbm_callback(trial, "f1"))
    with refuses("no-evaluation"):
        lightgbm_train(lightgbm_callback(trial), valid_sets=None, valid_names=None)


@pytest.mark.filterwarnings("ignore:The argument 'eval_set'")
def test_estimators_of_lightgbm_take_the_callback(trial, reports):
    lightgbm = pytest.importorskip("lightgbm")
    model = lightgbm.LGBMClassifier(n_estimators=10, verbose=-1)
    model.fit(X, Y, eval_set=[(X[:50], Y[:50])], callbacks=[lightgbm_callback(trial)])
    assert len(reports) == model.booster_.num_trees() == STOP_AT


def test_xgboost_reports_each_round_and_stops(trial, reports):
    xgboost = pytest.importorskip("xgboost")
    data, record = xgboost.DMatrix(X, Y), {}
    params = {"objective": "binary:logistic", "eval_metric": ["auc", "logloss"], "nthread": 1}
    options = {"evals": [(data, "train")], "evals_result": record, "verbose_eval": False}
    booster = xgboost.train(params, data, 10, callbacks=[xgboost_callback(trial)], **options)
    assert [report.step for report in reports] == [1, 2, 3, 4]
    assert [report.value for report in reports] == record["train"]["logloss"]
    assert booster.num_boosted_rounds() == STOP_AT


def test_xgboost_counts_on_from_an_earlier_model(trial, reports):
    xgboost = pytest.importorskip("xgboost")
    data, params = xgboost.DMatrix(X, Y), {"objective": "binary:logistic", "nthread": 1}
    booster = xgboost.train(params, data, 3)
    options = {"evals": [(data, "train")], "verbose_eval": False, "xgb_model": booster}
    callbacks = [xgboost_callback(trial, "logloss")]
    xgboost.train(params, data, 2, callbacks=callbacks, **options)
    assert [report.step for report in reports] == [4, 5]


def test_xgboost_reports_the_means_of_cross_validation(trial, reports):
    xgboost = pytest.importorskip("xgboost")
    data, params = xgboost.DMatrix(X, Y), {"objective": "binary:logistic", "nthread": 1}
    table = xgboost.cv(params, data, 2, nfold=2, callbacks=[xgboost_callback(trial, "logloss")])
    assert [report.value for report in reports] == table["test-logloss-mean"].tolist()


class Model:
    """A model that trains as Keras models do."""

    stop_training = False

    def fit(self, losses: list[float], callback) -> int:
        callback.set_model(self)
        callback.set_params({"epochs": len(losses)})
        callback.on_train_begin()
        for epoch, loss in enumerate(losses):
            callback.on_epoch_begin(epoch, logs={})
            callback.on_train_batch_end(0, logs={"loss": 0.0})
            callback.on_epoch_end(epoch, {"loss": 2 * loss, "val_loss": loss})
            if self.stop_training:
                break
        callback.on_train_end()
        return epoch + 1


def test_a_loop_with_callbacks_of_keras_reports_each_epoch_and_stops(trial, reports):
    losses = [0.9, 0.8, 0.7, 0.6, 0.5, 0.4]
    assert Model().fit(losses, keras_callback(trial)) == STOP_AT
    assert [(report.step, report.value) for report in reports] == [*enumerate(losses[:4], 1)]


def test_a_metric_that_is_not_in_the_logs_is_a_mistake(trial):
    with refuses("no-evaluation", value="val_auc"):
        Model().fit([0.9], keras_callback(trial, "val_auc"))
    with pytest.raises(AttributeError):
        _ = keras_callback(trial).weights


def test_keras_itself_takes_the_callback(trial, reports):
    os.environ.setdefault("KERAS_BACKEND", "jax")
    keras = pytest.importorskip("keras")
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile(loss="mse", run_eagerly=True)
    options = {"epochs": 9, "verbose": 0, "validation_data": (X[:9], Y[:9])}
    y = Y.astype(np.float32)
    history = model.fit(X, y, callbacks=[keras_callback(trial)], **options)
    assert [report.value for report in reports] == history.history["val_loss"]
    assert len(reports) == STOP_AT
