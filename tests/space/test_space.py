import json
import pickle

import numpy as np
import pytest
from ConfigSpace import (
    AndConjunction,
    CategoricalHyperparameter,
    ConfigurationSpace,
    EqualsCondition,
    ForbiddenAndConjunction,
    ForbiddenEqualsClause,
    ForbiddenGreaterThanRelation,
    ForbiddenInClause,
    GreaterThanCondition,
)

from foretune.errors import SpaceError
from foretune.space import Space
from tests.refusals import refuses
from tests.space.spaces import CASH, EVERY_KIND


def test_of_accepts_a_space_as_it_is() -> None:
    space = Space.of(CASH)
    assert Space.of(space) is space


@pytest.mark.parametrize("wrong", [None, 3, "text", [("a", 1)]])
def test_of_refuses_other_things(wrong: object) -> None:
    with refuses("not-a-space", value=wrong):
        Space.of(wrong)


def test_a_space_does_not_follow_changes_of_the_original() -> None:
    config_space = ConfigurationSpace({"a": (0, 1)})
    space = Space.of(config_space)
    config_space.add(ConfigurationSpace({"b": (0, 1)})["b"])
    assert space.names == ("a",)


def test_json_is_that_of_config_space() -> None:
    space = Space.of(CASH)
    document = json.loads(space.to_json())
    assert ConfigurationSpace.from_serialized_dict(document) == space.config_space
    assert Space.from_json(json.dumps(space.config_space.to_serialized_dict())) == space


def test_tuples_survive_json() -> None:
    config_space = ConfigurationSpace({"layers": [(8,), (8, 16)], "n": (0, 1)})
    config_space.add(EqualsCondition(config_space["n"], config_space["layers"], (8, 16)))
    config_space.add(ForbiddenEqualsClause(config_space["n"], 1))
    space = Space.from_json(Space.of(config_space).to_json())
    configs = [{"layers": (8,)}, {"layers": (8, 16), "n": 0}]
    assert space.encode(configs).dicts() == configs


def test_numpy_choices_become_plain() -> None:
    space = Space.of(ConfigurationSpace({"a": list(np.array([1, 2]))}))
    assert type(space.sample(1, seed=0).dicts()[0]["a"]) is int


@pytest.mark.parametrize(
    ("text", "rule", "said"),
    [
        ("{", "not-json", "Expecting property name"),
        ("[1, 2]", "not-a-space", ""),
        ('{"a": [0, 1]}', "not-a-space", ""),
        ('{"hyperparameters": 3}', "not-a-space", ""),
        ('{"hyperparameters": []}', "no-hyperparameters", ""),
        ('{"hyperparameters": [3]}', "refused-by-configspace", ""),
        ('{"hyperparameters": [{"name": "a"}]}', "refused-by-configspace", "type"),
        ('{"hyperparameters": [{"type": "odd", "name": "a"}]}', "refused-by-configspace", "odd"),
        (
            '{"hyperparameters": [{"type": "uniform_int", "name": "a"}]}',
            "refused-by-configspace",
            "lower",
        ),
    ],
)
def test_bad_json_gets_one_clear_sentence(text: str, rule: str, said: str) -> None:
    with refuses(rule) as caught:
        Space.from_json(text)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_cycle_of_conditions_is_refused() -> None:
    document = json.loads(Space.of({"a": ["x", "y"], "b": ["x", "y"]}).to_json())
    document["conditions"] = [
        {"type": "EQ", "child": "a", "parent": "b", "value": "x"},
        {"type": "EQ", "child": "b", "parent": "a", "value": "x"},
    ]
    with refuses("cyclic-conditions") as caught:
        Space.from_json(json.dumps(document))
    assert "\n" not in str(caught.value)


def test_an_empty_space_is_refused() -> None:
    with refuses("no-hyperparameters"):
        Space.of(ConfigurationSpace())


def test_choices_that_json_cannot_hold_are_refused() -> None:
    with refuses("not-json"):
        Space.of(ConfigurationSpace({"a": [int, str]}))


def test_weights_are_not_used_and_make_no_other_space() -> None:
    spaces = []
    for weights in (None, [1, 2]):
        config_space = ConfigurationSpace()
        config_space.add(
            CategoricalHyperparameter("a", ["x", "y"], weights=weights, default_value="x")
        )
        spaces.append(Space.of(config_space))
    assert spaces[0] == spaces[1]


def test_fingerprints_tell_what_may_be_tried() -> None:
    space = Space.of({"a": (0, 4), "b": ["x", "y"]})
    same = Space.of(ConfigurationSpace("other name", space={"b": ["x", "y"], "a": (0, 4)}))
    assert same == space
    assert same.fingerprint == space.fingerprint
    assert len(space.fingerprint) == 64
    assert hash(same) == hash(space)
    for other in ({"a": (0, 5), "b": ["x", "y"]}, {"a": (0, 4)}, {"a": (0, 4), "b": ["y", "x"]}):
        assert Space.of(other) != space
    assert space != "a space"


def test_the_order_of_conditions_does_not_matter() -> None:
    document = json.loads(Space.of(CASH).to_json())
    document["conditions"].reverse()
    assert Space.from_json(json.dumps(document)) == Space.of(CASH)


def test_pickling() -> None:
    space = Space.of(CASH, stages=["model"])
    copy = pickle.loads(pickle.dumps(space))
    assert copy == space
    assert copy.structure == space.structure
    batch = space.sample(4, seed=0)
    assert len(batch.x) == 4
    assert pickle.loads(pickle.dumps(batch)) == batch


def test_from_unit_rounds_clips_and_drops() -> None:
    space = Space.of({"m": {"a": {"f": (1.0, 3.0)}, "b": {}}, "n": (0, 4)})
    assert space.names == ("m", "n", "m:a:f")
    batch = space.from_unit(np.array([[0.2, 0.4, 0.6, 0.3], [0.9, 0.1, 1.5, -0.2]]))
    assert batch.dicts() == [{"m": "b", "n": 2}, {"m": "a", "n": 4, "m:a:f": 1.0}]


def test_from_unit_refuses_other_shapes_and_nan() -> None:
    space = Space.of({"a": (0, 4), "b": ["x", "y"]})
    with refuses("wrong-shape", field="x", value=(1, 2)):
        space.from_unit(np.zeros((1, 2)))
    with refuses("nan-in-unit-cube"):
        space.from_unit(np.full((1, 3), np.nan))


def test_a_batch_is_decoded_by_its_own_space() -> None:
    batch = Space.of(CASH).sample(1, seed=0)
    assert Space.of(CASH).decode(batch) == batch.dicts()
    with refuses("another-space"):
        Space.of(EVERY_KIND).decode(batch)


def test_the_table_for_people() -> None:
    config_space = ConfigurationSpace({"act": ["relu", "tanh"], "n": (1, 9)})
    config_space.add(EqualsCondition(config_space["n"], config_space["act"], "tanh"))
    config_space.add(ForbiddenEqualsClause(config_space["n"], 1))
    assert Space.of(config_space).describe().splitlines() == [
        "name  kind         allowed           default  active if",
        "-----------------------------------------------------------",
        "act   categorical  {'relu', 'tanh'}  'relu'",
        "n     int          {1..9}            5        act == 'tanh'",
        "Forbidden: n == 1",
    ]
    assert repr(Space.of(config_space)) == "Space(2 hyperparameters, cash)"


def test_columns_of_one_categorical_form_a_group():
    space = Space.of({"a": (0.0, 1.0), "c": ["x", "y", "z"], "fixed": 3, "o": {"ordinal": [1, 2]}})
    assert space.names == ("a", "c", "fixed", "o")
    assert space.column_groups.tolist() == [0, 1, 1, 1, 2]


def test_the_same_text_is_read_once() -> None:
    text = Space.of({"a": (0.0, 1.0)}).to_json()
    assert Space.from_json(text) is Space.from_json(text)


def test_other_things_than_texts_are_refused() -> None:
    with pytest.raises(SpaceError):
        Space.from_json(["a"])  # type: ignore[arg-type]


def test_a_renamed_space_has_the_same_rules_under_other_names() -> None:
    config_space = ConfigurationSpace({"a": (0, 5), "b": (0, 5), "c": ["y", "x"], "d": (0.0, 1.0)})
    a, b, c, d = (config_space[name] for name in "abcd")
    config_space.add(
        AndConjunction(EqualsCondition(d, c, "x"), GreaterThanCondition(d, a, 1)),
        ForbiddenGreaterThanRelation(a, b),
        ForbiddenAndConjunction(ForbiddenEqualsClause(c, "x"), ForbiddenInClause(b, [3])),
    )
    space = Space.of(config_space)
    names = {"a": "zeta", "c": "kind", "d": "alpha"}
    renamed = space.renamed(names)
    assert set(renamed.names) == {"zeta", "b", "kind", "alpha"}
    for config in space.sample(50, seed=0).dicts():
        renamed.encode([{names.get(name, name): value for name, value in config.items()}])
    for wrong in ({"zeta": 5, "b": 4, "kind": "y"}, {"zeta": 2, "b": 3, "kind": "x", "alpha": 0.5}):
        with refuses("forbidden-combination"):
            renamed.encode([wrong])
    with refuses("inactive-value", field="alpha"):
        renamed.encode([{"zeta": 1, "b": 4, "kind": "x", "alpha": 0.5}])
    back = renamed.renamed({new: old for old, new in names.items()})
    assert back == space


@pytest.mark.parametrize(
    ("names", "rule", "field"),
    [
        ({"speed": "lr"}, "unknown-hyperparameter", "speed"),
        ({"rate": "share"}, "repeated-name", "share"),
        ({"rate": "x", "share": "x"}, "repeated-name", "x"),
    ],
)
def test_names_that_a_space_cannot_have_are_refused(
    names: dict[str, str], rule: str, field: str
) -> None:
    with refuses(rule, field=field):
        Space.of(EVERY_KIND).renamed(names)


VALID = {"rate": 1e-3, "share": 1.5, "depth": 3, "trees": 9, "kernel": "rbf", "size": 32, "seed": 7}


def test_names_may_be_exchanged() -> None:
    exchanged = Space.of(EVERY_KIND).renamed({"rate": "share", "share": "rate"})
    assert exchanged.encode([{**VALID, "rate": 1.5, "share": 1e-3}])


HALF = "\ud800"


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"ok": [1, 2], f"n{HALF}": (0.0, 1.0)}, r"n\ud800"),
        ({"ok": [1, 2], "x": ["a", HALF]}, "x"),
        ({"ok": [1, 2], "x": {"ordinal": ["a", HALF]}}, "x"),
        ({"ok": [1, 2], "x": HALF}, "x"),
        ({"ok": [1, 2], "m": {"a": {f"c{HALF}": (1, 2)}, "b": {}}}, r"m:a:c\ud800"),
        ({"ok": [1, 2], "m": {HALF: {}, "b": {}}}, "m"),
        ({"x": ["\udcff", "b"]}, "x"),
    ],
)
def test_halves_of_characters_are_refused(given, name) -> None:
    for given_as in (given, json.loads(json.dumps(given))):
        if any(isinstance(value, list) and value == [0.0, 1.0] for value in given_as.values()):
            continue  # JSON has no tuples.
        with pytest.raises(SpaceError) as refused:
            Space.of(given_as)
        assert f"'{name}'" in str(refused.value)
        str(refused.value).encode()


def test_halves_of_characters_are_refused_in_json() -> None:
    text = Space.of({"x": ["a", "MARK"]}).to_json()
    for half in (HALF, r"\ud800", r"\uDFFF"):
        with refuses("half-character", field="x"):
            Space.from_json(text.replace("MARK", half))


def test_halves_of_characters_are_refused_in_optuna_distributions() -> None:
    distributions = pytest.importorskip("optuna").distributions
    with refuses("half-character", field="x"):
        Space.of({"x": distributions.CategoricalDistribution(["a", HALF])})


def test_whole_characters_are_kept() -> None:
    given = {"x\U0001f600": ["\U0001f600", "é", "\\ud800"]}
    space = Space.of(given)
    assert Space.from_json(space.to_json()) == space
    assert space.parameters[0].choices == ("\U0001f600", "é", "\\ud800")
