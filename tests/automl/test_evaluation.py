import numpy as np
import pytest

from foretune.automl.datasets import Table, Task
from foretune.automl.evaluation import Protocol, evaluate
from foretune.automl.spaces import SPACES, shipped
from foretune.errors import SpaceError, UsageError
from tests.automl.tables import mixed_table

METRICS = {
    Task.CLASSIFICATION: ("accuracy", "log_loss", "auc"),
    Task.REGRESSION: ("r2", "rmse"),
}
CASES = [(name, algorithm) for name, space in SPACES.items() for algorithm in space.algorithms()]


@pytest.mark.parametrize(("name", "algorithm"), CASES)
def test_every_configuration_can_be_fitted_to_mixed_columns(name, algorithm):
    chosen = shipped(name)
    table = mixed_table(chosen.task)
    metrics = ("accuracy",) if name == "cash" else METRICS[chosen.task]
    protocol = Protocol(metrics, cross_validated_below=0)
    space = chosen.build([algorithm])
    extremes = space.from_unit(np.array([np.zeros(space.width), np.ones(space.width)])).dicts()
    for config in [*space.sample(2, seed=3, how="sobol").dicts(), *extremes]:
        score = evaluate(config, table, protocol)
        assert np.isfinite(list(score.values.values())).all(), config


@pytest.mark.parametrize("kind", ["numbers", "categories"])
def test_tables_of_one_kind_of_column(kind):
    table = mixed_table(Task.CLASSIFICATION)
    wanted = table.categorical if kind == "categories" else ~table.categorical
    columns = tuple(
        column
        for column in table.schema.columns
        if column.features and (column.kind == "category") == (kind == "categories")
    )
    part = Table(
        "part", table.task, type(table.schema)(columns), table.x[:, wanted], table.y, table.classes
    )
    for name in ("cash", "pipeline-classification"):
        [config] = shipped(name).build(["rf"]).sample(1, seed=0).dicts()
        score = evaluate(config, part, Protocol(("accuracy",), cross_validated_below=0))
        assert 0 <= score.values["accuracy"] <= 1


@pytest.mark.parametrize("task", list(Task))
def test_a_score_repeats_itself_and_the_seed_matters(task):
    table = mixed_table(task)
    name = {Task.CLASSIFICATION: "pipeline-classification", Task.REGRESSION: "pipeline-regression"}
    [config] = shipped(name[task]).build(["extra_trees"]).sample(1, seed=0).dicts()
    first, again, other = (
        evaluate(config, table, Protocol(METRICS[task], folds=2, seed=seed)) for seed in (0, 0, 1)
    )
    assert first.folds == again.folds
    assert first.folds != other.folds
    metric = METRICS[task][0]
    assert len(first.folds[metric]) == 2
    assert first.values[metric] == pytest.approx(np.mean(first.folds[metric]))
    assert first.seconds > 0


def test_small_tables_are_cross_validated_and_large_ones_held_out():
    table = mixed_table(Task.CLASSIFICATION)
    folds = Protocol(("accuracy",), folds=5, cross_validated_below=91).splits(table)
    assert len(folds) == 5
    held = np.concatenate([rows for _, rows in folds])
    assert sorted(held) == list(range(90))
    for learn, rows in folds:
        assert not set(learn) & set(rows)
        counts = np.bincount(table.y[rows].astype(int), minlength=3)
        assert np.abs(counts - np.bincount(table.y.astype(int)) / 5).max() <= 1
    protocol = Protocol(("accuracy",), cross_validated_below=90)
    [(learn, rows)] = protocol.splits(table)
    assert (len(learn), len(rows)) == (60, 30)
    assert "a third of 90 rows" in protocol.describe(table)


def test_a_class_that_a_fold_lacks_does_no_harm():
    table = mixed_table(Task.CLASSIFICATION)
    rows = np.concatenate([np.flatnonzero(table.y != 2), np.flatnonzero(table.y == 2)[:1]])
    few = table.rows(rows)
    [config] = shipped("pipeline-classification").build(["lightgbm"]).sample(1, seed=0).dicts()
    score = evaluate(config, few, Protocol(("log_loss", "accuracy"), folds=2))
    assert np.isfinite(score.values["log_loss"])


def test_a_better_configuration_scores_better():
    table = mixed_table(Task.CLASSIFICATION, n=300)
    space = shipped("cash").build(["decision_tree"])
    prefix = "algorithm:decision_tree:"
    good = {"max_features": 1.0, "max_depth": 5, "min_samples_leaf": 2, "min_samples_split": 2}
    bad = {"max_features": 0.001, "max_depth": 1, "min_samples_leaf": 512, "min_samples_split": 512}
    scores = [
        evaluate(
            {"algorithm": "decision_tree", **{prefix + key: value for key, value in each.items()}},
            table,
            Protocol(("accuracy",)),
        ).values["accuracy"]
        for each in (good, bad)
    ]
    assert space.structure.kind == "cash"
    assert scores[0] > 0.8 > 0.6 > scores[1]


def test_mistakes():
    table = mixed_table(Task.REGRESSION)
    with pytest.raises(UsageError, match="metric of a regression"):
        evaluate({}, table, Protocol(("accuracy",)))
    with pytest.raises(SpaceError, match="one of a shipped space"):
        evaluate({"lr": 1}, table, Protocol(("r2",)))
    with pytest.raises(UsageError, match="two folds and one metric"):
        Protocol(("r2",), folds=1)
