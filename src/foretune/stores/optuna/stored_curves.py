"""What running trials report, in the tables of an Optuna database.

Optuna keeps one value for a whole step. The whole report (steps between whole numbers, seconds,
other values) is kept beside it in attributes of the trial, some points in each. Both are written in
one transaction. Optuna's own methods take two transactions and several queries for each report.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from foretune.experience.curves import CurvePoint
from foretune.stores.optuna.labels import OWNER

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

POINTS = "foretune:points:"
"""Begin of the keys of system attributes that hold the points of a trial, in order."""
POINTS_A_PART = 50
"""A part is written again with every report until it has this many points."""
LARGEST_STEP = 2**31 - 1
"""Optuna's column of steps holds whole numbers up to this one."""
KINDS = {math.inf: "INF_POS", -math.inf: "INF_NEG"}
"""Optuna's names for infinite values, which its column of numbers does not hold."""


class CurveWriter:
    """Writes the reports of the trials that one process runs.

    metric: the name of the metric that Optuna's tools show.
    """

    def __init__(self, engine: "Engine", metric: str) -> None:
        self._engine, self._metric = engine, metric
        self._connection: Connection | None = None
        self._points: dict[int, list[CurvePoint]] = {}
        """Id of a trial -> all its points."""
        self._is_unsure: set[int] = set()
        """Ids of trials of which the last points may be stored, or not."""

    def open(self, trial_id: int, points: Sequence[CurvePoint]) -> None:
        """Go on with a trial that has reported these points."""
        self._points[trial_id] = list(points)

    def points(self, trial_id: int) -> list[CurvePoint]:
        """Return all points of a trial."""
        return self._points.get(trial_id, [])

    def close(self, trial_id: int) -> None:
        """Forget a trial that this process does not run any more."""
        self._points.pop(trial_id, None)
        self._is_unsure.discard(trial_id)

    def add(self, trial_id: int, new: Sequence[CurvePoint], token: str) -> None:
        """Store points in one transaction. They are stored when this returns.

        token: of this process. Nothing is stored if another one has taken the trial over.
        """
        known = self._points.setdefault(trial_id, [])
        again = trial_id in self._is_unsure
        self._is_unsure.add(trial_id)
        with self._transaction() as connection:
            if not _is_owner(connection, trial_id, token):
                return
            self._write_steps(connection, trial_id, new, again=again)
            self._write_parts(connection, trial_id, known, new, again=again)
        self._is_unsure.discard(trial_id)
        known.extend(new)

    def disconnect(self) -> None:
        """Give the connection back."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    @contextmanager
    def _transaction(self) -> "Iterator[Connection]":
        """A transaction on a connection of its own, which is opened again after an error."""
        if self._connection is None:
            self._connection = self._engine.connect()
            if self._engine.name == "sqlite":
                # A kill loses nothing, and only a failure of power may lose the last reports.
                self._connection.detach()
                self._connection.exec_driver_sql("PRAGMA synchronous=NORMAL")
                self._connection.commit()
        try:
            with self._connection.begin():
                yield self._connection
        except BaseException:
            self._connection.invalidate()
            self.disconnect()
            raise

    def _write_steps(
        self, connection: "Connection", trial_id: int, new: Sequence[CurvePoint], *, again: bool
    ) -> None:
        """Write what Optuna's tools show."""
        from optuna.storages._rdb.models import TrialIntermediateValueModel as Model
        from sqlalchemy import bindparam

        table, kinds = Model.__table__, Model.TrialIntermediateValueType
        rows = [
            {
                "trial_id": trial_id,
                "step": int(point.step),
                "intermediate_value": value if math.isfinite(value) else None,
                "intermediate_value_type": kinds[_kind(value)],
            }
            for point in new
            if (value := point.values.get(self._metric)) is not None
            and point.step.is_integer()
            and point.step <= LARGEST_STEP
        ]
        if again and rows:
            same = (table.c.trial_id == trial_id, table.c.step == bindparam("at"))
            connection.execute(table.delete().where(*same), [{"at": row["step"]} for row in rows])
        if rows:
            connection.execute(table.insert(), rows)

    def _write_parts(
        self,
        connection: "Connection",
        trial_id: int,
        known: Sequence[CurvePoint],
        new: Sequence[CurvePoint],
        *,
        again: bool,
    ) -> None:
        """Write the last part again, and those that follow."""
        from optuna.storages._rdb.models import TrialSystemAttributeModel as Model
        from sqlalchemy import bindparam

        table = Model.__table__
        same = (table.c.trial_id == bindparam("trial"), table.c.key == bindparam("name"))
        first = len(known) // POINTS_A_PART
        unwritten = [*known[first * POINTS_A_PART :], *new]
        for place in range(0, len(unwritten), POINTS_A_PART):
            name = f"{POINTS}{first + place // POINTS_A_PART}"
            text = pack_points(unwritten[place : place + POINTS_A_PART])
            where = {"trial": trial_id, "name": name}
            is_there = place == 0 and len(known) % POINTS_A_PART > 0
            if again:
                connection.execute(table.delete().where(*same), where)
            if is_there and not again:
                statement = table.update().where(*same).values(value_json=bindparam("text"))
                connection.execute(statement, where | {"text": text})
            else:
                row = {"trial_id": trial_id, "key": name, "value_json": text}
                connection.execute(table.insert(), row)


def _is_owner(connection: "Connection", trial_id: int, token: str) -> bool:
    from optuna.storages._rdb.models import TrialSystemAttributeModel as Model
    from sqlalchemy import bindparam, select

    table = Model.__table__
    query = select(table.c.value_json).where(
        table.c.trial_id == bindparam("trial"), table.c.key == bindparam("name")
    )
    found = connection.execute(query, {"trial": trial_id, "name": OWNER}).scalar()
    return found is not None and json.loads(found).get("token") == token


def pack_points(points: Sequence[CurvePoint]) -> str:
    """Return points as JSON, in columns."""
    names = list(dict.fromkeys(name for point in points for name in point.values))
    return json.dumps(
        {
            "steps": [point.step for point in points],
            "seconds": [round(point.seconds, 6) for point in points],
            "values": {name: [point.values.get(name) for point in points] for name in names},
        }
    )


def unpack_points(text: str) -> list[CurvePoint]:
    """Return the points of one part."""
    part = json.loads(text)
    columns: dict[str, list[float | None]] = part["values"]
    return [
        CurvePoint(
            step, {n: value for n, column in columns.items() if (value := column[i]) is not None}, s
        )
        for i, (step, s) in enumerate(zip(part["steps"], part["seconds"], strict=True))
    ]


def read_points(parts: Mapping[str, str]) -> list[CurvePoint]:
    """Return the points of a trial from its attributes: {key: JSON text}."""
    ordered = sorted(parts, key=lambda key: int(key.removeprefix(POINTS)))
    return [point for key in ordered for point in unpack_points(parts[key])]


def _kind(value: float) -> str:
    """Return Optuna's name for the kind of a number."""
    if math.isfinite(value):
        return "FINITE"
    return "NAN" if math.isnan(value) else KINDS[value]
