"""The trials of a study in a database of Optuna's, by a few plain queries.

Optuna's own interface makes several objects of every row, which takes many times as long.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.trial import FrozenTrial
    from sqlalchemy import Connection

INFINITE = {"INF_POS": float("inf"), "INF_NEG": float("-inf")}
"""Values that no column of numbers holds, by the names that Optuna gives them."""


@dataclass(frozen=True, slots=True)
class StudyTables:
    """What the tables of a database say of one study."""

    connection: "Connection"
    study_id: int

    def trials(self) -> "tuple[FrozenTrial, ...]":
        """In their order, without the values that pruners are told on the way."""
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
            for trial, number, state, start, complete in self._rows_of_trials()
        )

    def _rows_of_trials(self) -> Sequence[Any]:
        """(id, number, state, start, end) of each."""
        from sqlalchemy import DateTime, text

        query = text(
            "SELECT trial_id, number, state, datetime_start, datetime_complete FROM trials "
            "WHERE study_id = :study ORDER BY number"
        )
        # SQLite keeps times as texts.
        typed = query.columns(datetime_start=DateTime, datetime_complete=DateTime)
        return self.connection.execute(typed, {"study": self.study_id}).all()

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
            f"WHERE t.study_id = :study ORDER BY o.trial_id, o.{order}"
        )
        return iter(self.connection.execute(query, {"study": self.study_id}))


@lru_cache(maxsize=10_000)
def _distribution(text: str) -> "BaseDistribution":
    """Most trials have the same ones."""
    from optuna.distributions import json_to_distribution

    return json_to_distribution(text)
