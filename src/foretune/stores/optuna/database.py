"""The trials of a study in a database of Optuna's, by a few plain queries.

Optuna's own interface makes several objects of every row, which takes many times as long.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.trial import FrozenTrial
    from sqlalchemy import Connection, TextClause

INFINITE = {"INF_POS": float("inf"), "INF_NEG": float("-inf")}
"""Values that no column of numbers holds, by the names that Optuna gives them."""


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

    def trials(self, most: int | None = None) -> "tuple[FrozenTrial, ...]":
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

    def _with_details(self, rows: Sequence[Any]) -> "tuple[FrozenTrial, ...]":
        from optuna.trial import FrozenTrial, TrialState

        values, (params, distributions) = self._values(), self._params()
        user, system = self._attributes("user"), self._attributes("system")
        return tuple(
            FrozenTrial(
                number=number,
                state=TrialState[state],
                value=None,
                values=values.get(trial),
                datetime_start=start,
                datetime_complete=complete,
                params=params[trial],
                distributions=distributions[trial],
                user_attrs=user[trial],
                system_attrs=system[trial],
                intermediate_values={},
                trial_id=trial,
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
            distributions[trial][name] = distribution = _distribution(text)
            params[trial][name] = distribution.to_external_repr(value)
        return params, distributions

    def _attributes(self, kind: str) -> dict[int, dict[str, Any]]:
        found: dict[int, dict[str, Any]] = defaultdict(dict)
        own = f"trial_{kind}_attribute"
        for trial, key, text in self._rows(f"{own}s", "key", "value_json", order=f"{own}_id"):
            found[trial][key] = json.loads(text)
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
        return iter(self.connection.execute(self._bound(query), self._given()))

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
def _distribution(text: str) -> "BaseDistribution":
    """Most trials have the same ones."""
    from optuna.distributions import json_to_distribution

    return json_to_distribution(text)
