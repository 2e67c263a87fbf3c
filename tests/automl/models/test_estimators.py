import numpy as np
import pytest

from foretune.automl.estimators.fitted_pipeline import refit
from foretune.automl.evaluation import Protocol, evaluate
from foretune.automl.spaces import CASH, CLASSIFIERS, OPTIONAL, REGRESSORS, load_shipped_space
from foretune.tables.target import Task
from tests.automl.samples import mixed_table, with_few_trees

CASES = [
    *(("cash", name) for name in CASH),
    *(("pipeline-classification", name) for name in CLASSIFIERS),
    *(("pipeline-regression", name) for name in REGRESSORS),
]


@pytest.mark.parametrize(("space", "algorithm"), CASES)
def test_every_estimator_learns_from_gaps_and_categories(space, algorithm):
    if algorithm in OPTIONAL:
        pytest.importorskip(algorithm)
    chosen = load_shipped_space(space)
    table = mixed_table(chosen.task, n=60)
    assert np.isnan(table.x).any()
    assert table.categorical.any()
    config = with_few_trees(chosen.build([algorithm]).defaults().dicts()[0], 30)
    if "scaler" in config:
        config["scaler"] = "standard"
    member = refit(config, table, seed=0)
    predicted = member.predict(table.x)
    assert predicted.shape == (60,)
    # What it has seen, it knows better than the mean or the most frequent class does.
    if chosen.task is Task.REGRESSION:
        assert np.mean((predicted - table.y) ** 2) < np.var(table.y)
    else:
        share = np.bincount(table.y.astype(int)).max() / 60
        assert np.mean(predicted == table.y) >= share
        shares = member.probabilities(table.x, 3)
        np.testing.assert_allclose(shares.sum(axis=1), 1.0, rtol=1e-6)
        np.testing.assert_array_equal(predicted, refit(config, table, seed=0).predict(table.x))


def test_an_algorithm_without_probabilities_is_sure():
    table = mixed_table(Task.CLASSIFICATION, n=60)
    [config] = load_shipped_space("cash").build(["svc"]).defaults().dicts()
    member = refit(config, table, seed=0)
    shares = member.probabilities(table.x, 3)
    assert set(np.unique(shares)) == {0.0, 1.0}
    np.testing.assert_array_equal(shares.argmax(axis=1), member.predict(table.x))


def test_classes_that_some_rows_lack():
    table = mixed_table(Task.CLASSIFICATION, n=60)
    rows = np.flatnonzero(table.y != 1)
    [config] = load_shipped_space("cash").build(["gaussian_nb"]).defaults().dicts()
    member = refit(config, table, seed=0, rows=rows)
    assert member.known == (0, 2)
    assert set(member.predict(table.x)) <= {0.0, 2.0}
    assert (member.probabilities(table.x, 3)[:, 1] == 0).all()


@pytest.mark.parametrize("below", [0, 100])
@pytest.mark.parametrize(
    ("space", "algorithm", "metric"),
    [
        ("cash", "svc", "accuracy"),
        ("cash", "gaussian_nb", "accuracy"),
        ("pipeline-regression", "elastic_net", "rmse"),
    ],
)
def test_predictions_are_kept_on_request(space, algorithm, metric, below):
    chosen = load_shipped_space(space)
    table = mixed_table(chosen.task, n=60)
    [config] = chosen.build([algorithm]).defaults().dicts()
    protocol = Protocol((metric,), folds=3, cross_validated_below=below)
    plain = evaluate(config, table, protocol)
    kept = evaluate(config, table, protocol, keep_predictions=True)
    assert (plain.rows, plain.predictions) == (None, None)
    assert plain.folds == kept.folds
    held = [rows for _, rows in protocol.splits(table)]
    np.testing.assert_array_equal(kept.rows, np.concatenate(held))
    width = 3 if chosen.task is Task.CLASSIFICATION else 1
    assert kept.predictions.shape == (len(kept.rows), width)
    parts = np.split(np.arange(len(kept.rows)), np.cumsum([len(rows) for rows in held])[:-1])
    for rows, part, score in zip(held, parts, kept.folds[metric], strict=True):
        given = kept.predictions[part]
        if chosen.task is Task.CLASSIFICATION:
            assert np.mean(given.argmax(axis=1) == table.y[rows]) == pytest.approx(score)
        else:
            error = np.sqrt(np.mean((given[:, 0] - table.y[rows]) ** 2))
            assert error == pytest.approx(score)
