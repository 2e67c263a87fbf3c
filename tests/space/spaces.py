"""Spaces that the tests share: hand-made ones, and a strategy for random conditional ones."""

import json
from typing import Any

from hypothesis import strategies as st

from foretune.errors import SpaceError
from foretune.space import Space

Item = dict[str, Any]

EVERY_KIND = {
    "rate": (1e-4, 1e-1, "log"),
    "share": (0.0, 2.0),
    "depth": (1, 11),
    "trees": (1, 1000, "log"),
    "kernel": ["linear", "poly", "rbf"],
    "size": {"ordinal": [16, 32, 128]},
    "seed": 7,
}
CASH = {
    "model": {"svm": {"C": (1e-3, 1e3, "log")}, "forest": {"trees": (10, 500), "depth": (1, 9)}},
    "budget": (0.0, 1.0),
}
CHOICES: list[list[Any]] = [
    ["a", "b"],
    ["x", "y", "z", "None"],
    [True, False],
    [1, 2, 4],
    [0.5, 1.5],
    [None, "a"],
    [None, True, 3, "3", 2.5],
]


def space_of_json(
    hyperparameters: list[Item], conditions: list[Item], forbiddens: list[Item]
) -> Space:
    """A space straight from the parts of its JSON."""
    parts = {
        "hyperparameters": hyperparameters,
        "conditions": conditions,
        "forbiddens": forbiddens,
    }
    return Space.from_json(json.dumps(parts))


@st.composite
def conditional_spaces(draw: st.DrawFn) -> Space:
    """A random space with nested conditions and forbidden clauses that ConfigSpace accepts."""
    items = [draw(_hyperparameters(f"p{i}")) for i in range(draw(st.integers(1, 6)))]
    conditions = [
        draw(_conditions(item["name"], items[:position]))
        for position, item in enumerate(items)
        if position > 0 and draw(st.booleans())
    ]
    forbiddens = [draw(_clauses(items)) for _ in range(draw(st.integers(0, 2)))]
    while True:
        try:
            space = space_of_json(items, conditions, forbiddens)
            space.sample(20, seed=0)
            _ = space.config_space  # which compares floats a little otherwise than Foretune
        except (SpaceError, ValueError):  # ConfigSpace refuses, for one, to forbid the defaults
            (forbiddens or conditions).pop()
        else:
            return space


@st.composite
def _hyperparameters(draw: st.DrawFn, name: str) -> Item:
    kind = draw(st.sampled_from(["float", "int", "categorical", "ordinal", "constant"]))
    if kind in ("float", "int"):
        log = draw(st.booleans())
        low = draw(st.integers(1 if log else -5, 20))
        high = low + draw(st.integers(1, 300))
        scale = draw(st.sampled_from([1, 0.01])) if kind == "float" else 1
        return {
            "type": f"uniform_{kind}",
            "name": name,
            "lower": low * scale,
            "upper": high * scale,
            "log": log,
        }
    choices = draw(st.sampled_from(CHOICES))
    if kind == "constant":
        return {"type": "constant", "name": name, "value": choices[0]}
    key = "choices" if kind == "categorical" else "sequence"
    return {"type": kind, "name": name, key: choices}


def _values_of(item: Item) -> st.SearchStrategy[Any]:
    if item["type"] == "uniform_int":
        return st.integers(item["lower"], item["upper"])
    if item["type"] == "uniform_float":
        return st.sampled_from([item["lower"], (item["lower"] + item["upper"]) / 2])
    return st.sampled_from(item.get("choices") or item.get("sequence") or [item.get("value")])


def _is_ordered(item: Item) -> bool:
    return item["type"] in ("uniform_int", "uniform_float", "ordinal")


@st.composite
def _conditions(draw: st.DrawFn, child: str, parents: list[Item], depth: int = 0) -> Item:
    kind = draw(st.sampled_from(["EQ", "EQ", "IN", "NEQ", "LT", "GT", "AND", "OR"]))
    if kind in ("AND", "OR"):
        if depth < 2:
            parts = [draw(_conditions(child, parents, depth + 1)) for _ in range(2)]
            return {"type": kind, "child": child, "conditions": parts}
        kind = "EQ"
    parent = draw(st.sampled_from(parents))
    if kind in ("LT", "GT") and not _is_ordered(parent):
        kind = "NEQ"
    value: Item = {"value": draw(_values_of(parent))}
    if kind == "IN":
        value = {"values": draw(st.lists(_values_of(parent), min_size=1, max_size=3))}
    return {"type": kind, "child": child, "parent": parent["name"], **value}


@st.composite
def _clauses(draw: st.DrawFn, items: list[Item], depth: int = 0) -> Item:
    kind = draw(st.sampled_from(["EQUALS", "IN", "CLAUSE", "RELATION", "AND", "OR"]))
    if kind in ("AND", "OR"):
        if depth < 2:
            parts = [draw(_clauses(items, depth + 1)) for _ in range(2)]
            return {"type": kind, "clauses": parts}
        kind = "EQUALS"
    one = draw(st.sampled_from(items))
    numbers = [item for item in items if item["type"] in ("uniform_int", "uniform_float")]
    comparison = draw(st.sampled_from(["LT", "LE", "GT", "GE"]))
    if kind == "RELATION" and numbers:
        left, right = draw(st.sampled_from(numbers)), draw(st.sampled_from(numbers))
        return {"type": f"RELATION_{comparison}", "left": left["name"], "right": right["name"]}
    if kind == "CLAUSE" and _is_ordered(one):
        return {
            "type": f"CLAUSE_{comparison}",
            "name": one["name"],
            "value": draw(_values_of(one)),
        }
    if kind == "IN":
        values = draw(st.lists(_values_of(one), min_size=1, max_size=3))
        return {"type": "IN", "name": one["name"], "values": values}
    return {"type": "EQUALS", "name": one["name"], "value": draw(_values_of(one))}
