from typing import Any

import numpy as np
import pandas as pd
import pytest
from ConfigSpace import ConfigurationSpace, ForbiddenAndConjunction, ForbiddenEqualsClause

from foretune.errors import SpaceError
from foretune.space import Space
from tests.refusals import refuses
from tests.space.spaces import CASH

FLAT = {"rate": (1e-4, 1e-1, "log"), "depth": (1, 10), "act": ["relu", "tanh"]}
GOOD = {"rate": 1e-2, "depth": 3, "act": "relu"}


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"rate": 0.5}, "illegal-value"),
        ({"rate": "0.01"}, "illegal-value"),
        ({"rate": float("nan")}, "illegal-value"),
        ({"rate": np.nan}, "illegal-value"),
        ({"rate": True}, "illegal-value"),
        ({"rate": float("inf")}, "illegal-value"),
        ({"depth": 0}, "illegal-value"),
        ({"depth": 10**400}, "illegal-value"),
        ({"depth": 2.5}, "illegal-value"),
        ({"depth": [3]}, "illegal-value"),
        ({"act": "gelu"}, "illegal-value"),
        ({"act": 0}, "illegal-value"),
        ({"act": ["relu"]}, "illegal-value"),
        ({"act": {}}, "illegal-value"),
        ({"act": np.array(["relu", "tanh"])}, "illegal-value"),
        ({"act": pd.NA}, "illegal-value"),
        ({"rate": pd.NA}, "illegal-value"),
        ({"act": None}, "value-missing"),
        ({"lr": 1}, "unknown-hyperparameter"),
    ],
)
def test_a_refusal_names_the_hyperparameter_the_value_and_the_row(
    change: dict[str, Any], rule: str
) -> None:
    space = Space.of(FLAT)
    [(name, given)] = change.items()
    with refuses(rule, field=name) as alone:
        space.encode([{**GOOD, **change}])
    assert alone.value.value is given or alone.value.value == given
    assert "row" not in str(alone.value)
    with refuses(rule, field=name) as third:
        space.encode([GOOD, GOOD, {**GOOD, **change}])
    assert " in row 2" in str(third.value)
    assert f"'{name}'" in str(third.value)


def test_a_refusal_says_which_values_are_allowed() -> None:
    with pytest.raises(SpaceError, match=r"must be a number in \[0.0001, 0.1\] log, but got 0.5"):
        Space.of(FLAT).encode([{**GOOD, "rate": 0.5}])


def test_a_missing_name_is_refused_or_filled() -> None:
    space = Space.of(FLAT)
    with refuses("value-missing", field="depth"):
        space.encode([{"rate": 1e-2, "act": "relu"}])
    filled = space.encode([{"rate": 1e-2, "act": "tanh"}], fill_defaults=True)
    depth = space.config_space["depth"].default_value
    assert filled.dicts() == [{"act": "tanh", "depth": depth, "rate": 1e-2}]


def test_an_inactive_name_must_be_absent_or_none() -> None:
    space = Space.of(CASH)
    config = {"model": "svm", "budget": 0.5, "model:svm:C": 1.0}
    assert space.encode([{**config, "model:forest:trees": None}]).dicts() == [
        space.encode([config]).dicts()[0]
    ]
    with refuses("inactive-value", field="model:forest:trees", value=20):
        space.encode([{**config, "model:forest:trees": 20}])


def test_defaults_follow_the_conditions() -> None:
    space = Space.of(CASH)
    (config,) = space.encode([{"model": "forest", "budget": 1}], fill_defaults=True).dicts()
    assert set(config) == {"model", "budget", "model:forest:trees", "model:forest:depth"}
    assert space.defaults().dicts() == [dict(space.config_space.get_default_configuration())]


def test_numpy_scalars_and_config_space_configurations_are_accepted() -> None:
    space = Space.of(FLAT)
    numpy = {"rate": np.float32(0.5**7), "depth": np.int8(3), "act": np.str_("tanh")}
    assert space.encode([numpy]).dicts() == [{"act": "tanh", "depth": 3, "rate": 0.5**7}]
    arrays = {"rate": np.array(0.5**7), "depth": np.array(3), "act": "tanh"}
    assert space.encode([arrays]) == space.encode([numpy])
    configuration = space.config_space.sample_configuration()
    assert space.encode([configuration]).dicts() == [dict(configuration)]


def test_a_configuration_must_be_a_mapping() -> None:
    with refuses("not-a-mapping", field="config", value=[1]):
        Space.of(FLAT).encode([GOOD, [1]])


def test_choices_of_different_types_are_told_apart() -> None:
    space = Space.of({"b": [True, False], "n": [1, 2], "t": ["None", None, "1", 1.5]})
    rows = [{"b": True, "n": 1.0, "t": None}, {"b": np.bool_(False), "n": np.int64(2), "t": "None"}]
    assert space.encode(rows).dicts() == [
        {"b": True, "n": 1, "t": None},
        {"b": False, "n": 2, "t": "None"},
    ]
    for name, wrong in [("b", 1), ("b", 0.0), ("n", True), ("t", 1), ("n", "1")]:
        with refuses("illegal-value", field=name, value=wrong):
            space.encode([{**rows[0], name: wrong}])


def test_a_missing_choice_is_not_the_choice_none() -> None:
    space = Space.of({"t": [None, "a"], "f": (0, 1)})
    with refuses("value-missing", field="t"):
        space.encode([{"f": 1}])


def test_none_for_an_inactive_name_with_a_choice_none() -> None:
    space = Space.of({"m": {"a": {"t": [None, "x"]}, "b": {}}})
    batch = space.encode([{"m": "b", "m:a:t": None}, {"m": "a", "m:a:t": None}])
    assert batch.dicts() == [{"m": "b"}, {"m": "a", "m:a:t": None}]


def test_tuples_are_choices_whether_written_as_tuples_or_lists() -> None:
    space = Space.of({"layers": [(8,), (8, 8)]})
    assert space.encode([{"layers": (8, 8)}, {"layers": [8]}]).dicts() == [
        {"layers": (8, 8)},
        {"layers": (8,)},
    ]


def test_forbidden_combinations_are_refused_by_name() -> None:
    config_space = ConfigurationSpace({"a": [1, 2], "b": ["x", "y"]})
    config_space.add(
        ForbiddenAndConjunction(
            ForbiddenEqualsClause(config_space["a"], 2),
            ForbiddenEqualsClause(config_space["b"], "y"),
        )
    )
    space = Space.of(config_space)
    with refuses("forbidden-combination", value="a=2, b='y'"):
        space.encode([{"a": 2, "b": "y"}])
    with refuses("forbidden-combination", value="a=2, b='y'"):
        space.from_unit(np.array([[1, 0, 1, 0], [0.1, 0.2, 0, 1.0]]))


def test_columns_of_a_table() -> None:
    space = Space.of({"m": {"a": {"f": (0.0, 1.0), "i": (1, 5)}, "b": {}}, "t": [None, "x"]})
    table = pd.DataFrame(
        {
            "m": ["a", "b"],
            "m:a:f": [0.5, np.nan],
            "m:a:i": [3.0, np.nan],
            "t": pd.Series([None, "x"], dtype=object),
        }
    )
    batch = space.from_columns({name: table[name] for name in table}, 2)
    assert batch.dicts() == [
        {"m": "a", "t": None, "m:a:f": 0.5, "m:a:i": 3},
        {"m": "b", "t": "x"},
    ]


def test_whatever_pandas_misses_is_a_gap() -> None:
    space = Space.of({"m": {"a": {"i": (1, 5), "b": [True, False], "s": ["x"]}, "b": {}}})
    table = pd.DataFrame(
        {
            "m": ["a", "b"],
            "m:a:i": pd.array([3, None], dtype="Int64"),
            "m:a:b": pd.array([False, None], dtype="boolean"),
            "m:a:s": pd.array(["x", None], dtype="string"),
        }
    )
    batch = space.from_columns({name: table[name] for name in table}, 2)
    assert batch.dicts() == [{"m": "a", "m:a:b": False, "m:a:i": 3, "m:a:s": "x"}, {"m": "b"}]
    table["m:a:s"] = pd.Series(["x", pd.NaT], dtype=object)
    assert space.from_columns({name: table[name] for name in table}, 2) == batch


def test_columns_may_be_filled_and_dropped() -> None:
    space = Space.of({"m": {"a": {"i": (1, 5)}, "b": {}}, "k": (0, 4)})
    columns = {"m": ["a", "b"], "m:a:i": [1, 2]}
    batch = space.from_columns(columns, 2, fill_defaults=True, drop_inactive=True)
    assert batch.dicts() == [{"m": "a", "k": 2, "m:a:i": 1}, {"m": "b", "k": 2}]
    with refuses("value-missing", field="k"):
        space.from_columns(columns, 2)
    with refuses("inactive-value", field="m:a:i"):
        space.from_columns(columns, 2, fill_defaults=True)


def test_columns_must_be_known_and_of_one_length() -> None:
    space = Space.of({"a": (0, 4)})
    with refuses("wrong-column-length", field="a", value=1):
        space.from_columns({"a": [1]}, 2)
    with refuses("unknown-hyperparameter", field="b"):
        space.from_columns({"a": [1], "b": [1]}, 1)


def test_values_are_checked() -> None:
    space = Space.of({"a": (0, 4), "c": ["x", "y"]})
    assert space.from_values(np.array([[3, 1]])).dicts() == [{"a": 3, "c": "y"}]
    with refuses("illegal-value", field="a", value=5):
        space.from_values(np.array([[5, 1]]))
    with refuses("illegal-value", field="c", value=2):
        space.from_values(np.array([[1, 2]]))
    with refuses("wrong-shape", field="values", value=(2,)):
        space.from_values(np.array([1, 1]))
