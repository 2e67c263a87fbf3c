import numpy as np
import pytest
from ConfigSpace.hyperparameters import UniformFloatHyperparameter

from foretune.space import Kind, Space
from tests.refusals import refuses


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
        ({"a": (1,)}, "not-a-range"),
        ({"a": (1, 2, "exp")}, "not-a-range"),
        ({"a": ("x", "y")}, "bounds-not-numbers"),
        ({"a": (True, 3)}, "bounds-not-numbers"),
        ({"a": (np.bool_(True), 3)}, "bounds-not-numbers"),
        ({"a": (0.0, np.inf)}, "infinite-bounds"),
        ({"a": (0.5, 10**400)}, "infinite-bounds"),
        ({"a": (1e-300, 1e-290, "log")}, "rounded-range"),
        ({"a": (0.0, 1e-14)}, "rounded-range"),
        ({"a": (0.0, 1e300)}, "rounded-range"),
        ({"a": (0, 2**63)}, "integer-too-large"),
        ({"a": (0, 2**70)}, "integer-too-large"),
        ({"a": (0, 10**400)}, "integer-too-large"),
        ({"a": (2, 1)}, "bounds-reversed"),
        ({"a": (0, 1, "log")}, "log-not-positive"),
        ({"a": [0.1, 1, "log"]}, "range-as-list"),
        ({"a": []}, "no-choices"),
        ({"a": ["x", "x"]}, "refused-by-configspace"),
        ({"a": {"ordinal": 3}}, "not-an-ordinal"),
        ({"a": {"ordinal": []}}, "not-an-ordinal"),
        ({"a": {}}, "not-a-dict-of-choices"),
        ({"a": {"rang": [0, 1]}}, "not-a-dict-of-choices"),
        ({"a": {"svm": 3}}, "not-a-dict-of-choices"),
        ({"a": object}, "not-a-hyperparameter"),
        ({"a": UniformFloatHyperparameter("b", 0, 1)}, "different-name"),
    ],
)
def test_bad_notation_is_refused_with_key_value_and_rule(notation: dict, rule: str) -> None:
    with refuses(rule, field="a") as refused:
        Space.of(notation)
    if rule not in ("rounded-range", "integer-too-large"):  # they name the bounds alone
        assert refused.value.value is notation["a"]
    assert "'a'" in str(refused.value)


@pytest.mark.parametrize(
    ("notation", "rule", "field"),
    [
        ({3: (0, 1)}, "not-a-name", "3"),
        ({"m": {"x": {"k": (1,)}}}, "not-a-range", "m:x:k"),
        ({"m": {"x": {"k": 1}}, "m:x:k": 2}, "repeated-name", ""),
        ({}, "no-hyperparameters", ""),
    ],
)
def test_bad_names_are_refused(notation: dict, rule: str, field: str) -> None:
    with refuses(rule, field=field):
        Space.of(notation)
