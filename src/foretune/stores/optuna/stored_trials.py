"""Past studies out of an Optuna storage, fast enough for thousands of them.

A database is read by a few plain queries: Optuna's own interface asks for the trials of one study
at a time, which takes far longer. Other storages are read through that interface.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from optuna.distributions import BaseDistribution, json_to_distribution
from optuna.storages import BaseStorage, RDBStorage
from optuna.trial import TrialState

from foretune._base.cache import load_or_make
from foretune.stores.optuna.constraints import CONSTRAINTS, infeasible
from foretune.stores.optuna.past_studies import VERSION, PastTrials, TrialCells
from foretune.stores.optuna.values import has_plain_values

if TYPE_CHECKING:
    from sqlalchemy import Connection

STUDIES = "studies"
"""The folder of the user's cache that keeps what was read."""


def past_studies(storage: BaseStorage, objectives: int, *, but: int | None) -> PastTrials | None:
    """All studies with so many objectives, except the one whose id is `but`; None for none."""
    database = _database(storage)
    if database is None:
        return _through_interface(storage, objectives, but)
    with database.engine.connect() as connection:
        state = _state(connection, objectives, but)
        if state is None:
            return None
        return load_or_make(
            STUDIES,
            state,
            load=PastTrials.load,
            make=lambda: _by_queries(connection, objectives, but),
            save=PastTrials.save,
        )


def same_storage(one: BaseStorage, other: BaseStorage) -> bool:
    """Whether two storages are the same object, or open the same database."""
    first, second = _database(one), _database(other)
    if first is None or second is None:
        return one is other
    return _place(first) == _place(second)


def _place(database: RDBStorage) -> object:
    """The address of a database; a file may be written as several."""
    url = database.engine.url
    if url.get_backend_name() == "sqlite" and url.database:
        return Path(url.database).resolve()
    return url


def _database(storage: BaseStorage) -> RDBStorage | None:
    # A study wraps its database in a cache of trials.
    inner = getattr(storage, "_backend", storage)
    return inner if isinstance(inner, RDBStorage) else None


@dataclass
class _Collected:
    """Trials as they are read; `past` makes the table."""

    signs: dict[int, tuple[float, ...]]
    """By study: 1 for an objective that is minimised, else -1."""
    names: Mapping[int, str]
    studies: list[int] = field(default_factory=list)
    """Of each trial, ascending."""
    losses: list[Sequence[float]] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    kinds: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    _places: dict[tuple[str, Any], int] = field(default_factory=dict)

    def add_trial(self, study: int, values: Sequence[float]) -> int | None:
        """The row of a trial with these values; None where it has no finite one."""
        losses = np.multiply(values, self.signs[study])
        if len(values) != len(self.signs[study]) or not np.isfinite(losses).all():
            return None
        self.studies.append(study)
        self.losses.append(losses.tolist())
        return len(self.losses) - 1

    def add_cell(self, row: int, name: str, distribution: Any, value: float) -> None:
        """One hyperparameter; `distribution` is any key that `past` is told the meaning of."""
        self.rows.append(row)
        self.kinds.append(self._places.setdefault((name, distribution), len(self._places)))
        self.values.append(value)

    def past(self, meaning: Mapping[Any, BaseDistribution] | None = None) -> PastTrials | None:
        """The table of all trials."""
        if not self.losses:
            return None
        studies, task_index = np.unique(self.studies, return_inverse=True)
        kinds = tuple(
            (name, key if meaning is None else meaning[key]) for name, key in self._places
        )
        cells = TrialCells(
            np.array(self.rows, dtype=np.int64),
            np.array(self.kinds, dtype=np.int64),
            np.array(self.values, dtype=float),
            kinds,
        )
        names = [self.names[study] for study in studies.tolist()]
        return PastTrials.of_cells(names, task_index.astype(np.int32), np.array(self.losses), cells)


def _through_interface(storage: BaseStorage, objectives: int, but: int | None) -> PastTrials | None:
    found = [study for study in storage.get_all_studies() if study._study_id != but]
    fitting = [study for study in found if len(study.directions) == objectives]
    signs = {s._study_id: signs_of(d.name for d in s.directions) for s in fitting}
    collected = _Collected(signs, {study._study_id: study.study_name for study in fitting})
    for study in sorted(signs):
        for trial in storage.get_all_trials(study, deepcopy=False, states=(TrialState.COMPLETE,)):
            if infeasible(trial.system_attrs):
                continue
            row = collected.add_trial(study, trial.values)
            if row is not None:
                for name, distribution in trial.distributions.items():
                    if has_plain_values(distribution):
                        stored = distribution.to_internal_repr(trial.params[name])
                        collected.add_cell(row, name, distribution, stored)
    return collected.past()


def _state(connection: "Connection", objectives: int, but: int | None) -> str | None:
    """A sha256 (hex) that changes whenever a trial of another study ends; None without any."""
    from sqlalchemy import text

    query = text(
        "SELECT s.study_id, s.study_name, COUNT(*), MAX(t.trial_id), MAX(t.datetime_complete) "
        "FROM studies s JOIN trials t ON t.study_id = s.study_id WHERE t.state = 'COMPLETE' "
        "GROUP BY s.study_id, s.study_name ORDER BY s.study_id"
    )
    rows = [[str(cell) for cell in row] for row in connection.execute(query) if row[0] != but]
    if not rows:
        return None
    return hashlib.sha256(json.dumps([VERSION, objectives, rows]).encode()).hexdigest()


def _by_queries(connection: "Connection", objectives: int, but: int | None) -> PastTrials | None:
    from sqlalchemy import text

    def rows(query: str) -> Iterable[Any]:
        return connection.execute(text(query))

    directions: dict[int, list[str]] = {}
    for study, direction in rows(
        "SELECT study_id, direction FROM study_directions ORDER BY study_id, objective"
    ):
        directions.setdefault(study, []).append(direction)
    signs = {
        study: signs_of(names)
        for study, names in directions.items()
        if study != but and len(names) == objectives
    }
    names = {row[0]: row[1] for row in rows("SELECT study_id, study_name FROM studies")}
    collected = _Collected(signs, names)
    values: dict[int, list[float]] = {}
    for trial, value, kind in rows(
        "SELECT trial_id, value, value_type FROM trial_values ORDER BY trial_id, objective"
    ):
        values.setdefault(trial, []).append(value if kind == "FINITE" else float("nan"))
    broken = _infeasible_trials(connection)
    placed: dict[int, int] = {}
    for trial, study in rows(
        "SELECT trial_id, study_id FROM trials WHERE state = 'COMPLETE' ORDER BY study_id, number"
    ):
        if study in signs and trial not in broken:
            row = collected.add_trial(study, values.get(trial, []))
            if row is not None:
                placed[trial] = row
    meaning: dict[str, BaseDistribution] = {}
    for trial, name, value, text_ in rows(
        "SELECT trial_id, param_name, param_value, distribution_json FROM trial_params"
    ):
        if trial in placed:
            if text_ not in meaning:
                meaning[text_] = json_to_distribution(text_)
            if has_plain_values(meaning[text_]):
                collected.add_cell(placed[trial], name, text_, value)
    return collected.past(meaning)


def _infeasible_trials(connection: "Connection") -> set[int]:
    """The trials that broke a constraint."""
    from sqlalchemy import text

    # KEY is a word of MySQL's own unless a dot stands before it.
    query = text(
        "SELECT a.trial_id, a.key, a.value_json FROM trial_system_attributes a "
        f"WHERE a.key LIKE '{CONSTRAINTS}%'"
    )
    attributes: dict[int, dict[str, Any]] = {}
    for trial, key, value in connection.execute(query):
        attributes.setdefault(trial, {})[key] = json.loads(value)
    return {trial for trial, own in attributes.items() if infeasible(own)}


def signs_of(directions: Iterable[str]) -> tuple[float, ...]:
    """1 for a direction that is minimised, by the name that Optuna gives it, else -1."""
    return tuple(-1.0 if direction == "MAXIMIZE" else 1.0 for direction in directions)
