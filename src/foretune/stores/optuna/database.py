"""Read trials from the tables of an Optuna database by a few plain queries.

These are the only queries of Optuna's tables. Optuna's own interface reads one study at a time and
makes several objects of every row, which takes many times as long.
"""

import gc
import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from foretune.stores.optuna.labels import TURN
from foretune.stores.optuna.stored_curves import POINTS

if TYPE_CHECKING:
    from datetime import datetime, timedelta

    from optuna.distributions import BaseDistribution
    from optuna.trial import FrozenTrial, TrialState
    from sqlalchemy import Connection, TextClause

    AnyTrial: TypeAlias = "FrozenTrial | StoredTrial"

INFINITE = {"INF_POS": float("inf"), "INF_NEG": float("-inf")}
"""Values that no column of numbers holds, by Optuna's names for them."""
NO_REPORTS: Mapping[int, float] = MappingProxyType({})
NO_POINTS: Mapping[str, str] = MappingProxyType({})
ROWS_AT_ONCE = 10_000
"""How many rows are fetched together; one by one they take three times as long."""


@contextmanager
def pause_collector() -> Iterator[None]:
    """Pause the search for cycles among objects.

    Trials have no cycles, and the search takes a third of the time of reading 100,000 trials.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


class StoredTrial(NamedTuple):
    """A trial as it is stored; its parts have Optuna's names.

    Optuna's own class checks and copies all parts, which takes longer than reading them.
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
    reports: Mapping[int, float] = NO_REPORTS
    """{step: intermediate value}"""
    points: Mapping[str, str] = NO_POINTS
    """{system attribute: part of a curve that Foretune has stored}"""

    @property
    def duration(self) -> "timedelta | None":
        """How long the trial took; None if its begin or its end is unknown."""
        if self.datetime_start is None or self.datetime_complete is None:
            return None
        return self.datetime_complete - self.datetime_start

    @classmethod
    def of(cls, trial: "FrozenTrial") -> "StoredTrial":
        """Return a trial of Optuna's own class as one of these."""
        values = trial.values
        return cls(
            trial._trial_id,
            trial.number,
            trial.state,
            None if values is None else list(values),
            trial.datetime_start,
            trial.datetime_complete,
            trial.params,
            trial.distributions,
            trial.user_attrs,
            trial.system_attrs,
            trial.intermediate_values,
            {k: json.dumps(v) for k, v in trial.system_attrs.items() if k.startswith(POINTS)},
        )


@dataclass(frozen=True, slots=True)
class StudyTables:
    """The trials of some studies in the tables of a database."""

    connection: "Connection"
    studies: tuple[int, ...]
    after: int = -1
    """Only trials with larger ids are read."""
    ids: tuple[int, ...] | None = None
    """If given, only trials with these ids are read."""
    until: int | None = None
    """Only trials with ids up to this one are read."""
    with_points: bool = True
    """Whether what trials have reported is read, too."""

    def trials(self, most: int | None = None) -> tuple[StoredTrial, ...]:
        """Return the trials in their order, without intermediate values.

        most: read only so many, the first ones.
        """
        rows = self._rows_of_trials(most)
        if not rows:
            return ()
        # Rows are read first: the values of a trial are stored before its state.
        return replace(self, until=rows[-1][0])._with_details(rows)

    def trials_by_study(self) -> dict[int, tuple[StoredTrial, ...]]:
        """Return the trials of each study, with intermediate values, by the id of the study."""
        found: dict[int, list[StoredTrial]] = {study: [] for study in self.studies}
        rows = self._rows_of_trials(None)
        if rows:
            known = replace(self, until=rows[-1][0])
            trials, reports = known._with_details(rows), known._reports()
            for row, trial in zip(rows, trials, strict=True):
                told = reports.get(trial.trial_id)
                found[row[-1]].append(trial._replace(reports=told) if told else trial)
        return {study: tuple(trials) for study, trials in found.items()}

    def states(self) -> dict[int, str]:
        """Return the state of each trial, by its id."""
        return {row[0]: row[2] for row in self._rows_of_trials(None)}

    def marks(self) -> dict[int, str]:
        """Return a text for each trial that changes whenever it is paused, resumed or ended."""
        turns = dict(self._rows("trial_system_attributes", "value_json", key=TURN))
        return {trial: f"{state} {turns.get(trial, 0)}" for trial, state in self.states().items()}

    def points(self) -> dict[int, dict[str, str]]:
        """Return the parts of the curves of trials that have any, as JSON texts by key."""
        found: dict[int, dict[str, str]] = defaultdict(dict)
        rows = self._rows("trial_system_attributes", "key", "value_json", key=f"{POINTS}%")
        for trial, key, text in rows:
            found[trial][key] = text
        return found

    def _with_details(self, rows: Sequence[Any]) -> tuple[StoredTrial, ...]:
        from optuna.trial import TrialState

        states = {state.name: state for state in TrialState}
        values, (params, distributions) = self._values(), self._params()
        user, system = self._attributes("user"), self._attributes("system")
        points = self.points() if self.with_points else {}
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
                points=points.get(trial, NO_POINTS),
            )
            for trial, number, state, start, complete, _ in rows
        )

    def _rows_of_trials(self, most: int | None) -> Sequence[Any]:
        """Return (id, number, state, start, end, study) of each trial."""
        from sqlalchemy import DateTime, text

        query = text(
            "SELECT trial_id, number, state, datetime_start, datetime_complete, study_id "
            "FROM trials t "
            f"WHERE {self._which()} ORDER BY trial_id" + (" LIMIT :most" if most else "")
        )
        # SQLite keeps times as texts.
        typed = self._bound(query).columns(datetime_start=DateTime, datetime_complete=DateTime)
        given = self._parameters() | ({"most": most} if most else {})
        return self.connection.execute(typed, given).all()

    def _values(self) -> dict[int, list[float]]:
        found: dict[int, list[float]] = defaultdict(list)
        columns = ("value", "value_type")
        for trial, value, kind in self._rows("trial_values", *columns, order="objective"):
            found[trial].append(INFINITE.get(kind, value))
        return found

    def _reports(self) -> dict[int, dict[int, float]]:
        """Return {step: intermediate value} of each trial that has any."""
        found: dict[int, dict[int, float]] = defaultdict(dict)
        columns = ("step", "intermediate_value", "intermediate_value_type")
        for trial, step, value, kind in self._rows(
            "trial_intermediate_values", *columns, order="step"
        ):
            found[trial][step] = INFINITE.get(kind, float("nan") if value is None else value)
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
        rows = self._rows(
            f"{own}s", "key", "value_json", order=f"{own}_id", without_key=f"{POINTS}%"
        )
        for trial, key, text in rows:
            found[trial][key] = _read_json(text)
        return found

    def _rows(
        self,
        table: str,
        *columns: str,
        order: str = "trial_id",
        key: str | None = None,
        without_key: str | None = None,
    ) -> Iterator[Any]:
        """Yield (id, columns) of each row of a table that belongs to a trial of the studies.

        key, without_key: patterns of the keys of attributes that are read, or are not.
        """
        from sqlalchemy import text

        # KEY is a word of MySQL's own unless a dot stands before it.
        query = text(
            f"SELECT o.trial_id, {', '.join(f'o.{name}' for name in columns)} "
            f"FROM {table} o JOIN trials t ON t.trial_id = o.trial_id "
            f"WHERE {self._which()}"
            + ("" if key is None else " AND o.key LIKE :pattern")
            + ("" if without_key is None else " AND o.key NOT LIKE :pattern")
            + f" ORDER BY o.trial_id, o.{order}"
        )
        pattern = key or without_key
        given = self._parameters() | ({} if pattern is None else {"pattern": pattern})
        found = self.connection.execute(self._bound(query), given)
        for part in found.partitions(ROWS_AT_ONCE):
            yield from part

    def _which(self) -> str:
        """Return the SQL condition on trials `t`."""
        named = "" if self.ids is None else " AND t.trial_id IN :ids"
        upper = "" if self.until is None else " AND t.trial_id <= :until"
        return f"t.study_id IN :studies AND t.trial_id > :after{upper}{named}"

    def _bound(self, query: "TextClause") -> "TextClause":
        from sqlalchemy import bindparam

        lists = ["studies"] if self.ids is None else ["studies", "ids"]
        return query.bindparams(*(bindparam(name, expanding=True) for name in lists))

    def _parameters(self) -> dict[str, Any]:
        values = {"studies": self.studies, "after": self.after}
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
    """Return a distribution and its function from numbers to values; None if they are the same."""
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
