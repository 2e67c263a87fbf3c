"""Estimators that learn step by step stop by rows that they do not learn from."""

import numpy as np
import pytest

from foretune.automl.estimators.fitted_pipeline import refit
from foretune.automl.estimators.stepped import StepWatch, best_common_step
from foretune.tables import Task
from tests.automl.samples import mixed_table, table_with_texts

PREPARED = {"imputer": "median", "encoder": "ordinal", "scaler": "none", "reducer": "none"}
STEPPED = {
    "lightgbm": {
        "learning_rate": 0.1,
        "num_leaves": 8,
        "min_child_samples": 5,
        "colsample": 0.8,
        "subsample": 0.8,
        "l2": 0.1,
    },
    "hist_boosting": {
        "learning_rate": 0.1,
        "max_leaf_nodes": 8,
        "min_samples_leaf": 5,
        "l2": 0.1,
    },
}


def config_of(estimator):
    params = {f"estimator:{estimator}:{name}": of for name, of in STEPPED[estimator].items()}
    return {**PREPARED, "estimator": estimator, **params}


def predict(member, table):
    if table.task is Task.REGRESSION:
        return member.predict(table.x)
    return member.probabilities(table.x, len(table.classes))


@pytest.mark.parametrize("task", Task)
@pytest.mark.parametrize("make", [mixed_table, table_with_texts])
@pytest.mark.parametrize("estimator", STEPPED)
def test_the_rows_of_validation_choose_the_steps(estimator, make, task):
    table = make(task)
    held = np.arange(0, len(table), 5)
    member = refit(config_of(estimator), table, seed=0, validation=held)
    assert member.steps == np.argmin(member.curve) + 1 <= len(member.curve) < 1000
    fixed = refit(
        config_of(estimator),
        table,
        seed=0,
        rows=np.setdiff1d(np.arange(len(table)), held),
        steps=member.steps,
    )
    assert (fixed.steps, fixed.curve) == (member.steps, ())
    np.testing.assert_allclose(predict(fixed, table), predict(member, table))
    np.testing.assert_allclose(predict(member.truncate(member.steps), table), predict(fixed, table))
    few = member.truncate(2)
    assert few.steps == 2
    np.testing.assert_allclose(
        predict(few, table),
        predict(refit(config_of(estimator), table, seed=0, rows=np.setdiff1d(
            np.arange(len(table)), held), steps=2), table),
    )  # fmt: skip


@pytest.mark.parametrize("estimator", STEPPED)
def test_without_judging_rows_some_of_the_rows_find_the_steps(estimator):
    table = mixed_table(Task.CLASSIFICATION)
    rare = np.r_[np.flatnonzero(table.y == 0)[:1], np.flatnonzero(table.y != 0)]
    member = refit(config_of(estimator), table, seed=0, rows=rare)
    assert member.steps
    assert member.known == (0, 1, 2)
    assert np.isfinite(predict(member, table)).all()


def test_a_number_of_an_earlier_version_is_kept():
    config = config_of("lightgbm") | {"estimator:lightgbm:n_estimators": 7}
    assert refit(config, mixed_table(Task.REGRESSION), seed=0).steps == 7


@pytest.mark.parametrize("estimator", STEPPED)
def test_rows_of_classes_that_are_not_learnt_judge_nothing(estimator):
    table = mixed_table(Task.CLASSIFICATION)
    lacking = np.flatnonzero(table.y == 0)
    learnt = np.flatnonzero(table.y != 0)
    both = np.r_[lacking, learnt[::4]]
    rows = np.setdiff1d(learnt, both)
    member = refit(config_of(estimator), table, seed=0, rows=rows, validation=both)
    alike = refit(config_of(estimator), table, seed=0, rows=rows, validation=learnt[::4])
    assert member.known == (1, 2)
    assert member.curve == alike.curve
    assert not refit(config_of(estimator), table, seed=0, rows=rows, validation=lacking).curve


def test_a_watch_waits_longer_after_more_steps():
    watch = StepWatch(patience=2, patience_share=0.5)
    told = [watch.is_over(loss) for loss in (3.0, 2.0, 2.5, 1.0, 1.5, 1.5, 1.5, 1.5, 1.5)]
    assert told == [False] * 8 + [True]
    assert watch.best == 4


def test_one_number_of_steps_for_all_folds():
    assert best_common_step([(3.0, 1.0, 2.0), (3.0, 2.0, 1.5, 1.2, 1.3)]) == 2
    assert best_common_step([(3.0, 1.0, 1.1), (3.0, 2.0, 1.5, 1.2, 1.3)]) == 4
