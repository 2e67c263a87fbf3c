"""The smallest space that holds two others, made from their JSON.

The union has the hyperparameters of both, wider ranges, and all choices. It allows everything that
one of the two allows. So a forbidden clause stays only if the other space has the same clause, or
lacks one of its hyperparameters.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NoReturn, TypeAlias

from foretune.errors import SpaceError
from foretune.space.definition import Definition
from foretune.space.json_format import canonical, write_space
from foretune.space.parameters import Kind, Parameter, choice_key, read_parameters

Item: TypeAlias = dict[str, Any]

MEMBERSHIP = {"EQ": "value", "IN": "values"}
"""Conditions that require certain values of one parent, and the JSON key of these values."""


def merge_definitions(first: Definition, second: Definition) -> str:
    """Return ConfigSpace's JSON of the union."""
    one, other = json.loads(write_space(first)), json.loads(write_space(second))
    ours, theirs = set(first.hyperparameters), set(second.hyperparameters)
    conditions = _conditions(_by_child(one), _by_child(other), ours & theirs)
    return json.dumps(
        {
            "name": one.get("name"),
            "hyperparameters": list(_hyperparameters(first, second, one, other)),
            "conditions": list(conditions),
            "forbiddens": list(_clauses(one["forbiddens"], other["forbiddens"], ours, theirs)),
        }
    )


def _hyperparameters(
    first: Definition, second: Definition, one: Mapping[str, Any], other: Mapping[str, Any]
) -> Iterator[Item]:
    ours = {item["name"]: item for item in one["hyperparameters"]}
    theirs = {item["name"]: item for item in other["hyperparameters"]}
    parameters = {p.name: p for p in read_parameters(first)}
    for name, item in ours.items():
        if name not in theirs or _bare(theirs[name]) == _bare(item):
            yield item
    for parameter in read_parameters(second):
        item = theirs[parameter.name]
        if parameter.name not in ours:
            yield item
        elif _bare(item) != _bare(ours[parameter.name]):
            meta = {**(item["meta"] or {}), **(ours[parameter.name]["meta"] or {})}
            yield {**_widen(parameters[parameter.name], parameter), "meta": meta or None}


def _bare(item: Item) -> str:
    return canonical({key: value for key, value in item.items() if key != "meta"})


def _widen(first: Parameter, second: Parameter) -> Item:
    """Return one hyperparameter that covers both, with the default of the first."""
    kinds = {first.kind, second.kind}
    if kinds <= {Kind.CATEGORICAL, Kind.CONSTANT}:
        return _join_choices(first, second)
    if kinds <= {Kind.ORDINAL, Kind.CONSTANT}:
        return _join_ranks(first, second)
    if not (kinds <= {Kind.FLOAT, Kind.CONSTANT} or kinds <= {Kind.INT, Kind.CONSTANT}):
        _refuse(first, second)
    return _join_ranges(first, second)


def _join_choices(first: Parameter, second: Parameter) -> Item:
    known = {choice_key(choice) for choice in first.choices}
    gained = [choice for choice in second.choices if choice_key(choice) not in known]
    return {
        "type": "categorical",
        "name": first.name,
        "choices": [*first.choices, *gained],
        "weights": None,
        "default_value": first.default,
    }


def _join_ranks(first: Parameter, second: Parameter) -> Item:
    """Merge numbers in their order; one of two other sequences must contain the other."""
    long, short = sorted((first.choices, second.choices), key=len, reverse=True)
    if all(type(c) in (int, float) for c in long + short) and all(
        list(sequence) == sorted(sequence) for sequence in (long, short)
    ):
        sequence = sorted(set(long) | set(short))
    elif [c for c in long if c in short] == list(short):
        sequence = list(long)
    else:
        _refuse(first, second)
    return {
        "type": "ordinal",
        "name": first.name,
        "sequence": sequence,
        "default_value": first.default,
    }


def _join_ranges(first: Parameter, second: Parameter) -> Item:
    kind = second.kind if first.kind is Kind.CONSTANT else first.kind
    number = int if kind is Kind.INT else float
    bounds: list[Any] = []
    for parameter in (first, second):
        ends = parameter.choices or (parameter.low, parameter.high)
        if any(isinstance(end, bool) or not isinstance(end, int | float) for end in ends):
            _refuse(first, second)
        if any(number(end) != end for end in ends):
            _refuse(first, second)
        bounds.extend(number(end) for end in ends)
    # A constant has no scale. Two ranges are on a log scale only if both are.
    log = all(p.log for p in (first, second) if p.is_number) and min(bounds) > 0
    return {
        "type": f"uniform_{kind}",
        "name": first.name,
        "lower": min(bounds),
        "upper": max(bounds),
        "default_value": number(first.default),
        "log": log,
    }


def _by_child(document: Mapping[str, Any]) -> dict[str, Item]:
    return {condition["child"]: condition for condition in document["conditions"]}


def _conditions(
    ours: Mapping[str, Item], theirs: Mapping[str, Item], shared: set[str]
) -> Iterator[Item]:
    for child in {**ours, **theirs}:
        if child in shared:
            yield _merge_condition(child, ours.get(child), theirs.get(child))
        else:
            yield ours[child] if child in ours else theirs[child]


def _merge_condition(child: str, one: Item | None, other: Item | None) -> Item:
    if one is not None and other is not None:
        if canonical(one) == canonical(other):
            return one
        if {one["type"], other["type"]} <= set(MEMBERSHIP) and one["parent"] == other["parent"]:
            values = {
                canonical(value): value
                for value in [*_condition_values(one), *_condition_values(other)]
            }
            return {
                "type": "IN",
                "child": child,
                "parent": one["parent"],
                "values": list(values.values()),
            }
    raise SpaceError(
        f"to join two spaces, hyperparameter '{child}' must depend on the same parent in both, but "
        "its conditions differ: rename it in one of them",
        rule="different-conditions",
        field=child,
    )


def _condition_values(condition: Item) -> list[Any]:
    found = condition[MEMBERSHIP[condition["type"]]]
    return list(found) if condition["type"] == "IN" else [found]


def _clauses(
    ours: Sequence[Item], theirs: Sequence[Item], our_names: set[str], their_names: set[str]
) -> Iterator[Item]:
    """Yield clauses of both spaces, and clauses with a hyperparameter that one space lacks."""
    in_both = {canonical(clause) for clause in ours} & {canonical(clause) for clause in theirs}
    for clause in ours:
        if canonical(clause) in in_both or not _names(clause) <= their_names:
            yield clause
    for clause in theirs:
        if not _names(clause) <= our_names:
            yield clause


def _names(clause: Item) -> set[str]:
    if "clauses" in clause:
        return set().union(*(_names(part) for part in clause["clauses"]))
    return {clause[key] for key in ("name", "left", "right") if key in clause}


def _refuse(first: Parameter, second: Parameter) -> NoReturn:
    raise SpaceError(
        f"to join two spaces, hyperparameter '{first.name}' must be of one kind in both, but it is "
        f"{first.kind} {first.allowed_text} and {second.kind} {second.allowed_text}: rename it in "
        "one of them",
        rule="different-kinds",
        field=first.name,
    )
