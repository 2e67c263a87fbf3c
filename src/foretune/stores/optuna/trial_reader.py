"""Reading a study from its database: only trials that began or ended since the last look.

Optuna's own interface returns all trials at every look, and makes many objects of every row. With
100,000 trials a look took longer than a suggestion.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from foretune.experience.curves import CurvePoint
from foretune.run.trial_log import TrialLog
from foretune.stores.optuna.database import StoredTrial, StudyTables, pause_collector
from foretune.stores.optuna.labels import OWNER, TURN
from foretune.stores.optuna.stored_curves import read_points

if TYPE_CHECKING:
    from optuna.storages import RDBStorage
    from sqlalchemy import Connection

    from foretune.stores.optuna.trial_format import Translation

AT_ONCE = 5_000
"""The trials that one query reads. Memory holds no more rows than that."""
IDS_AT_ONCE = 500
"""Databases limit how many values one query may name."""
NOT_FOUND = "Record does not exist."
"""What Optuna raises about a study or a trial that was deleted meanwhile."""


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
