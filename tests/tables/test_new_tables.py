"""New tables whose numbers are written otherwise than those of the table of the fit."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from foretune.automl.estimators.fitted_pipeline import refit
from foretune.automl.final_model.model import Model
from foretune.automl.model_scores import rows_with_target
from foretune.automl.prediction_file import PredictionOptions, predict_file
from foretune.automl.spaces import load_shipped_space
from foretune.tables.column_roles import ColumnRoles
from foretune.tables.identity import task_name
from foretune.tables.reading import read_table, read_test_table
from foretune.tables.schema import Schema
from tests.refusals import refuses

ROWS = 60
RNG = np.random.default_rng(0)
PRICES = RNG.uniform(1, 50, ROWS).round(2)
SOLD = RNG.integers(1001, 9999, ROWS)
OTHER_UNIT = "Read as numbers, although the table of the fit has another unit: "


def german(number):
    return f"{number:,}".translate(str.maketrans(",.", ".,"))


def with_unit(text):
    return [text.format(price) for price in PRICES]


def model_of(training):
    [config] = (
        load_shipped_space("pipeline-regression").build(["elastic_net"]).sample(1, seed=0).dicts()
    )
    member = refit(config, training.table, seed=0)
    return Model.of(training.table, [member], target=training.target, metric="r2")


def fitted(text):
    return read_table(pd.DataFrame({"x": with_unit(text), "y": SOLD}), "y")


def said_of(tmp_path, model, text):
    new = tmp_path / "new.csv"
    pd.DataFrame({"x": with_unit(text)}).to_csv(new, index=False)
    return predict_file(model, new, tmp_path / "out.csv", PredictionOptions())[1:]


@pytest.mark.parametrize(
    ("before", "now", "said"),
    [
        ("${}", "{} €", "$ there, € here"),
        ("{}%", "{}", "% there, none here"),
        ("{}", "${}", "none there, $ here"),
        ("1,0{:05.2f}", "1,0{:05.2f} €", "none there, € here"),
        ("${}", "{} $", ""),
        ("{}", "{}", ""),
    ],
)
def test_another_unit_than_at_the_fit_is_said(tmp_path, before, now, said):
    model = model_of(fitted(before))
    model.save(tmp_path / "a.model")
    again = Model.open(tmp_path / "a.model")
    notes = [f"{OTHER_UNIT}'x' ({said}). Convert them to that unit."] if said else []
    assert said_of(tmp_path, again, now) == notes


def test_models_that_know_no_unit_say_nothing_of_it(tmp_path):
    model = model_of(fitted("${}"))
    [plain] = model.schema.to_list()
    assert plain.pop("unit") == "$"
    assert said_of(tmp_path, replace(model, schema=Schema.from_list([plain])), "{} €") == []


@pytest.mark.parametrize("unit", ["kg", 5, ["$"]])
def test_a_unit_is_one_of_those_that_are_known(unit):
    [plain] = fitted("${}").table.schema.to_list()
    with refuses("schema-unit"):
        Schema.from_list([{**plain, "unit": unit}])


def test_tables_that_were_remembered_before_units_are_known_again():
    assert task_name(fitted("${}").table) == task_name(fitted("{} €").table)


def test_other_units_in_a_test_table_are_said(tmp_path):
    train, test = tmp_path / "train.csv", tmp_path / "test.csv"
    pd.DataFrame({"x": with_unit("${}"), "y": with_unit("{} €")}).to_csv(train, index=False)
    pd.DataFrame({"x": with_unit("${}"), "y": with_unit("£{}")}).to_csv(test, index=False)
    training = read_table(train, "y")
    _, [note] = read_test_table(test, training)
    assert note == (
        "In the test table: read as numbers, although the table of the fit has another unit: "
        "'y' (€ there, £ here). Convert them to that unit."
    )
    assert read_test_table(train, training)[1] == []


def written(path, mark, **columns):
    """Each number as programs write it, or as Germans do."""
    how = german if mark == "," else str
    frame = pd.DataFrame({name: map(how, values) for name, values in columns.items()})
    frame.to_csv(path, sep=";", index=False)
    return path


@pytest.mark.parametrize("fractions", ["k", "y", "w"])
@pytest.mark.parametrize("mark", [".", ","], ids=["plain fit", "German fit"])
def test_all_numbers_of_a_german_test_table_are_read_as_such(tmp_path, mark, fractions):
    """Whichever column shows that there are commas; 1.234 alone would be a fraction."""
    numbers = {"x": SOLD, "k": SOLD, "w": SOLD, "y": 2 * SOLD}
    of_the_fit = {name: (values + 0.5).tolist() for name, values in numbers.items()}
    path = written(tmp_path / "train.csv", mark, **of_the_fit)
    training = read_table(path, "y", roles=ColumnRoles(weight="w"))
    expected = {**numbers, fractions: numbers[fractions] + 0.25}
    test = {name: values.tolist() for name, values in expected.items()}
    frame, notes = read_test_table(written(tmp_path / "test.csv", ",", **test), training)
    table = training.table
    known, y = rows_with_target(frame, "y", table.task, (), decimal=table.target_decimal)
    np.testing.assert_array_equal(y, expected["y"])
    x = table.schema.with_marks_of(known).encode(known)
    np.testing.assert_array_equal(x, np.column_stack([expected["x"], expected["k"]]))
    weights = table.weighting.of_test(known, np.ones(ROWS, dtype=np.bool_))
    np.testing.assert_allclose(weights, expected["w"] / expected["w"].max())
    other = "In the test table: read with another decimal mark than the table of the fit: "
    assert notes == ([] if mark == "," else [f"{other}'x', 'k', 'y', 'w'."])
