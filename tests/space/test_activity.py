from fnmatch import fnmatchcase

import numpy as np
import pytest
from ConfigSpace import ConfigurationSpace
from ConfigSpace import conditions as given
from ConfigSpace import forbidden as clauses
from ConfigSpace.hyperparameters import OrdinalHyperparameter

from foretune.space import Space
from tests.refusals import refuses

NAN = np.nan


def space_with(condition_on_child: object) -> tuple[Space, ConfigurationSpace]:
    config_space = ConfigurationSpace(
        {
            "cat": ["a", "b", "c"],
            "num": (0, 9),
            "ord": OrdinalHyperparameter("ord", ["s", "m", "l"]),
            "y": (0.0, 1.0),
        }
    )
    config_space.add(condition_on_child(config_space))  # type: ignore[operator]
    return Space.of(config_space), config_space


@pytest.mark.parametrize(
    ("condition", "active"),  # the pattern: the letter of cat, the digit of num, the letter of ord
    [
        (lambda c: given.EqualsCondition(c["y"], c["cat"], "b"), "b??"),
        (lambda c: given.NotEqualsCondition(c["y"], c["cat"], "b"), "[ac]??"),
        (lambda c: given.InCondition(c["y"], c["cat"], ["a", "c"]), "[ac]??"),
        (lambda c: given.LessThanCondition(c["y"], c["num"], 4), "?[0123]?"),
        (lambda c: given.GreaterThanCondition(c["y"], c["num"], 4), "?[56789]?"),
        (lambda c: given.GreaterThanCondition(c["y"], c["ord"], "s"), "??[ml]"),
        (
            lambda c: given.AndConjunction(
                given.EqualsCondition(c["y"], c["cat"], "b"),
                given.LessThanCondition(c["y"], c["num"], 2),
            ),
            "b[01]?",
        ),
    ],
)
def test_conditions_on_every_combination(condition: object, active: str) -> None:
    space, _ = space_with(condition)
    grid = np.array([[c, n, o, 0.5] for c in range(3) for n in range(10) for o in range(3)])
    assert space.names == ("cat", "num", "ord", "y")
    settled = space.rules.settle(grid)
    for row, (c, n, o, _) in zip(settled, grid.astype(int), strict=True):
        text = f"{'abc'[c]}{n}{'sml'[o]}"
        assert ~np.isnan(row[3]) == fnmatchcase(text, active), text


def test_or_holds_although_one_parent_is_inactive() -> None:
    config_space = ConfigurationSpace({"a": [0, 1], "b": [0, 1], "c": [0, 1], "d": (0, 9)})
    config_space.add(given.EqualsCondition(config_space["b"], config_space["a"], 1))
    config_space.add(
        given.OrConjunction(
            given.EqualsCondition(config_space["d"], config_space["b"], 1),
            given.EqualsCondition(config_space["d"], config_space["c"], 1),
        )
    )
    space = Space.of(config_space)
    assert space.names == ("a", "c", "b", "d")
    settled = space.rules.settle(np.array([[0, 1, 1, 5], [0, 0, 1, 5], [1, 0, 1, 5.0]]))
    np.testing.assert_array_equal(settled, [[0, 1, NAN, 5], [0, 0, NAN, NAN], [1, 0, 1, 5]])


def test_not_equals_holds_for_an_inactive_parent_as_in_config_space() -> None:
    config_space = ConfigurationSpace({"a": [1, 0], "b": (1, 3), "c": (0, 9)})
    config_space.add(given.EqualsCondition(config_space["b"], config_space["a"], 1))
    config_space.add(given.NotEqualsCondition(config_space["c"], config_space["b"], 1))
    space = Space.of(config_space)
    settled = space.rules.settle(np.array([[1, 2, 5.0], [0, 1, 5], [0, 2, 5]]))
    np.testing.assert_array_equal(settled, [[1, NAN, 5], [0, 1, NAN], [0, 2, 5]])


@pytest.mark.parametrize(
    ("relation", "forbidden"),
    [
        (clauses.ForbiddenLessThanRelation, lambda a, b: a < b),
        (clauses.ForbiddenLessThanEqualsRelation, lambda a, b: a <= b),
        (clauses.ForbiddenEqualsRelation, lambda a, b: a == b),
        (clauses.ForbiddenGreaterThanRelation, lambda a, b: a > b),
        (clauses.ForbiddenGreaterThanEqualsRelation, lambda a, b: a >= b),
    ],
)
def test_relations_compare_values_and_not_ranks(relation: type, forbidden: object) -> None:
    sequence = [4, 1, 16]
    config_space = ConfigurationSpace({"o": OrdinalHyperparameter("o", sequence), "n": (1, 20)})
    clause = relation(config_space["o"], config_space["n"])
    config_space.add(clauses.ForbiddenAndConjunction(clause, _not_default(config_space)))
    space = Space.of(config_space)
    values = np.array([[n, rank] for n in range(1, 20) for rank in range(3)], dtype=float)
    expected = [forbidden(sequence[int(rank)], n) and n != 10 for n, rank in values]  # type: ignore[operator]
    assert space.names == ("n", "o")
    assert space.rules.forbidden(values).tolist() == expected


def _not_default(config_space: ConfigurationSpace) -> clauses.ForbiddenLike:
    """ConfigSpace does not let one forbid the default, which is n == 10."""
    assert config_space["n"].default_value == 10
    return clauses.ForbiddenInClause(config_space["n"], [n for n in range(1, 20) if n != 10])


def test_relations_between_texts_and_incomparable_ones() -> None:
    config_space = ConfigurationSpace({"a": ["x", "y"], "b": ["y", "z"], "n": (1, 2)})
    config_space.add(clauses.ForbiddenEqualsRelation(config_space["a"], config_space["b"]))
    config_space.add(clauses.ForbiddenEqualsRelation(config_space["a"], config_space["n"]))
    space = Space.of(config_space)
    values = np.array([[a, b, 1] for a in range(2) for b in range(2)], dtype=float)
    assert space.rules.forbidden(values).tolist() == [False, False, True, False]
    assert space.rules.forbidden(np.array([[1, NAN, 1]])).tolist() == [False]


def test_an_order_between_text_and_number_is_refused() -> None:
    # ConfigSpace notices only if both are active in the default configuration.
    space = Space.of({"a": ["x", "y"], "m": {"off": {}, "on": {"n": (1, 2)}}})
    clause = '"forbiddens": [{"type": "RELATION_LT", "left": "a", "right": "m:on:n"}]'
    text = space.to_json().replace('"forbiddens": []', clause)
    with refuses("incomparable", field="a", value="m:on:n"):
        Space.from_json(text)


def test_forbidden_clauses_do_not_hold_for_what_is_inactive() -> None:
    config_space = ConfigurationSpace({"m": ["a", "b"], "n": (0, 9)})
    config_space.add(given.EqualsCondition(config_space["n"], config_space["m"], "b"))
    config_space.add(
        clauses.ForbiddenOrConjunction(
            clauses.ForbiddenLessThanClause(config_space["n"], 3),
            clauses.ForbiddenGreaterThanEqualsClause(config_space["n"], 8),
        )
    )
    space = Space.of(config_space)
    values = np.array([[0, NAN], [1, 2], [1, 3], [1, 7], [1, 8]])
    assert space.rules.forbidden(values).tolist() == [False, True, False, False, True]
