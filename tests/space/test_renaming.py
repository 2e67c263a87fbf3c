"""Choices under other names, and what is called by them."""

import json
from typing import Any

import pytest
from ConfigSpace import (
    AndConjunction,
    CategoricalHyperparameter,
    ConfigurationSpace,
    Constant,
    EqualsCondition,
    Float,
    ForbiddenAndConjunction,
    ForbiddenEqualsClause,
    ForbiddenInClause,
    GreaterThanCondition,
    InCondition,
    OrdinalHyperparameter,
)
from hypothesis import given
from hypothesis import strategies as st

from foretune.space import Space
from tests.refusals import refuses

NESTED = {
    "model": {"svm": {"C": (0.1, 10.0), "kernel": {"rbf": {"gamma": (0.1, 1.0)}, "poly": {}}}},
    "lr": (1e-3, 1.0, "log"),
}


def every_rule() -> ConfigurationSpace:
    space = ConfigurationSpace()
    opt = CategoricalHyperparameter("opt", ["adam", "sgd", None, True, 3, (1, 2)], default_value=3)
    size = OrdinalHyperparameter("size", ["small", "large"], default_value="large")
    momentum, decay, fixed = Float("momentum", (0, 1)), Float("decay", (0, 1)), Constant("k", "v")
    space.add(opt, size, momentum, decay, fixed)
    space.add(
        EqualsCondition(momentum, opt, "sgd"),
        AndConjunction(
            InCondition(decay, opt, ["sgd", "adam"]), GreaterThanCondition(decay, size, "small")
        ),
        ForbiddenAndConjunction(
            ForbiddenEqualsClause(opt, "adam"), ForbiddenInClause(size, ["small"])
        ),
    )
    return space


def test_choices_keep_their_rules_under_other_names() -> None:
    space = Space.of(every_rule())
    choices: dict[str, dict[Any, Any]] = {
        "opt": {"adam": "Adam", "sgd": "SGD", None: "none", True: False},
        "size": {"small": "S"},
        "k": {"v": "w"},
    }
    renamed = space.renamed({"opt": "optimizer"}, choices=choices)
    by_name = {p.name: p for p in renamed.parameters}
    assert by_name["optimizer"].choices == ("Adam", "SGD", "none", False, 3, (1, 2))
    assert by_name["optimizer"].default == 3
    assert by_name["size"].choices == ("S", "large")
    renamed.encode([{"optimizer": "SGD", "size": "S", "momentum": 0.5, "k": "w"}])
    renamed.encode([{"optimizer": "Adam", "size": "large", "decay": 0.5, "k": "w"}])
    with refuses("forbidden-combination"):
        renamed.encode([{"optimizer": "Adam", "size": "S", "k": "w"}])
    wrong = {"optimizer": "Adam", "size": "large", "decay": 0.5, "momentum": 0.5, "k": "w"}
    with refuses("inactive-value", field="momentum"):
        renamed.encode([wrong])
    back = {name: {new: old for old, new in each.items()} for name, each in choices.items()}
    back["optimizer"] = back.pop("opt")
    assert renamed.renamed({"optimizer": "opt"}, choices=back) == space


def test_hyperparameters_of_a_choice_are_named_after_it() -> None:
    space = Space.of(NESTED)
    renamed = space.renamed({}, choices={"model": {"svm": "SVC"}})
    assert renamed == Space.of({"model": {"SVC": NESTED["model"]["svm"]}, "lr": NESTED["lr"]})  # type: ignore[index]
    deeper = space.renamed({"model": "kind"}, choices={"model:svm:kernel": {"rbf": "RBF"}})
    assert set(deeper.names) == {
        *("lr", "kind", "kind:svm:C", "kind:svm:kernel", "kind:svm:kernel:RBF:gamma"),
    }
    own = space.renamed({"model:svm:C": "cost"}, choices={"model": {"svm": "SVC"}})
    assert {"cost", "model:SVC:kernel:rbf:gamma"} < set(own.names)


@given(st.permutations(["a", "b", "c", "d"]))
def test_choices_may_be_exchanged(order: list[str]) -> None:
    space = Space.of({"x": ["a", "b", "c", "d"]})
    exchanged = space.renamed({}, choices={"x": dict(zip("abcd", order, strict=True))})
    assert exchanged.parameters[0].choices == tuple(order)


def test_notes_and_weights_stay() -> None:
    config_space = ConfigurationSpace()
    config_space.add(
        CategoricalHyperparameter("x", ["a", "b"], weights=[0.9, 0.1], meta={"unit": "a"})
    )
    text = Space.of(config_space).renamed({}, choices={"x": {"a": "A"}}).to_json()
    [item] = json.loads(text)["hyperparameters"]
    assert (item["choices"], item["meta"]) == (["A", "b"], {"unit": "a"})
    assert item["weights"] == pytest.approx([0.9, 0.1])


@pytest.mark.parametrize(
    ("choices", "rule"),
    [
        ({"speed": {"a": "b"}}, "unknown-hyperparameter"),
        ({"lr": {0.1: 0.2}}, "not-a-choice"),
        ({"model": {"SVM": "x"}}, "not-a-choice"),
        ({"model:svm:kernel": {"rbf": "poly"}}, "repeated-choice"),
        ({"model": {"svm": object()}}, "not-json"),
    ],
)
def test_choices_that_a_space_cannot_have_are_refused(choices: Any, rule: str) -> None:
    with refuses(rule, field=next(iter(choices))):
        Space.of(NESTED).renamed({}, choices=choices)
