"""Conditions and forbidden clauses, compiled once and evaluated on whole batches.

A compiled rule reads the (n, H) matrix of values, where NaN means inactive. As in ConfigSpace's
own check, every comparison with an inactive hyperparameter is false, so `NotEquals` is true.
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from ConfigSpace import conditions as given
from ConfigSpace import forbidden as clauses

from foretune._base.arrays import Bools, Floats
from foretune.errors import SpaceError
from foretune.space.definition import Definition
from foretune.space.parameters import Parameter

Predicate: TypeAlias = Callable[[Floats], Bools]
Relation: TypeAlias = Callable[[Any, Any], Any]

RELATIONS: Mapping[type, Relation] = {
    given.EqualsCondition: operator.eq,
    given.NotEqualsCondition: operator.ne,
    given.LessThanCondition: operator.lt,
    given.GreaterThanCondition: operator.gt,
    clauses.ForbiddenEqualsClause: operator.eq,
    clauses.ForbiddenLessThanClause: operator.lt,
    clauses.ForbiddenLessThanEqualsClause: operator.le,
    clauses.ForbiddenGreaterThanClause: operator.gt,
    clauses.ForbiddenGreaterThanEqualsClause: operator.ge,
    clauses.ForbiddenEqualsRelation: operator.eq,
    clauses.ForbiddenLessThanRelation: operator.lt,
    clauses.ForbiddenLessThanEqualsRelation: operator.le,
    clauses.ForbiddenGreaterThanRelation: operator.gt,
    clauses.ForbiddenGreaterThanEqualsRelation: operator.ge,
}

CLAUSES_WITH_A_VALUE = (
    clauses.ForbiddenEqualsClause,
    clauses.ForbiddenLessThanClause,
    clauses.ForbiddenLessThanEqualsClause,
    clauses.ForbiddenGreaterThanClause,
    clauses.ForbiddenGreaterThanEqualsClause,
)


@dataclass(frozen=True, slots=True)
class Forbidden:
    """One compiled forbidden clause."""

    text: str
    columns: tuple[int, ...]
    """The columns of the hyperparameters in the clause."""
    holds: Predicate


@dataclass(frozen=True, slots=True)
class Rules:
    """The conditions of all hyperparameters, and the forbidden clauses."""

    conditions: tuple[Predicate | None, ...]
    """One for each hyperparameter, parents before children; None if it is always active."""
    forbidden_clauses: tuple[Forbidden, ...]

    def settle(self, values: Floats) -> Floats:
        """Return a copy of complete `values` (n, H) with NaN for everything inactive."""
        settled = values.copy()
        for child, condition in enumerate(self.conditions):
            if condition is not None:
                settled[~condition(settled), child] = np.nan
        return settled

    def forbidden(self, values: Floats) -> Bools:
        """Return (n,), True where a settled row matches a forbidden clause."""
        hit = np.zeros(len(values), dtype=bool)
        for clause in self.forbidden_clauses:
            hit |= clause.holds(values)
        return hit


def compile_rules(definition: Definition, parameters: Sequence[Parameter]) -> Rules:
    """Compile the rules of a space for the columns of its hyperparameters."""
    compiler = _Compiler({p.name: (i, p) for i, p in enumerate(parameters)})
    by_child = {
        child: compiler.condition(condition) for child, condition in definition.condition_of.items()
    }
    return Rules(
        conditions=tuple(by_child.get(p.name) for p in parameters),
        forbidden_clauses=tuple(
            Forbidden(
                text=str(clause).replace("Forbidden: ", ""),
                columns=compiler.columns(clause),
                holds=compiler.clause(clause),
            )
            for clause in definition.forbidden_clauses
        ),
    )


@dataclass(frozen=True, slots=True)
class _Compiler:
    lookup: Mapping[str, tuple[int, Parameter]]

    def condition(self, condition: given.ConditionLike) -> Predicate:
        if isinstance(condition, given.AndConjunction):
            return _every([self.condition(part) for part in condition.components])
        if isinstance(condition, given.OrConjunction):
            return _some([self.condition(part) for part in condition.components])
        if isinstance(condition, given.InCondition):
            return self._member(condition.parent.name, condition.values)
        assert isinstance(condition, given.BinaryOpCondition)
        return self._compare(condition.parent.name, condition.value, type(condition))

    def clause(self, clause: clauses.ForbiddenLike) -> Predicate:
        if isinstance(clause, clauses.ForbiddenAndConjunction):
            return _every([self.clause(part) for part in clause.components])
        if isinstance(clause, clauses.ForbiddenOrConjunction):
            return _some([self.clause(part) for part in clause.components])
        if isinstance(clause, clauses.ForbiddenInClause):
            return self._member(clause.hyperparameter.name, clause.values)
        if isinstance(clause, clauses.ForbiddenRelation):
            return self._relate(clause.left.name, clause.right.name, type(clause))
        assert isinstance(clause, CLAUSES_WITH_A_VALUE)
        return self._compare(clause.hyperparameter.name, clause.value, type(clause))

    def columns(self, clause: clauses.ForbiddenLike) -> tuple[int, ...]:
        if isinstance(clause, clauses.ForbiddenConjunction):
            inner = (column for part in clause.dlcs for column in self.columns(part))
            return tuple(dict.fromkeys(inner))
        if isinstance(clause, clauses.ForbiddenRelation):
            return self.lookup[clause.left.name][0], self.lookup[clause.right.name][0]
        return (self.lookup[clause.hyperparameter.name][0],)

    def _compare(self, name: str, value: Any, rule: type) -> Predicate:
        (column, parameter), compare = self.lookup[name], RELATIONS[rule]
        number = parameter.number_of(value)
        return lambda values: np.asarray(compare(values[:, column], number))

    def _member(self, name: str, members: Sequence[Any]) -> Predicate:
        column, parameter = self.lookup[name]
        numbers = np.array([parameter.number_of(value) for value in members])
        return lambda values: np.isin(values[:, column], numbers)

    def _relate(self, left: str, right: str, rule: type) -> Predicate:
        """Compare the values of two hyperparameters, never the indices of choices."""
        compare = RELATIONS[rule]
        (i, first), (j, second) = self.lookup[left], self.lookup[right]
        one, other = _numbers_of(first), _numbers_of(second)
        if one is not None and other is not None:
            return lambda values: np.asarray(compare(one(values[:, i]), other(values[:, j])))
        if first.is_number or second.is_number:
            return self._incomparable(first, second, compare)
        try:
            truth = np.array([[bool(compare(a, b)) for b in second.choices] for a in first.choices])
        except TypeError:
            return self._incomparable(first, second, compare)
        return lambda values: _look_up(truth, values[:, i], values[:, j])

    @staticmethod
    def _incomparable(first: Parameter, second: Parameter, compare: Relation) -> Predicate:
        if compare is operator.eq:
            return lambda values: np.zeros(len(values), dtype=bool)
        raise SpaceError(
            f"a forbidden relation must compare like with like, but '{first.name}' has "
            f"{first.allowed_text} and '{second.name}' has {second.allowed_text}: "
            "drop the relation",
            rule="incomparable",
            field=first.name,
            value=second.name,
        )


def _numbers_of(parameter: Parameter) -> Callable[[Floats], Floats] | None:
    """Return the function from a column to its numbers; None if the choices are no numbers."""
    if parameter.is_number:
        return lambda column: column
    if not all(isinstance(c, int | float) for c in parameter.choices):
        return None
    table = np.array([*map(float, parameter.choices), np.nan])
    return lambda column: table[_indices(column)]


def _look_up(truth: Bools, left: Floats, right: Floats) -> Bools:
    padded = np.zeros((truth.shape[0] + 1, truth.shape[1] + 1), dtype=bool)
    padded[:-1, :-1] = truth
    found: Bools = padded[_indices(left), _indices(right)]
    return found


def _indices(column: Floats) -> Any:
    """Return the choice indices of a column, -1 where inactive."""
    return np.where(np.isnan(column), -1, column).astype(np.int64)


def _every(parts: Sequence[Predicate]) -> Predicate:
    return lambda values: np.logical_and.reduce([part(values) for part in parts])


def _some(parts: Sequence[Predicate]) -> Predicate:
    return lambda values: np.logical_or.reduce([part(values) for part in parts])
