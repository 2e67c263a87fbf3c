"""Pipelines that cannot differ in their scores have one form."""

import numpy as np
import pandas as pd
import pytest

from foretune.automl.equivalent_configs import TREES, PipelineEquivalence
from foretune.automl.evaluation import Protocol, evaluate
from foretune.automl.spaces import load_shipped_space
from foretune.methods.contracts import Target
from foretune.search import METHODS, Optimizer, Told
from foretune.tables.table import Table
from tests.automl.samples import with_few_trees

SPACE = load_shipped_space("pipeline-regression").build()
ROWS = 60


def table(*, categories: bool = False, missing: bool = False) -> Table:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(ROWS, 3))
    frame = pd.DataFrame(x, columns=["a", "b", "c"])
    frame["y"] = x[:, 0] + np.square(x[:, 1]) + 0.1 * rng.normal(size=ROWS)
    if missing:
        frame.loc[::7, "a"] = np.nan
    if categories:
        frame["kind"] = np.where(x[:, 2] > 0, "up", "down")
    return Table.of(frame, "y")


def forms(on: Table, *configs: dict) -> int:
    """How many different ones there are."""
    return len(set(PipelineEquivalence.on(on)(SPACE.encode(list(configs))).keys().tolist()))


def pipeline(estimator: str, **stages: str) -> dict:
    plain = {"imputer": "mean", "encoder": "ordinal", "scaler": "none", "reducer": "none"}
    return SPACE.encode([plain | stages | {"estimator": estimator}], fill_defaults=True).dicts()[0]


class TestForms:
    def test_an_imputer_matters_where_numbers_are_missing(self) -> None:
        both = pipeline("knn", imputer="mean"), pipeline("knn", imputer="median")
        assert forms(table(), *both) == 1
        assert forms(table(missing=True), *both) == 2

    def test_an_encoder_matters_where_there_are_categories(self) -> None:
        both = pipeline("knn", encoder="one_hot"), pipeline("knn", encoder="target")
        assert forms(table(), *both) == 1
        assert forms(table(categories=True), *both) == 2

    def test_a_scaler_matters_to_what_is_no_tree_and_before_a_reducer(self) -> None:
        assert forms(table(), pipeline("rf"), pipeline("rf", scaler="robust")) == 1
        assert forms(table(), pipeline("knn"), pipeline("knn", scaler="robust")) == 2
        reduced = [pipeline("rf", reducer="pca", scaler=each) for each in ("none", "robust")]
        assert forms(table(), *reduced) == 2

    def test_hyperparameters_of_the_estimator_always_matter(self) -> None:
        one = pipeline("knn")
        other = one | {"estimator:knn:n_neighbors": one["estimator:knn:n_neighbors"] + 1}
        assert forms(table(), one, other) == 2

    def test_a_form_is_its_own_form(self) -> None:
        effect, configs = PipelineEquivalence.on(table()), SPACE.sample(200, seed=0)
        once = effect(configs)
        assert effect(once).keys().tolist() == once.keys().tolist()


@pytest.mark.parametrize("seed", range(3))
def test_pipelines_of_one_form_have_one_score(seed: int) -> None:
    on, configs = table(), SPACE.sample(40, seed=seed)
    trees = [c["estimator"] in TREES and c["reducer"] == "none" for c in configs.dicts()]
    chosen = configs.take(np.flatnonzero(trees)[:3])
    protocol = Protocol(("r2",), folds=2)
    for given, plain in zip(
        chosen.dicts(), PipelineEquivalence.on(on)(chosen).dicts(), strict=True
    ):
        scores = [
            evaluate(with_few_trees(config), on, protocol).values["r2"] for config in (given, plain)
        ]
        # A scaled column may be rounded to the other side of a cut, and rounds may end sooner.
        assert scores[0] == pytest.approx(scores[1], abs=0.05)


def test_a_search_tries_no_form_twice() -> None:
    effect, chosen = PipelineEquivalence.on(table()), METHODS["gcp"]
    target = Target(SPACE, effect=effect)
    optimizer = Optimizer(target, chosen, chosen.learn(None, seed=0), seed=0)
    for number in range(9):
        suggestion = optimizer.ask()[0]
        optimizer.tell([Told((float(number % 5),), id=suggestion.id)])
    model_based = optimizer.told.configs.take(np.arange(5, 9))
    everything = effect(optimizer.told.configs).keys().tolist()
    assert len(set(everything)) == len(everything), effect(model_based).dicts()
