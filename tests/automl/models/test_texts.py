"""Tables with texts, from pipelines to model files."""

import numpy as np
import pytest

from foretune.automl.equivalent_configs import PipelineEquivalence
from foretune.automl.estimators.fitted_pipeline import refit
from foretune.automl.evaluation import Protocol, evaluate
from foretune.automl.final_model.model import Model
from foretune.automl.spaces import SPACES, load_shipped_space
from foretune.tables.meta_features import meta_features
from foretune.tables.table import Table
from foretune.tables.target import Task
from tests.automl.samples import mixed_table, table_with_texts

SCALERS = ("none", "standard", "robust", "quantile")


def one_config(name, algorithm="", **chosen):
    built = load_shipped_space(name).build([algorithm] if algorithm else [])
    configs = built.sample(200, seed=1, how="sobol").dicts()
    return next(each for each in configs if chosen.items() <= each.items())


@pytest.mark.parametrize("others", [True, False])
@pytest.mark.parametrize("name", SPACES)
def test_a_text_alone_says_the_target(name, others, tmp_path):
    pytest.importorskip("skops")
    task = SPACES[name].task
    table = table_with_texts(task, others=others)
    algorithm = {"cash": "logistic", "pipeline-classification": "logistic"}.get(name, "elastic_net")
    config = one_config(name, next(a for a in SPACES[name].algorithms() if algorithm in a))
    metric = "accuracy" if task is Task.CLASSIFICATION else "r2"
    score = evaluate(config, table, Protocol((metric,), folds=2))
    assert score.values[metric] > 0.6
    model = Model.of(table, [refit(config, table, seed=0)], target="y", metric=metric)
    model.save(tmp_path / "m.foretune")
    again = Model.open(tmp_path / "m.foretune")
    np.testing.assert_array_equal(again.predict_rows(table.x), model.predict_rows(table.x))


@pytest.mark.parametrize("scaler", SCALERS)
def test_predictions_from_texts_are_scaled_like_numbers(scaler):
    table = table_with_texts(Task.REGRESSION)
    config = one_config("pipeline-regression", "elastic_net", scaler=scaler)
    columns = refit(config, table, seed=0).pipeline.named_steps["columns"]
    [text] = [each for name, each, _ in columns.transformers_ if name.startswith("text")]
    [numbers] = [each for name, each, _ in columns.transformers_ if name == "numbers"]
    assert type(text.named_steps["scaler"]) is type(numbers.named_steps["scaler"])


def test_without_texts_pipelines_are_as_before():
    config = one_config("pipeline-regression", "elastic_net")
    columns = refit(config, mixed_table(Task.REGRESSION), seed=0).pipeline.named_steps["columns"]
    assert [name for name, _, _ in columns.transformers_] == ["numbers", "categories"]


def test_gaps_of_texts_are_not_the_imputers():
    assert "imputer" not in PipelineEquivalence.on(table_with_texts(Task.REGRESSION)).idle
    alone = PipelineEquivalence.on(table_with_texts(Task.REGRESSION, others=False)).idle
    assert {"imputer", "encoder"} <= alone
    assert "scaler" not in alone


def test_words_do_not_describe_a_table_that_has_other_columns():
    table = table_with_texts(Task.REGRESSION)
    assert table.schema.texts.keys() == {"review"}
    plain = table.without_texts
    assert plain.schema.features == ("number", "letter")
    assert plain.x.shape == (120, 2)
    alone = table_with_texts(Task.REGRESSION, others=False)
    assert alone.without_texts is alone
    found = meta_features(alone.x, alone.categorical, alone.y, classification=False)
    assert found["log_columns"] == np.log(len(alone.schema.features))


def test_a_prepared_table_keeps_its_texts(tmp_path):
    table = table_with_texts(Task.CLASSIFICATION)
    table.save(tmp_path / "t.npz")
    again = Table.open(tmp_path / "t.npz")
    assert again.schema == table.schema
    np.testing.assert_array_equal(again.x, table.x)
