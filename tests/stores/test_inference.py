import math

import ConfigSpace
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from foretune.space import Space
from foretune.stores.files.condition_inference import Activity, explain_missing
from foretune.stores.files.range_inference import looks_logarithmic
from foretune.stores.files.space_inference import infer_parameter, infer_space
from tests.refusals import refuses


def inferred(*values):
    return infer_parameter("p", list(values))


def test_strings_and_booleans_are_choices():
    assert inferred("b", "a", "b").choices == ("a", "b")
    assert inferred(True, False).choices == (False, True)


def test_choices_of_one_type_are_in_their_order():
    assert inferred("auto", 10, 2, None, 9).choices == (None, 2, 9, 10, "auto")


@pytest.mark.parametrize("value", [2**60, -(2**60)])
def test_whole_numbers_that_no_float_tells_apart_are_refused(value):
    with refuses("whole-number-too-large", field="p"):
        inferred(1, value)


def test_one_order_of_magnitude_is_enough_for_a_log_scale():
    assert looks_logarithmic(np.array([1.0, 2.0, 5.0, 10.0]))
    assert not looks_logarithmic(np.array([1.0, 2.0, 5.0, 9.9]))


@pytest.mark.parametrize(
    "values",
    [
        [f"run-{i}" for i in range(20)],
        [f"run-{i % 101}" for i in range(1000)],
        ["auto", *(i / 7 for i in range(30))],
    ],
)
def test_names_of_rows_are_no_choices(values):
    with refuses("too-many-choices", field="p"):
        inferred(*values)


def test_choices_may_be_many_if_they_come_again():
    assert len(inferred(*(f"op-{i}" for i in range(19))).choices) == 19
    assert len(inferred(*(f"op-{i % 50}" for i in range(60))).choices) == 50
    assert len(inferred(*(f"op-{i % 100}" for i in range(1000))).choices) == 100


@pytest.mark.parametrize("value", ["only", 3, 2.5, True])
def test_one_value_is_a_constant(value):
    made = inferred(value, value)
    assert isinstance(made, ConfigSpace.Constant)
    assert made.value == value
    assert type(made.value) is type(value)


def test_whole_numbers_are_integers_within_what_was_seen():
    made = inferred(3, 12, 7)
    assert isinstance(made, ConfigSpace.UniformIntegerHyperparameter)
    assert (made.lower, made.upper, made.log) == (3, 12, False)


def test_the_largest_bounds_are_kept():
    made = inferred(1.0, 1e290)
    assert (made.lower, made.upper) == (1.0, 1e290)


def test_a_range_is_rounded_outwards_to_four_digits():
    made = inferred(0.0250007, 0.0301, 0.299952)
    assert (made.lower, made.upper, made.log) == (0.025, 0.3, True)


def test_bounds_of_few_digits_stay():
    made = inferred(-0.125, 0.1, 4.0)
    assert (made.lower, made.upper) == (-0.125, 4.0)


def test_a_log_scale_is_refused_where_its_lower_bound_would_be_zero():
    with refuses("rounded-to-zero", field="p", value=(1e-19, 0.1)):
        inferred(*(10.0**-i for i in range(1, 20)))
    assert inferred(1e-13, 1e-7, 0.1).log
    made = inferred(1e-19, 0.1, 0.2, 0.3)  # evenly spaced but for what a computation has left
    assert (made.lower, made.log) == (0.0, False)


@given(st.lists(st.floats(-1e9, 1e9, allow_subnormal=False), min_size=2, max_size=20))
def test_a_range_holds_every_value(values):
    assume(not 0 < min(values) < 1e-13)  # no bound of a log scale
    made = infer_parameter("p", values)
    if not isinstance(made, ConfigSpace.Constant):
        assert made.lower <= min(values)
        assert max(values) <= made.upper


@pytest.mark.parametrize("values", [[1e-4, 1e-3, 1e-2], [0.125, 0.25, 0.5, 1, 2, 4], [1, 10, 1000]])
def test_geometric_grids_are_logarithmic(values):
    assert looks_logarithmic(np.array(values, dtype=float))


@pytest.mark.parametrize(
    "values", [[1, 3, 5, 7, 9, 11, 13, 15], [0, 1, 10, 100], [2, 4, 8], [-1, 1]]
)
def test_even_narrow_and_signed_grids_are_linear(values):
    assert not looks_logarithmic(np.array(values, dtype=float))


def test_samples_are_judged_by_their_frequencies():
    rng = np.random.default_rng(0)
    uniform = rng.uniform(1e-6, 1, 2000)
    geometric = np.exp(rng.uniform(np.log(1e-6), 0, 2000))
    counts = np.floor(np.exp(rng.uniform(0, np.log(100), 2000)))
    assert not looks_logarithmic(uniform)
    assert looks_logarithmic(geometric)
    assert looks_logarithmic(counts)


SVM = {
    "kernel": ["rbf", "poly", "sigmoid", "rbf", "poly"],
    "gamma": [0.1, 0.2, 0.3, 0.4, 0.5],
    "coef0": [None, 1.0, 2.0, math.nan, 0.5],
    "degree": [None, 2, None, None, 3],
}


def test_gaps_are_explained_by_a_choice():
    assert explain_missing(SVM) == {
        "coef0": Activity("kernel", ("poly", "sigmoid")),
        "degree": Activity("kernel", ("poly",)),
    }


def test_nested_choices_lead_to_the_nearest_that_decides():
    columns = {
        "model": ["svm", "svm", "tree", "svm"],
        "kernel": ["rbf", "poly", None, "rbf"],
        "degree": [None, 3, None, None],
    }
    assert explain_missing(columns) == {
        "kernel": Activity("model", ("svm",)),
        "degree": Activity("kernel", ("poly",)),
    }


def test_integers_explain_too():
    columns = {"layers": [1, 2, 3], "units_2": [None, 8, 16], "units_3": [None, None, 4]}
    assert explain_missing(columns) == {
        "units_2": Activity("layers", (2, 3)),
        "units_3": Activity("layers", (3,)),
    }


def test_true_and_one_decide_apart():
    columns = {"p": [True, 1, "x", True], "c": [0.5, None, None, 0.7]}
    [activity] = explain_missing(columns).values()
    assert activity == Activity("p", (True,))
    assert activity.values[0] is True


def test_none_is_a_value_where_the_masks_say_so():
    columns = {"depth": [None, None, 3], "leaves": [5, 6, None]}
    present = {"depth": np.array([True] * 3), "leaves": np.array([True, True, False])}
    assert explain_missing(columns, present) == {"leaves": Activity("depth", (None,))}


def test_a_missing_choice_does_not_explain_active_hyperparameters():
    columns = {"kind": ["a", "a", "b", "b", None], "x": [1, 2, None, None, 3]}
    assert "x" not in explain_missing(columns)


def test_gaps_without_a_reason_are_not_explained():
    assert explain_missing({"a": ["x", "x", "y"], "b": [1, None, 2]}) == {}


def test_the_space_holds_the_configurations_it_came_from():
    space = Space.of(infer_space(SVM))
    assert space.from_columns(SVM, 5).dicts()[:2] == [
        {"kernel": "rbf", "gamma": 0.1},
        {"kernel": "poly", "gamma": 0.2, "coef0": 1.0, "degree": 2},
    ]


def test_a_stage_stays_one_even_with_a_single_algorithm():
    columns = {"scaler": ["std", "std"], "c": [1.0, 2.0]}
    structure = Space.of(infer_space(columns, stages=["scaler"])).structure
    assert [stage.name for stage in structure.stages] == ["scaler", "common"]


@pytest.mark.parametrize(
    ("columns", "rule"),
    [
        ({}, "no-hyperparameter"),
        ({"a": [None, None]}, "column-without-value"),
        ({"a": ["x", "x", "y"], "b": [1, None, 2]}, "unexplained-gaps"),
        ({"a": [[1], [2]]}, "odd-type"),
        ({"a": [1.0, math.inf]}, "infinite-value"),
        ({"a": [1e10, 1.5e308]}, "number-too-large"),
        ({"a": [-1e300, 1.0]}, "number-too-large"),
        ({"a": [True, 1, 0, "x"]}, "truth-and-number"),
    ],
)
def test_refuses_what_it_cannot_explain(columns, rule):
    with refuses(rule):
        infer_space(columns)
