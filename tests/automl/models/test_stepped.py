"""Estimators that learn step by step stop by rows that they do not learn from."""

import numpy as np
import pandas as pd
import pytest

from foretune.automl.estimators.fitted_pipeline import refit
from foretune.automl.estimators.network_columns import NetworkColumns
from foretune.automl.estimators.network_layers import (
    NetworkShape,
    predict_outputs,
    run_backward,
    run_forward,
)
from foretune.automl.estimators.stepped import StepWatch, best_common_step
from foretune.numerics.lightgbm_text import check_text
from foretune.tables import Table, Task
from tests.automl.samples import mixed_table, table_with_texts

PREPARED = {"imputer": "median", "encoder": "ordinal", "scaler": "none", "reducer": "none"}
STEPPED = {
    "lightgbm": {
        "learning_rate": 0.3,
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


NETWORK = {"learning_rate_init": 0.01, "alpha": 0.1, "layers": 2, "units": 32}


def config_of(estimator):
    params = {**STEPPED, "mlp": NETWORK}[estimator]
    named = {f"estimator:{estimator}:{name}": value for name, value in params.items()}
    return {**PREPARED, "estimator": estimator, **named}


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
    assert member.steps == np.argmin(member.curve) + 1 <= len(member.curve)
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


@pytest.mark.parametrize("task", Task)
def test_a_network_learns_what_trees_of_one_split_cannot(task):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 2))
    smooth = np.sin(x[:, 0]) + x[:, 1] ** 2
    frame = pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "c": np.where(x[:, 0] > 0.5, "u", "v")})
    frame["y"] = smooth if task is Task.REGRESSION else np.where(smooth > 1.0, "yes", "no")
    frame.loc[::9, "a"] = np.nan
    table = Table.of(frame, "y", name="smooth", task=task)
    held = np.arange(0, 400, 4)
    member = refit(config_of("mlp"), table, seed=0, validation=held)
    again = refit(config_of("mlp"), table, seed=0, validation=held)
    np.testing.assert_array_equal(predict(again, table), predict(member, table))
    assert min(member.curve) < 0.3 * {Task.REGRESSION: 1.0, Task.CLASSIFICATION: 0.69}[task]
    assert member.truncate(1).steps == member.steps  # only the best epoch is kept


@pytest.mark.parametrize("waves", [0, 4])
def test_gradients_of_the_network_are_those_of_its_loss(waves):
    rng = np.random.default_rng(1)
    shape = NetworkShape(3, 2, units=5, layers=2, outputs=2, waves=waves)
    vector = (shape.draw(rng) + 0.1 * rng.normal(size=shape.size)).astype(np.float64)
    numbers, indicators, y = (rng.normal(size=(6, width)) for width in (3, 2, 2))

    def loss(at):
        outputs = predict_outputs(shape, shape.split(at), numbers, indicators)
        return 0.5 * ((outputs - y) ** 2).sum()

    gradient = np.zeros_like(vector)
    kept = run_forward(shape, shape.split(vector), numbers, indicators)
    run_backward(shape, shape.split(vector), kept, kept["outputs"] - y, shape.split(gradient))
    step = 1e-5
    steps = step * np.eye(len(vector))
    by_differences = [(loss(vector + each) - loss(vector - each)) / (2 * step) for each in steps]
    np.testing.assert_allclose(gradient, by_differences, atol=1e-4)


def test_numbers_far_away_are_bent_and_rare_categories_share_nothing():
    x = np.column_stack([np.r_[np.arange(99.0), 1e9], np.arange(100) % 60, np.full(100, 7.0)])
    x[5, 0] = np.nan
    columns = NetworkColumns.learn(x, codes=(1,))
    numbers, indicators = columns.transform(x)
    assert np.abs(numbers).max() <= 3.0
    assert numbers[5, 0] == 0.0
    assert (numbers[:, 1] == 0.0).all()  # a column of one value
    assert indicators.shape == (100, 1 + 50)
    assert indicators[5, 0] == 1.0
    unseen = columns.transform(np.array([[1.0, 999.0, 7.0]]))[1]
    assert not unseen.any()


@pytest.mark.parametrize("estimator", ["lightgbm"])
def test_a_category_that_tells_all_is_split_by_sets(estimator):
    rng = np.random.default_rng(0)
    level = rng.integers(12, size=240)
    frame = pd.DataFrame({"town": [f"town {each}" for each in level], "n": rng.normal(size=240)})
    frame["y"] = np.where(np.isin(level, [0, 3, 4, 7, 10]), "yes", "no")
    frame.loc[::10, "town"] = None
    table = Table.of(frame, "y", name="towns", task=Task.CLASSIFICATION)
    held = np.arange(0, 240, 4)
    config = config_of(estimator) | {"encoder": "one_hot", "encoder:one_hot:max_categories": 20}
    member = refit(config, table, seed=0, validation=held)
    text = member.pipeline[-1].booster_.model_to_string()
    assert "cat_threshold" in text
    check_text(text)
    for old, new in (
        ("cat_threshold=", "cat_threshold=-"),
        ("cat_boundaries=0", "cat_boundaries=1"),
    ):
        before, _, after = text.partition(old)
        spoilt = before + new + after[len(new) - len(old) :]  # of the same length
        with pytest.raises(ValueError):  # noqa: PT011
            check_text(spoilt)
