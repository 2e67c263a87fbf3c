"""The trials of a study in a database of Optuna's, by a few plain queries.

Optuna's own interface makes several objects of every row, which takes many times as long.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from datetime import datetime, timedelta

    from optuna.distributions import BaseDistribution
    from optuna.trial import FrozenTrial, TrialState
    from sqlalchemy import Connection, TextClause

    AnyTrial: TypeAlias = "FrozenTrial | StoredTrial"

INFINITE = {"INF_POS": float("inf"), "INF_NEG": float("-inf")}
"""Values that no column of numbers holds, by the names that Optuna gives them."""
ROWS_AT_ONCE = 10_000
"""Rows that are taken from the database together: one by one they take three times as long."""


class StoredTrial(NamedTuple):
    """A trial as the tables hold it, by the names that Optuna has for its parts.

    Optuna's own object of a trial checks and copies all of them, which takes longer than reading.
    """

    trial_id: int
    number: int
    state: "TrialState"
    values: list[float] | None
    datetime_start: "datetime | None"
    datetime_complete: "datetime | None"
    params: dict[str, Any]
    distributions: "dict[str, BaseDistribution]"
    user_attrs: dict[str, Any]
    system_attrs: dict[str, Any]

    @property
    def duration(self) -> "timedelta | None":
        """How long it took, where both ends are known."""
        if self.datetime_start is None or self.datetime_complete is None:
            return None
        return self.datetime_complete - self.datetime_start


@dataclass(frozen=True, slots=True)
class StudyTables:
    """What the tables of a database say of one study."""

    connection: "Connection"
    study_id: int
    after: int = -1
    """Only trials with larger ids are read."""
    ids: tuple[int, ...] | None = None
    """Only these are read, where some are named."""
    until: int | None = None
    """Only trials with ids up to this one are read."""

    def trials(self, most: int | None = None) -> tuple[StoredTrial, ...]:
        """In their order, without the values that pruners are told on the way.

        most: how many to read, the first ones.
        """
        rows = self._rows_of_trials(most)
        if not rows:
            return ()
        # Rows come first: what a trial says of its end is stored before its state.
        return replace(self, until=rows[-1][0])._with_details(rows)

    def states(self) -> dict[int, str]:
        """The state of each trial, by its id."""
        return {row[0]: row[2] for row in self._rows_of_trials(None)}

    def _with_details(self, rows: Sequence[Any]) -> tuple[StoredTrial, ...]:
        from optuna.trial import TrialState

        states = {state.name: state for state in TrialState}
        values, (params, distributions) = self._values(), self._params()
        user, system = self._attributes("user"), self._attributes("system")
        return tuple(
            StoredTrial(
                trial,
                number,
                states[state],
                values.get(trial),
                start,
                complete,
                params[trial],
                distributions[trial],
                user[trial],
                system[trial],
            )
            for trial, number, state, start, complete in rows
        )

    def _rows_of_trials(self, most: int | None) -> Sequence[Any]:
        """(id, number, state, start, end) of each."""
        from sqlalchemy import DateTime, text

        query = text(
            "SELECT trial_id, number, state, datetime_start, datetime_complete FROM trials t "
            f"WHERE {self._which()} ORDER BY trial_id" + (" LIMIT :most" if most else "")
        )
        # SQLite keeps times as texts.
        typed = self._bound(query).columns(datetime_start=DateTime, datetime_complete=DateTime)
        given = self._given() | ({"most": most} if most else {})
        return self.connection.execute(typed, given).all()

    def _values(self) -> dict[int, list[float]]:
        found: dict[int, list[float]] = defaultdict(list)
        columns = ("value", "value_type")
        for trial, value, kind in self._rows("trial_values", *columns, order="objective"):
            found[trial].append(INFINITE.get(kind, value))
        return found

    def _params(self) -> "tuple[dict[int, dict[str, Any]], dict[int, dict[str, BaseDistribution]]]":
        params: dict[int, dict[str, Any]] = defaultdict(dict)
        distributions: dict[int, dict[str, BaseDistribution]] = defaultdict(dict)
        columns = ("param_name", "param_value", "distribution_json")
        for trial, name, value, text in self._rows("trial_params", *columns, order="param_id"):
            distribution, read = _distribution(text)
            distributions[trial][name] = distribution
            params[trial][name] = value if read is None else read(value)
        return params, distributions

    def _attributes(self, kind: str) -> dict[int, dict[str, Any]]:
        found: dict[int, dict[str, Any]] = defaultdict(dict)
        own = f"trial_{kind}_attribute"
        for trial, key, text in self._rows(f"{own}s", "key", "value_json", order=f"{own}_id"):
            found[trial][key] = _read_json(text)
        return found

    def _rows(self, table: str, *columns: str, order: str) -> Iterator[Any]:
        """(id, columns) of each row of a table that is of a trial of this study."""
        from sqlalchemy import text

        # KEY is a word of MySQL's own unless a dot stands before it.
        query = text(
            f"SELECT o.trial_id, {', '.join(f'o.{name}' for name in columns)} "
            f"FROM {table} o JOIN trials t ON t.trial_id = o.trial_id "
            f"WHERE {self._which()} ORDER BY o.trial_id, o.{order}"
        )
        found = self.connection.execute(self._bound(query), self._given())
        for part in found.partitions(ROWS_AT_ONCE):
            yield from part

    def _which(self) -> str:
        """The condition on trials `t`."""
        named = "" if self.ids is None else " AND t.trial_id IN :ids"
        upper = "" if self.until is None else " AND t.trial_id <= :until"
        return f"t.study_id = :study AND t.trial_id > :after{upper}{named}"

    def _bound(self, query: "TextClause") -> "TextClause":
        from sqlalchemy import bindparam

        return query if self.ids is None else query.bindparams(bindparam("ids", expanding=True))

    def _given(self) -> dict[str, Any]:
        values = {"study": self.study_id, "after": self.after}
        named = {"ids": self.ids, "until": self.until}
        return values | {name: value for name, value in named.items() if value is not None}


@lru_cache(maxsize=10_000)
def _read_json(text: str) -> Any:
    """Return the value of a JSON text. Most texts repeat, such as the owner of a trial.

    Trials share the value, so nobody may change it.
    """
    return json.loads(text)


@lru_cache(maxsize=10_000)
def _distribution(text: str) -> "tuple[BaseDistribution, Callable[[float], Any] | None]":
    """A distribution, and what makes a value of a number; None where it is the number itself.

    Most trials have the same ones.
    """
    from optuna.distributions import (
        CategoricalDistribution,
        FloatDistribution,
        json_to_distribution,
    )

    distribution = json_to_distribution(text)
    if type(distribution) is FloatDistribution:
        return distribution, None
    if type(distribution) is CategoricalDistribution:
        choices = distribution.choices
        return distribution, lambda place: choices[int(place)]
    return distribution, distribution.to_external_repr
