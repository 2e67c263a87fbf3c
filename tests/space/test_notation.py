import numpy as np
import pytest
from ConfigSpace.hyperparameters import UniformFloatHyperparameter

from foretune.errors import SpaceError
from foretune.space import Kind, Space


def test_the_example_of_the_documentation() -> None:
    space = Space.of(
        {
            "lr": (1e-4, 1e-1, "log"),
            "dropout": (0, 0.5),
            "depth": (1, 10),
            "width": (16, 1024, "log"),
            "activation": ["relu", "tanh"],
            "batch": {"ordinal": [16, 32, 64]},
            "seed": 7,
            "model": {
                "svm": {"C": (1e-3, 1e3, "log")},
                "forest": {"trees": (10, 500)},
                "naive": {},
            },
        }
    )
    kinds = {p.name: (p.kind, p.log) for p in space.parameters}
    assert kinds == {
        "lr": (Kind.FLOAT, True),
        "dropout": (Kind.FLOAT, False),
        "depth": (Kind.INT, False),
        "width": (Kind.INT, True),
        "activation": (Kind.CATEGORICAL, False),
        "batch": (Kind.ORDINAL, False),
        "seed": (Kind.CONSTANT, False),
        "model": (Kind.CATEGORICAL, False),
        "model:svm:C": (Kind.FLOAT, True),
        "model:forest:trees": (Kind.INT, False),
    }
    conditions = {str(condition) for condition in space.config_space.conditions}
    assert conditions == {
        "model:svm:C | model == 'svm'",
        "model:forest:trees | model == 'forest'",
    }


def test_choices_nest() -> None:
    space = Space.of({"m": {"a": {"k": {"p": {"g": (0, 1)}, "q": {}}}, "b": {}}})
    assert space.names == ("m", "m:a:k", "m:a:k:p:g")
    assert len(space.encode([{"m": "a", "m:a:k": "p", "m:a:k:p:g": 1}])) == 1


def test_choices_with_children_keep_their_types() -> None:
    space = Space.of({"bootstrap": {True: {"share": (0.1, 1.0)}, False: {}}})
    assert space.encode([{"bootstrap": False}]).dicts() == [{"bootstrap": False}]
    assert space.names == ("bootstrap", "bootstrap:True:share")


def test_one_point_is_a_constant() -> None:
    space = Space.of({"a": (3, 3), "b": (0.5, 0.5), "c": [4]})
    assert [p.kind for p in space.parameters] == [Kind.CONSTANT, Kind.CONSTANT, Kind.CATEGORICAL]
    assert space.sample(1, seed=0).dicts() == [{"a": 3, "b": 0.5, "c": 4}]


@pytest.mark.parametrize("value", [None, True, "text", 2, 2.5])
def test_scalars_are_constants(value: object) -> None:
    (config,) = Space.of({"a": value, "b": (0, 1)}).sample(1, seed=0).dicts()
    assert config["a"] == value
    assert type(config["a"]) is type(value)


@pytest.mark.parametrize("value", [np.int32(4), np.float32(2.5), np.bool_(True), np.str_("text")])
def test_scalars_of_numpy_are_constants_of_python(value: np.generic) -> None:
    (config,) = Space.of({"a": value, "b": (0, 1)}).sample(1, seed=0).dicts()
    assert config["a"] == value.item()
    assert type(config["a"]) is type(value.item())


def test_bounds_may_be_numbers_of_numpy() -> None:
    bounds = {
        "a": (np.int64(1), np.int64(5)),
        "b": (np.float32(0.5), 2),
        "c": (np.int8(2), 8, "log"),
    }
    plain = {"a": (1, 5), "b": (0.5, 2), "c": (2, 8, "log")}
    assert Space.of(bounds) == Space.of(plain)


def test_a_large_whole_number_may_bound_a_float() -> None:
    [p] = Space.of({"a": (0.5, 2**70)}).parameters
    assert (p.kind, p.low, p.high) == (Kind.FLOAT, 0.5, 2.0**70)


def test_hyperparameters_of_config_space_may_stand_in() -> None:
    space = Space.of({"a": UniformFloatHyperparameter("a", 0, 2, default_value=1.5)})
    assert space.defaults().dicts() == [{"a": 1.5}]


@pytest.mark.parametrize(
    ("notation", "rule"),
    [
        ({"a": (1,)}, r"a range must be \(low, high\) or .*, but got 'a': \(1,\)"),
        ({"a": (1, 2, "exp")}, r"a range must be .*, but got 'a': \(1, 2, 'exp'\)"),
        ({"a": ("x", "y")}, r"with numbers as bounds, but got 'a': \('x', 'y'\)"),
        ({"a": (True, 3)}, r"with numbers as bounds, but got 'a': \(True, 3\)"),
        ({"a": (np.bool_(True), 3)}, r"with numbers as bounds, but got 'a'"),
        ({"a": (0.0, np.inf)}, r"with finite bounds, but got 'a': \(0.0, inf\)"),
        ({"a": (0.5, 10**400)}, r"with finite bounds, but got 'a': \(0.5, 1000"),
        ({"a": (1e-300, 1e-290, "log")}, r"13 decimal places.*but 'a' has \[1e-300, 1e-290\] log"),
        ({"a": (0.0, 1e-14)}, r"13 decimal places.*but 'a' has \[0.0, 1e-14\]: use another unit"),
        ({"a": (0.0, 1e300)}, r"13 decimal places.*but 'a' has \[0.0, 1e\+300\]: use another unit"),
        ({"a": (0, 2**63)}, r"'a' must lie within ±2\*\*53, but got \[0, 9223372036854775808\]"),
        ({"a": (0, 2**70)}, r"'a' must lie within ±2\*\*53, but got \[0, 1180591"),
        ({"a": (0, 10**400)}, r"'a' must lie within ±2\*\*53, but got \[0, 1000"),
        ({"a": (2, 1)}, r"lower bound must not exceed the upper one, but got 'a': \(2, 1\)"),
        ({"a": (0, 1, "log")}, r"bounds of a log range must be positive, but got 'a'"),
        ({"a": [0.1, 1, "log"]}, r"a list holds choices, and a range must be \(low, high, 'log'\)"),
        ({"a": []}, r"a list of choices must not be empty, but got 'a': \[\]"),
        ({"a": ["x", "x"]}, r"choice `x` 2 times.*but got 'a': \['x', 'x'\]"),
        ({"a": {"ordinal": 3}}, r"an ordinal must be {'ordinal': \[...\]}.*but got 'a'"),
        ({"a": {"ordinal": []}}, r"an ordinal must be .*but got 'a'"),
        ({"a": {}}, r"a dict must be .*but got 'a': {}"),
        ({"a": {"rang": [0, 1]}}, r'in JSON also {"range": \[low, high\]}.*: correct it'),
        ({"a": {"svm": 3}}, r"map each choice to the dict .*but got 'a': {'svm': 3}"),
        ({"a": object}, r"a value must be a tuple .*but got 'a': <class 'object'>"),
        ({3: (0, 1)}, r"a name must be a text that is not empty, but got 3: \(0, 1\)"),
        ({"m": {"x": {"k": (1,)}}}, r"a range must be .*but got 'm:x:k': \(1,\)"),
        ({"a": UniformFloatHyperparameter("b", 0, 1)}, r"must carry its key as its name.*'a'"),
        ({"m": {"x": {"k": 1}}, "m:x:k": 2}, r"name each hyperparameter once"),
        ({}, r"at least one hyperparameter"),
    ],
)
def test_bad_notation_is_refused_with_key_value_and_rule(notation: dict, rule: str) -> None:
    with pytest.raises(SpaceError, match=rule):
        Space.of(notation)
