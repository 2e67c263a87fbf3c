import numpy as np
import pandas as pd
import pytest

from foretune.automl.estimators.fitted_pipeline import Member, refit
from foretune.automl.evaluation import Protocol, evaluate
from foretune.automl.final_model.model import Model
from foretune.automl.spaces import SPACES, load_shipped_space
from foretune.tables.table import Table
from foretune.tables.target import Task
from tests.automl.samples import mixed_table, with_few_trees
from tests.refusals import refuses

METRICS = {
    Task.CLASSIFICATION: ("accuracy", "log_loss", "auc"),
    Task.REGRESSION: ("r2", "rmse"),
}
CASES = [(name, algorithm) for name, space in SPACES.items() for algorithm in space.algorithms()]


@pytest.mark.parametrize(("name", "algorithm"), CASES)
def test_every_configuration_can_be_fitted_to_mixed_columns(name, algorithm):
    chosen = load_shipped_space(name)
    table = mixed_table(chosen.task)
    metrics = ("accuracy",) if name == "cash" else METRICS[chosen.task]
    protocol = Protocol(metrics, cross_validated_below=0)
    space = chosen.build([algorithm])
    extremes = space.from_unit(np.array([np.zeros(space.width), np.ones(space.width)])).dicts()
    for config in [*space.sample(2, seed=3, how="sobol").dicts(), *extremes]:
        score = evaluate(with_few_trees(config), table, protocol)
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
        [config] = load_shipped_space(name).build(["rf"]).sample(1, seed=0).dicts()
        protocol = Protocol(("accuracy",), cross_validated_below=0)
        score = evaluate(with_few_trees(config), part, protocol)
        assert 0 <= score.values["accuracy"] <= 1


@pytest.mark.parametrize("task", list(Task))
def test_a_score_repeats_itself_and_the_seed_matters(task):
    table = mixed_table(task)
    name = {Task.CLASSIFICATION: "pipeline-classification", Task.REGRESSION: "pipeline-regression"}
    [config] = load_shipped_space(name[task]).build(["extra_trees"]).sample(1, seed=0).dicts()
    first, again, other = (
        evaluate(with_few_trees(config), table, Protocol(METRICS[task], folds=2, seed=seed))
        for seed in (0, 0, 1)
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
    [config] = (
        load_shipped_space("pipeline-classification").build(["lightgbm"]).sample(1, seed=0).dicts()
    )
    protocol = Protocol(("log_loss", "accuracy"), folds=2)
    score = evaluate(with_few_trees(config), few, protocol)
    assert np.isfinite(score.values["log_loss"])


@pytest.mark.parametrize(
    ("space", "algorithm"),
    [
        (space, algorithm)
        for space in ("pipeline-classification", "cash")
        for algorithm in load_shipped_space(space).algorithms()
        if algorithm != "svm"  # It calibrates itself, for which the other fold has too few rows.
    ],
)
def test_a_class_with_a_single_row_is_scored(space, algorithm):
    """In one fold a single class is met, which some libraries refuse or give two columns for."""
    x = np.random.default_rng(0).normal(size=60)
    table = Table.of(pd.DataFrame({"x": x, "y": ["u"] * 59 + ["odd"]}), "y")
    [config] = load_shipped_space(space).build([algorithm]).defaults().dicts()
    protocol = Protocol(("log_loss", "accuracy"), folds=2)
    score = evaluate(with_few_trees(config), table, protocol)
    assert score.values["accuracy"] > 0.9
    assert np.isfinite(score.values["log_loss"])


def test_a_better_configuration_scores_better():
    table = mixed_table(Task.CLASSIFICATION, n=300)
    space = load_shipped_space("cash").build(["decision_tree"])
    prefix = "algorithm:decision_tree:"
    good = {"max_features": 1.0, "max_depth": 5, "min_samples_leaf": 2, "min_samples_split": 2}
    bad = {"max_features": 0.001, "max_depth": 1, "min_samples_leaf": 512, "min_samples_split": 512}
    scores = [
        evaluate(
            {"algorithm": "decision_tree", **{prefix + key: value for key, value in each.items()}},
            table,
            Protocol(("accuracy",), folds=2),
        ).values["accuracy"]
        for each in (good, bad)
    ]
    assert space.structure.kind == "cash"
    assert scores[0] > 0.8 > 0.6 > scores[1]


def test_mistakes():
    table = mixed_table(Task.REGRESSION)
    with refuses("unknown-metric"):
        evaluate({}, table, Protocol(("accuracy",)))
    with refuses("config-of-no-shipped-space"):
        evaluate({"lr": 1}, table, Protocol(("r2",)))
    with refuses("empty-protocol"):
        Protocol(("r2",), folds=1)


def few_that_differ(task, n, few=1):
    """A table with the same target in all rows but the first few."""
    x = np.random.default_rng(0).normal(size=(n, 2))
    y = np.zeros(n)
    y[:few] = np.arange(few) + 1.0
    return Table.of(pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "y": y}), "y", task=task)


@pytest.mark.parametrize(
    ("task", "metric"), [(Task.REGRESSION, "r2"), (Task.CLASSIFICATION, "auc")]
)
def test_folds_that_do_not_define_a_metric_do_not_count(task, metric):
    table = few_that_differ(task, 60, few=3 if task is Task.REGRESSION else 1)
    [config] = load_shipped_space(f"pipeline-{task}").build(["knn"]).sample(1, seed=0).dicts()
    score = evaluate(config, table, Protocol((metric,)))
    defined = np.array(score.folds[metric])[np.isfinite(score.folds[metric])]
    assert 0 < len(defined) < 5
    assert score.values[metric] == pytest.approx(defined.mean())


class NoNumbers:
    """A fitted pipeline that predicts no numbers."""

    def predict(self, x):
        return np.full(len(x), np.nan)


def test_predictions_that_are_no_numbers_are_no_score():
    table = mixed_table(Task.REGRESSION)
    [config] = load_shipped_space("pipeline-regression").build(["knn"]).sample(1, seed=0).dicts()
    score = evaluate(config, table, Protocol(("r2",)), fit=lambda *_, **__: Member({}, NoNumbers()))
    assert np.isnan(score.values["r2"])


def test_a_metric_that_no_fold_defines_is_left_out_or_refused():
    table = few_that_differ(Task.CLASSIFICATION, 60)
    # The third that is held out lacks the row that differs.
    protocol = Protocol(("auc", "accuracy"), cross_validated_below=0, seed=0)
    assert len(set(table.y[protocol.splits(table)[0][1]])) == 1
    with refuses("metric-of-equal-targets", value="auc"):
        evaluate({}, table, protocol)
    [config] = (
        load_shipped_space("pipeline-classification").build(["knn"]).sample(1, seed=0).dicts()
    )
    other = Protocol(("accuracy", "auc"), cross_validated_below=0, seed=0)
    assert set(evaluate(config, table, other).values) == {"accuracy"}


def test_classes_are_also_scored_as_the_model_chooses_them():
    rng = np.random.default_rng(0)
    y = (rng.random(300) < 0.1).astype(int)
    frame = pd.DataFrame({"a": rng.normal(size=300) + y, "b": rng.normal(size=300), "y": y})
    table = Table.of(frame, "y", task=Task.CLASSIFICATION)
    shares = (float(np.mean(y == 0)), float(np.mean(y == 1)))
    [config] = (
        load_shipped_space("pipeline-classification").build(["lda"]).sample(1, seed=0).dicts()
    )
    metrics = ("log_loss", "accuracy", "balanced_accuracy", "auc")
    plain = evaluate(config, table, Protocol(metrics), keep_predictions=True)
    score = evaluate(config, table, Protocol(metrics, shares=shares))
    # What is recorded under a metric's name is what it was, so that records can be compared.
    assert {name: score.values[name] for name in metrics} == plain.values
    assert set(score.values) - set(metrics) == {
        "accuracy_by_shares",
        "balanced_accuracy_by_shares",
    }
    model = Model.of(table, [refit(config, table, seed=0)], target="y", metric="x", shares=shares)
    right = model.choose_classes(plain.predictions) == table.y[plain.rows]
    assert score.values["accuracy_by_shares"] == pytest.approx(right.mean())
    assert score.values["accuracy_by_shares"] < score.values["accuracy"]
    assert score.values["balanced_accuracy_by_shares"] > score.values["balanced_accuracy"]
