import pytest
from ConfigSpace import (
    ConfigurationSpace,
    EqualsCondition,
    ForbiddenAndConjunction,
    ForbiddenEqualsClause,
    InCondition,
)

from foretune.space import Kind, Space
from tests.refusals import refuses


def joined(first: object, second: object) -> tuple[Kind, bool, tuple]:
    union = Space.of({"p": first}).union(Space.of({"p": second}))
    (p,) = union.parameters
    return p.kind, p.log, p.choices or (p.low, p.high)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ((0.0, 1.0), (0.5, 2.0), (Kind.FLOAT, False, (0.0, 2.0))),
        ((0.1, 1.0, "log"), (0.5, 2.0, "log"), (Kind.FLOAT, True, (0.1, 2.0))),
        ((0.1, 1.0, "log"), (0.0, 2.0), (Kind.FLOAT, False, (0.0, 2.0))),
        ((0.1, 1.0, "log"), (0.5, 2.0), (Kind.FLOAT, False, (0.1, 2.0))),
        ((1, 4), (3, 9), (Kind.INT, False, (1, 9))),
        ((1, 4), 9, (Kind.INT, False, (1, 9))),
        (0, (1, 4, "log"), (Kind.INT, False, (0, 4))),
        (2, (0.5, 1.0), (Kind.FLOAT, False, (0.5, 2.0))),
        (["a", "b"], ["c", "b"], (Kind.CATEGORICAL, False, ("a", "b", "c"))),
        ("a", ["b", "a"], (Kind.CATEGORICAL, False, ("a", "b"))),
        ("a", "b", (Kind.CATEGORICAL, False, ("a", "b"))),
        ({"ordinal": [1, 4]}, {"ordinal": [2, 4, 8]}, (Kind.ORDINAL, False, (1, 2, 4, 8))),
        (
            {"ordinal": ["s", "l"]},
            {"ordinal": ["s", "m", "l"]},
            (Kind.ORDINAL, False, ("s", "m", "l")),
        ),
    ],
)
def test_one_hyperparameter_is_widened(first: object, second: object, expected: tuple) -> None:
    assert joined(first, second) == expected


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((0.0, 1.0), (0, 1)),
        ((0, 1), ["a", "b"]),
        ({"ordinal": ["s", "m"]}, ["s", "m"]),
        ({"ordinal": ["s", "m"]}, {"ordinal": ["m", "s"]}),
        ((0, 4), 2.5),
        ((0, 4), "text"),
        ((0, 4), True),
    ],
)
def test_different_kinds_are_refused(first: object, second: object) -> None:
    with refuses("different-kinds", field="p"):
        joined(first, second)


def test_the_default_is_that_of_the_first() -> None:
    union = Space.of({"p": (0.0, 1.0)}).union(Space.of({"p": (0.0, 4.0)}))
    assert union.defaults().dicts() == [{"p": 0.5}]


def test_algorithms_and_hyperparameters_are_gained() -> None:
    first = Space.of({"m": {"svm": {"C": (1.0, 2.0)}, "knn": {}}, "n": (1, 5)})
    second = Space.of({"m": {"svm": {"C": (1.5, 3.0), "g": (0, 4)}, "tree": {}}, "s": (0, 2)})
    union = first.union(second)
    assert union.names == ("m", "n", "s", "m:svm:C", "m:svm:g")
    adopted = union.adopt(first.encode([{"m": "svm", "m:svm:C": 1.25, "n": 3}]))
    assert adopted.dicts() == [{"m": "svm", "n": 3, "s": 1, "m:svm:C": 1.25, "m:svm:g": 2}]
    adopted = union.adopt(second.encode([{"m": "tree", "s": 2}]))
    assert adopted.dicts() == [{"m": "tree", "n": 3, "s": 2}]
    assert adopted.space is union
    again = union.adopt(adopted)
    assert again == adopted


def shared(choices: list[str], condition: str, value: object) -> Space:
    config_space = ConfigurationSpace({"m": choices, "x": (0, 9)})
    make = {"EQ": EqualsCondition, "IN": InCondition}[condition]
    config_space.add(make(config_space["x"], config_space["m"], value))
    return Space.of(config_space)


def test_memberships_of_one_parent_are_joined() -> None:
    union = shared(["a", "b"], "EQ", "a").union(shared(["c", "a", "d"], "IN", ["c", "a"]))
    (condition,) = union.config_space.conditions
    assert condition.values == ["a", "c"]
    assert union.encode([{"m": "c", "x": 1}, {"m": "b"}, {"m": "d"}]).active[:, 1].tolist() == [
        True,
        False,
        False,
    ]


def test_other_differences_of_conditions_are_refused() -> None:
    conditional = shared(["a", "b"], "EQ", "a")
    with refuses("different-conditions", field="x"):
        conditional.union(Space.of({"m": ["a", "b"], "x": (0, 9)}))
    config_space = ConfigurationSpace({"m": ["a", "b"], "other": ["a", "b"], "x": (0, 9)})
    config_space.add(EqualsCondition(config_space["x"], config_space["other"], "a"))
    with refuses("different-conditions", field="x"):
        conditional.union(Space.of(config_space))


def forbidding(names: dict, *clauses: tuple[str, object]) -> Space:
    config_space = ConfigurationSpace(names)
    parts = [ForbiddenEqualsClause(config_space[name], value) for name, value in clauses]
    config_space.add(parts[0] if len(parts) == 1 else ForbiddenAndConjunction(*parts))
    return Space.of(config_space)


def test_the_union_allows_all_configurations_of_a_space() -> None:
    names = {"a": [1, 2], "b": [1, 2]}
    strict = forbidding(names, ("a", 2))
    assert not strict.union(Space.of(names)).rules.forbidden_clauses
    assert not Space.of(names).union(strict).rules.forbidden_clauses
    assert len(strict.union(strict).rules.forbidden_clauses) == 1


def test_clauses_about_what_the_other_does_not_know_are_kept() -> None:
    strict = forbidding({"a": [1, 2], "b": [1, 2]}, ("a", 2), ("b", 2))
    for union in (strict.union(Space.of({"a": [1, 2]})), Space.of({"a": [1, 2]}).union(strict)):
        assert len(union.rules.forbidden_clauses) == 1
        assert union.adopt(Space.of({"a": [1, 2]}).encode([{"a": 2}])).dicts() == [{"a": 2, "b": 1}]


def test_named_stages_stay_stages() -> None:
    marked = Space.of({"s": ["a", "b"]}, stages=["s"])
    plain = Space.of({"s": ["a", "c"]})
    for union in (marked.union(plain), plain.union(marked)):
        assert union.structure.kind == "cash"
        assert {a.name for a in union.structure.stages[0].algorithms} == {"a", "b", "c"}
