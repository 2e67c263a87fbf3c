import numpy as np
import pandas as pd
import pytest
from ConfigSpace import ConfigurationSpace, ForbiddenAndConjunction, ForbiddenEqualsClause

from foretune.errors import SpaceError
from foretune.space import Space
from tests.space.spaces import CASH

FLAT = {"rate": (1e-4, 1e-1, "log"), "depth": (1, 10), "act": ["relu", "tanh"]}
GOOD = {"rate": 1e-2, "depth": 3, "act": "relu"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rate": 0.5}, r"'rate' must be a number in \[0.0001, 0.1\] log, but got 0.5"),
        ({"rate": "0.01"}, r"'rate' must be a number in .*, but got '0.01'"),
        ({"rate": float("nan")}, r"'rate' must be a number in .*, but got nan"),
        ({"rate": np.nan}, r"'rate' must be .*, but got nan"),
        ({"rate": True}, r"'rate' must be .*, but got True"),
        ({"rate": float("inf")}, r"'rate' must be .*, but got inf"),
        ({"depth": 0}, r"'depth' must be an integer in \{1..10\}, but got 0"),
        ({"depth": 10**400}, r"'depth' must be an integer in \{1..10\}, but got 1000"),
        ({"depth": 2.5}, r"'depth' must be an integer in \{1..10\}, but got 2.5"),
        ({"depth": [3]}, r"'depth' must be an integer in \{1..10\}, but got \[3\]"),
        ({"act": "gelu"}, r"'act' must be one of \{'relu', 'tanh'\}, but got 'gelu'"),
        ({"act": 0}, r"'act' must be one of .*, but got 0"),
        ({"act": ["relu"]}, r"'act' must be one of .*, but got \['relu'\]"),
        ({"act": {}}, r"'act' must be one of .*, but got \{\}"),
        ({"act": np.array(["relu", "tanh"])}, r"'act' must be one of .*, but got array"),
        ({"act": pd.NA}, r"'act' must be one of .*, but got <NA>"),
        ({"rate": pd.NA}, r"'rate' must be .*, but got <NA>"),
        ({"act": None}, r"'act' is active and needs a value in \{'relu', 'tanh'\}, but none"),
        ({"lr": 1}, r"must be a hyperparameter of the space \(act, depth, rate\), but got 'lr'=1"),
    ],
)
def test_a_refusal_names_the_hyperparameter_the_value_and_the_range(
    change: dict, message: str
) -> None:
    space = Space.of(FLAT)
    with pytest.raises(SpaceError, match=message) as alone:
        space.encode([{**GOOD, **change}])
    assert "row" not in str(alone.value)
    with pytest.raises(SpaceError, match=message + ".* in row 2"):
        space.encode([GOOD, GOOD, {**GOOD, **change}])


def test_a_missing_name_is_refused_or_filled() -> None:
    space = Space.of(FLAT)
    with pytest.raises(SpaceError, match=r"'depth' is active and needs a value in {1..10}"):
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
    with pytest.raises(SpaceError, match=r"'model:forest:trees' .* must be left out .* got 20:"):
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
    with pytest.raises(SpaceError, match=r"must be a mapping .* got list \[1\] in row 1"):
        Space.of(FLAT).encode([GOOD, [1]])


def test_choices_of_different_types_are_told_apart() -> None:
    space = Space.of({"b": [True, False], "n": [1, 2], "t": ["None", None, "1", 1.5]})
    rows = [{"b": True, "n": 1.0, "t": None}, {"b": np.bool_(False), "n": np.int64(2), "t": "None"}]
    assert space.encode(rows).dicts() == [
        {"b": True, "n": 1, "t": None},
        {"b": False, "n": 2, "t": "None"},
    ]
    for name, wrong in [("b", 1), ("b", 0.0), ("n", True), ("t", 1), ("n", "1")]:
        with pytest.raises(SpaceError, match=f"'{name}' must be one of .*, but got"):
            space.encode([{**rows[0], name: wrong}])


def test_a_missing_choice_is_not_the_choice_none() -> None:
    space = Space.of({"t": [None, "a"], "f": (0, 1)})
    with pytest.raises(SpaceError, match=r"'t' is active and needs a value"):
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
    with pytest.raises(SpaceError, match=r"a == 2.*b == 'y'.* is forbidden, but got a=2, b='y'"):
        space.encode([{"a": 2, "b": "y"}])
    with pytest.raises(SpaceError, match=r"is forbidden, but got a=2, b='y' in row 1"):
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
    with pytest.raises(SpaceError, match=r"'k' is active"):
        space.from_columns(columns, 2)
    with pytest.raises(SpaceError, match=r"'m:a:i' .* must be left out .* in row 1"):
        space.from_columns(columns, 2, fill_defaults=True)


def test_columns_must_be_known_and_of_one_length() -> None:
    space = Space.of({"a": (0, 4)})
    with pytest.raises(
        SpaceError, match=r"column 'a' must have 2 cells like the others, but has 1"
    ):
        space.from_columns({"a": [1]}, 2)
    with pytest.raises(
        SpaceError, match=r"hyperparameter of the space \(a\), but got a column 'b'"
    ):
        space.from_columns({"a": [1], "b": [1]}, 1)


def test_values_are_checked() -> None:
    space = Space.of({"a": (0, 4), "c": ["x", "y"]})
    assert space.from_values(np.array([[3, 1]])).dicts() == [{"a": 3, "c": "y"}]
    with pytest.raises(SpaceError, match=r"'a' must be an integer in {0..4}, but got 5"):
        space.from_values(np.array([[5, 1]]))
    with pytest.raises(SpaceError, match=r"'c' must be one of .*, but got 2"):
        space.from_values(np.array([[1, 2]]))
    with pytest.raises(SpaceError, match=r"matrix with 2 columns, but got the shape \(2,\)"):
        space.from_values(np.array([1, 1]))
