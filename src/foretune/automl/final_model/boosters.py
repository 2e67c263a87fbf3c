"""Checks the parts of a model file that libraries of boosted trees read.

The readers of these libraries are compiled code and trust their input, so each has its own check.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn

from foretune.automl.final_model.booster_catboost import check_catboost
from foretune.automl.final_model.booster_xgboost import check_xgboost
from foretune.automl.final_model.damaged_part import DamagedPartError
from foretune.numerics.lightgbm_text import check_text

Node = dict[str, Any]
ReadEntry = Callable[[str], bytes]
"""Takes the name of an entry of the archive and returns its bytes."""
CATBOOST_STATE = frozenset(("__model", "_prediction_values_change", "_loss_value_change"))
"""The parts of the state of a CatBoost model beside its parameters."""


def check_boosters(description: Any, read: ReadEntry) -> None:
    """Raise DamagedPartError if a booster in the description of a file is damaged."""
    nodes = list(_nodes(description))
    checked: list[Node] = []
    for node in nodes:
        check = _CHECKS.get((node.get("__module__"), node.get("__class__")))
        if check is not None and node.get("__loader__") != "TypeNode":
            checked += [node, *check(node, read)]
    _check_identities(nodes, checked)


def _check_identities(nodes: list[Node], checked: list[Node]) -> None:
    """Refuse a second object with the number of a checked one, because skops makes only one."""
    sound = {id(node) for node in checked}
    numbers = {str(node.get("__id__")) for node in checked}
    if any(str(node.get("__id__")) in numbers and id(node) not in sound for node in nodes):
        _refuse("is there twice")


def _check_lightgbm(booster: Node, read: ReadEntry) -> list[Node]:  # noqa: ARG001
    state, content = _state(booster)
    handles = [content[name] for name in ("_handle", "handle") if name in content]
    if not handles:
        _refuse("has no text")
    for handle in handles:
        check_text(_text_of(handle))
    return [state, *handles]


def _check_xgboost(booster: Node, read: ReadEntry) -> list[Node]:
    state, content = _state(booster)
    handle = _node(content.get("handle"))
    check_xgboost(_bytes_of(handle, "BytearrayNode", read))
    return [state, handle]


def _check_catboost(model: Node, read: ReadEntry) -> list[Node]:
    state, content = _state(model)
    if any(name.startswith("_") for name in content.keys() - CATBOOST_STATE):
        _refuse("has another state")
    handle = _node(content.get("__model"))
    check_catboost(_bytes_of(handle, "BytesNode", read))
    return [state, handle]


_CHECKS: Mapping[tuple[Any, Any], Callable[[Node, ReadEntry], list[Node]]] = {
    ("lightgbm.basic", "Booster"): _check_lightgbm,
    ("xgboost.core", "Booster"): _check_xgboost,
    ("catboost.core", "CatBoostClassifier"): _check_catboost,
    ("catboost.core", "CatBoostRegressor"): _check_catboost,
}
"""The check of each class: it raises for a damaged booster, and returns the nodes it has seen."""


def may_hold_boosters(text: bytes) -> bool:
    """Return whether a description names a module of these libraries; if not, skip parsing it."""
    return any(str(module).encode() in text for module, _ in _CHECKS)


def _nodes(description: Any) -> Iterator[Node]:
    waiting = [description]
    while waiting:
        each = waiting.pop()
        if isinstance(each, list):
            waiting.extend(each)
        elif isinstance(each, dict):
            waiting.extend(each.values())
            yield each


def _state(booster: Node) -> tuple[Node, Mapping[str, Any]]:
    """Return the node of an object's state, which must be a dictionary, and its content."""
    state = booster.get("content")
    if not isinstance(state, dict) or state.get("__loader__") != "DictNode":
        _refuse("has no state")
    inner = state.get("content")
    if state.get("__class__") != "dict" or not isinstance(inner, dict):
        _refuse("has no state")
    return state, inner


def _text_of(handle: Any) -> str:
    if not isinstance(handle, dict) or handle.get("__loader__") != "JsonNode":
        _refuse("has no text")
    content = handle.get("content")
    text = json.loads(content) if isinstance(content, str) else None
    if not isinstance(text, str):
        _refuse("has no text")
    return text


def _node(given: Any) -> Node:
    if not isinstance(given, dict):
        _refuse("has no bytes")
    return given


def _bytes_of(handle: Node, loader: str, read: ReadEntry) -> bytes:
    if handle.get("__loader__") != loader:
        _refuse("has no bytes")
    name = handle.get("file")
    if not isinstance(name, str):
        _refuse("has no bytes")
    return read(name)


def _refuse(what: str) -> NoReturn:
    raise DamagedPartError(f"its booster {what}")
