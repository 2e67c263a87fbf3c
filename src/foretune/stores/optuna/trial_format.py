"""Trials as Optuna stores them: their form, and reading those that began or ended.

Optuna's tools show the parameters and distributions. Optuna's own interface returns all trials at
every look, and makes many objects of every row. With 100,000 trials a look took longer than a
suggestion. Therefore new trials are read from the tables of the database.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from foretune.experience import Metric, Status
from foretune.experience.curves import CurvePoint, join_points
from foretune.experience.trial import Trial
from foretune.run.heartbeat import Owner
from foretune.run.trial_log import TrialLog
from foretune.space import Kind, Parameter, Space
from foretune.stores.optuna.database import StoredTrial, StudyTables, pause_collector
from foretune.stores.optuna.labels import OWNER, SECONDS, STATUS, TURN, Labels
from foretune.stores.optuna.stored_curves import read_points

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.storages import RDBStorage
    from optuna.trial import FrozenTrial
    from sqlalchemy import Connection

BEAT = "foretune:beat"
"""System attribute: a number that grows while the owner lives."""
ABANDONED = "abandoned"
"""User attribute: how many processes died while they ran the trial."""
REASON, CHOSEN_BY, NOTES, ALSO = "reason", "chosen_by", "notes", "also"
"""User attributes. `also` holds values of metrics that are not optimised."""
COMPLETE, FINISHED, WAITING = 1, (1, 2, 3), 4
"""The numbers of Optuna's states: a success, all ends (success, pruned, failure), and waiting."""
NAMED = (Status.TIMEOUT, Status.STOPPED, Status.PAUSED)
"""Statuses that an attribute names, because Optuna has no state for them or shares one."""
WITH_VALUES = (Status.DONE, Status.STOPPED)
NOT_ENDED: Mapping[str, Any] = {SECONDS: None, REASON: "", STATUS: None, NOTES: {}, ALSO: {}}
"""The user attributes of a trial that has not ended. An end replaces them."""
AT_ONCE = 5_000
"""The trials that one query reads. Memory holds no more rows than that."""
IDS_AT_ONCE = 500
"""Databases limit how many values one query may name."""
NOT_FOUND = "Record does not exist."
"""What Optuna raises about a study or a trial that was deleted meanwhile."""


class Translation:
    """Translates trials between a space and Optuna."""

    def __init__(self, space: Space, metrics: Sequence[Metric]) -> None:
        self._names = tuple(metric.name for metric in metrics)
        self._labels = Labels(space)
        self._distributions = {
            p.name: _distribution(p, self._labels.of(p.name)) for p in space.parameters
        }

    def running(self, config: Mapping[str, Any], owner: Owner, chosen_by: str) -> "FrozenTrial":
        """Return a trial that is about to be stored as running."""
        from optuna.trial import TrialState, create_trial

        return create_trial(
            state=TrialState.RUNNING,
            params={name: self._labels.to_stored(name, value) for name, value in config.items()},
            distributions={name: self._distributions[name] for name in config},
            user_attrs={CHOSEN_BY: chosen_by} if chosen_by else {},
            system_attrs={OWNER: owner.record()},
        )

    def trial(self, frozen: "StoredTrial") -> Trial:
        """Return a stored trial as a `Trial`."""
        said = frozen.user_attrs
        status, seconds = _status(frozen), said.get(SECONDS)
        notes = dict(said[NOTES]) if NOTES in said else {}
        if ABANDONED in said:
            notes[ABANDONED] = said[ABANDONED]
        curve = join_points(read_points(frozen.points)) if frozen.points else None
        values = self._values(frozen, status)
        if status is Status.PAUSED and curve is not None:
            values = curve.last_values
        return Trial(
            frozen.number,
            self._labels.config(frozen.params),
            status,
            values,
            math.nan if seconds is None else float(seconds),
            str(said.get(REASON, "")),
            str(said.get(CHOSEN_BY, "")),
            notes,
            curve,
        )

    def outcome(
        self,
        status: Status,
        values: Mapping[str, float],
        seconds: float,
        reason: str,
        notes: Mapping[str, Any],
    ) -> tuple[list[float] | None, dict[str, Any]]:
        """Return Optuna's values and the user attributes of a trial that has ended."""
        # A stopped trial may have reported too little for Optuna's values.
        has_values = status in WITH_VALUES and all(name in values for name in self._names)
        names = self._names if has_values else ()
        attributes: dict[str, Any] = {
            SECONDS: None if math.isnan(seconds) else seconds,
            REASON: reason,
            STATUS: status.name if status in NAMED else None,
            NOTES: dict(notes),
            ALSO: {name: float(value) for name, value in values.items() if name not in names},
        }
        told = {key: value for key, value in attributes.items() if value != NOT_ENDED[key]}
        return [float(values[name]) for name in names] if has_values else None, told

    def _values(self, frozen: "StoredTrial", status: Status) -> dict[str, float]:
        also = frozen.user_attrs.get(ALSO, {})
        if status not in WITH_VALUES or not frozen.values:
            return dict(also)
        return {**dict(zip(self._names, frozen.values, strict=True)), **also}


def _status(frozen: "StoredTrial") -> Status:
    # The name of an enumeration's member is slow to read, and there may be 100,000 trials.
    state = int(frozen.state)
    if state == COMPLETE:
        return Status.DONE
    if state not in FINISHED:
        # A process may have died while it paused the trial: then it does not wait.
        is_paused = state == WAITING and frozen.user_attrs.get(STATUS) == Status.PAUSED.name
        return Status.PAUSED if is_paused else Status.RUNNING
    return Status[frozen.user_attrs.get(STATUS) or "FAILED"]


def _distribution(parameter: Parameter, labels: Sequence[Any]) -> "BaseDistribution":
    from optuna.distributions import (
        CategoricalDistribution,
        FloatDistribution,
        IntDistribution,
    )

    if parameter.kind is Kind.FLOAT:
        return FloatDistribution(parameter.low, parameter.high, log=parameter.log)
    if parameter.kind is Kind.INT:
        return IntDistribution(int(parameter.low), int(parameter.high), log=parameter.log)
    return CategoricalDistribution(labels)


class TrialReader:
    """The trials of a study that Foretune began, as far as they were read."""

    def __init__(self, database: "RDBStorage", study_id: int, translation: "Translation") -> None:
        self.log = TrialLog()
        self._engine = database.engine
        self._study_id = study_id
        self._translation = translation
        self._last_id = -1
        """Ids grow with every trial, and the study's lock keeps them in the order in which trials
        begin."""
        self._unfinished: dict[int, str] = {}
        """{id: mark} of the trials that may still change; see `StudyTables.marks`."""

    def refresh(self) -> TrialLog:
        """Read what is new, and return the log with it."""
        with self._engine.connect() as connection, pause_collector():
            self._check_there(connection)
            self._read_changed(connection)
            while new := StudyTables(connection, (self._study_id,), self._last_id).trials(AT_ONCE):
                self._last_id = new[-1].trial_id
                self._take_in(new)
                if len(new) < AT_ONCE:
                    break
        return self.log

    def read_open_trials(self) -> list[StoredTrial]:
        """Return the trials that run or wait, with the signs of life of their owners."""
        self.refresh()
        with self._engine.connect() as connection:
            found = list(self._with_ids(connection, sorted(self._unfinished), with_points=False))
        return [frozen for frozen in found if not frozen.state.is_finished()]

    def read_points(self, trial_id: int) -> list[CurvePoint]:
        """Read all that a trial has reported."""
        with self._engine.connect() as connection:
            tables = StudyTables(connection, (self._study_id,), ids=(trial_id,))
            return read_points(tables.points().get(trial_id, {}))

    def _check_there(self, connection: "Connection") -> None:
        from sqlalchemy import text

        query = text("SELECT 1 FROM studies WHERE study_id = :study")
        if connection.execute(query, {"study": self._study_id}).first() is None:
            raise KeyError(NOT_FOUND)

    def _read_changed(self, connection: "Connection") -> None:
        """Read the trials that were running or waiting and have changed."""
        states: dict[int, str] = {}
        for ids in _parts(sorted(self._unfinished)):
            states |= StudyTables(connection, (self._study_id,), ids=ids).marks()
        changed = [id_ for id_, state in self._unfinished.items() if states.get(id_) != state]
        self._take_in(self._with_ids(connection, changed))

    def _with_ids(
        self, connection: "Connection", ids: list[int], *, with_points: bool = True
    ) -> Iterator[StoredTrial]:
        for part in _parts(ids):
            tables = StudyTables(connection, (self._study_id,), ids=part, with_points=with_points)
            yield from tables.trials()

    def _take_in(self, found: Iterable[StoredTrial]) -> None:
        """Put into the log what Foretune began. Other trials of the study are not ours."""
        for frozen in found:
            self._unfinished.pop(frozen.trial_id, None)
            if OWNER not in frozen.system_attrs:
                continue
            self.log.put(self._translation.trial(frozen))
            if not frozen.state.is_finished():
                turn = frozen.system_attrs.get(TURN, 0)
                self._unfinished[frozen.trial_id] = f"{frozen.state.name} {turn}"


def _parts(ids: list[int]) -> Iterator[tuple[int, ...]]:
    for first in range(0, len(ids), IDS_AT_ONCE):
        yield tuple(ids[first : first + IDS_AT_ONCE])
