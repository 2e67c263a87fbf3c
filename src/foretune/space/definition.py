"""The parts of a space: hyperparameters, conditions and forbidden clauses, in their order.

ConfigSpace keeps them in a graph. Building it takes three times longer for each level of nested
conditions, and quadratic time in the number of hyperparameters. So only `Space.config_space` makes
the graph. Everything else reads a `Definition`, which is made in linear time and has
ConfigSpace's order.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ConfigSpace.conditions import Condition, ConditionLike, Conjunction
from ConfigSpace.exceptions import (
    AmbiguousConditionError,
    CyclicDependancyError,
    HyperparameterAlreadyExistsError,
)
from ConfigSpace.forbidden import (
    ForbiddenClause,
    ForbiddenConjunction,
    ForbiddenLike,
    ForbiddenRelation,
)
from ConfigSpace.hyperparameters import Hyperparameter
from ConfigSpace.types import NotSet

AnyHyperparameter = Hyperparameter[Any, Any]


@dataclass(frozen=True)
class Definition:
    """The parts of a space; `Definition.of` makes it."""

    hyperparameters: Mapping[str, AnyHyperparameter]
    """Keys are names; parents stand before children, otherwise names are sorted."""
    condition_of: Mapping[str, ConditionLike]
    """Keys are the names of the children, in the order of the hyperparameters."""
    forbidden_clauses: tuple[ForbiddenLike, ...]
    name: str | None = None

    @staticmethod
    def of(
        hyperparameters: Iterable[AnyHyperparameter],
        conditions: Iterable[ConditionLike],
        forbidden_clauses: Iterable[ForbiddenLike],
        name: str | None = None,
    ) -> "Definition":
        """Sort the parts as ConfigSpace does; refuse (ValueError) the same mistakes."""
        named = by_name(hyperparameters)
        conditioned = _by_child(conditions)
        depths = _depths(named, conditioned)
        ordered = sorted(named, key=lambda each: (depths[each], each))
        roots = {each for each in named if depths[each] == 1}
        return Definition(
            {each: named[each] for each in ordered},
            {each: conditioned[each] for each in ordered if each in conditioned},
            # Clauses about hyperparameters that are always active come first.
            tuple(
                sorted(forbidden_clauses, key=lambda each: (not names_of(each) <= roots, str(each)))
            ),
            name,
        )

    @property
    def conditions(self) -> Sequence[ConditionLike]:
        """All conditions, in the order of their children."""
        return tuple(self.condition_of.values())

    @cached_property
    def parents(self) -> frozenset[str]:
        """Names of the hyperparameters that others are conditioned on."""
        return frozenset(
            parent for condition in self.condition_of.values() for parent in parents_of(condition)
        )

    def active_by_default(self) -> set[str]:
        """Return the names that are active in the default configuration, as ConfigSpace sees it."""
        values: dict[str, Any] = {}
        for name, hyperparameter in self.hyperparameters.items():
            condition = self.condition_of.get(name)
            active = condition is None or condition.satisfied_by_value(values)
            values[name] = hyperparameter.default_value if active else NotSet
        return {name for name, value in values.items() if value is not NotSet}


@dataclass
class Draft:
    """A space under construction; `Space.of` makes a space of it."""

    hyperparameters: dict[str, AnyHyperparameter] = field(default_factory=dict)
    conditions: list[ConditionLike] = field(default_factory=list)
    name: str | None = None
    forbidden_clauses: tuple[ForbiddenLike, ...] = ()

    def __getitem__(self, name: str) -> AnyHyperparameter:
        return self.hyperparameters[name]

    def add(self, *parts: AnyHyperparameter | ConditionLike) -> None:
        """Add hyperparameters (ValueError if one is there already) and conditions."""
        for part in parts:
            if not isinstance(part, Hyperparameter):
                self.conditions.append(part)
            elif part.name in self.hyperparameters:
                raise HyperparameterAlreadyExistsError(
                    f"Hyperparameter '{part.name}' already exists in space"
                )
            else:
                self.hyperparameters[part.name] = part


def by_name(hyperparameters: Iterable[AnyHyperparameter]) -> dict[str, AnyHyperparameter]:
    """Return hyperparameters by their names, which must differ (ValueError)."""
    draft = Draft()
    draft.add(*hyperparameters)
    return draft.hyperparameters


def parents_of(condition: ConditionLike) -> list[str]:
    """Return the names of the hyperparameters in a condition."""
    asked: Sequence[Condition]
    asked = condition.dlcs if isinstance(condition, Conjunction) else [condition]
    return [each.parent.name for each in asked]


def names_of(clause: ForbiddenLike) -> set[str]:
    """Return the names of the hyperparameters in a forbidden clause."""
    if isinstance(clause, ForbiddenConjunction):
        return set().union(*(names_of(each) for each in clause.dlcs))
    if isinstance(clause, ForbiddenRelation):
        return {clause.left.name, clause.right.name}
    assert isinstance(clause, ForbiddenClause)
    return {clause.hyperparameter.name}


def _by_child(conditions: Iterable[ConditionLike]) -> dict[str, ConditionLike]:
    found: dict[str, ConditionLike] = {}
    for condition in conditions:
        earlier = found.setdefault(condition.child.name, condition)
        if earlier is not condition and earlier != condition:
            raise AmbiguousConditionError(
                f"'{condition.child.name}' has two conditions, {earlier} and {condition}; join "
                "them with AND or OR"
            )
    return found


def _depths(
    hyperparameters: Iterable[str], conditioned: Mapping[str, ConditionLike]
) -> dict[str, int]:
    """Return 1 if always active, otherwise 1 more than the depth of the deepest parent."""
    children: dict[str, list[str]] = {}
    open_parents = {}
    for child, condition in conditioned.items():
        parents = set(parents_of(condition))
        open_parents[child] = len(parents)
        for parent in parents:
            children.setdefault(parent, []).append(child)
    depths = {name: 1 for name in hyperparameters if name not in conditioned}
    # The list grows while it is read: a name is added once all its parents have been read.
    ready = list(depths)
    for name in ready:
        for child in children.get(name, ()):
            depths[child] = max(depths.get(child, 1), depths[name] + 1)
            open_parents[child] -= 1
            if open_parents[child] == 0:
                ready.append(child)
    if any(open_parents.values()):
        raise CyclicDependancyError()
    return depths
