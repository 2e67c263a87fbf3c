"""What running trials report, in the tables of an Optuna database.

Optuna keeps one value for a whole step. The whole report (steps between whole numbers, seconds,
other values) is kept beside it in attributes of the trial, some points in each. Both are written in
one transaction. Optuna's own methods take two transactions and several queries for each report.

On SQLite a transaction ends when its pages are handed to the system: they survive the death of the
process at any moment. They are not flushed to the disk each time, so a failure of power may lose
the last reports, but never makes the file inconsistent.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from foretune.experience.curves import CurvePoint
from foretune.stores.optuna.labels import OWNER

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import BindParameter, ClauseElement, Connection, CursorResult, Engine
    from sqlalchemy.sql.compiler import SQLCompiler

    Write: TypeAlias = Callable[[str, Mapping[str, Any]], CursorResult[Any]]

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
        self._statements = _Statements(engine)
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
            write = partial(self._statements.run, connection)
            owner = write("owner", {"trial": trial_id, "name": OWNER}).scalar()
            if owner is None or json.loads(owner).get("token") != token:
                return
            self._write_steps(write, trial_id, new, again=again)
            self._write_parts(write, trial_id, known, new, again=again)
        known.extend(new)
        self._is_unsure.discard(trial_id)

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
        self, write: "Write", trial_id: int, new: Sequence[CurvePoint], *, again: bool
    ) -> None:
        """Write what Optuna's tools show."""
        rows = [
            {
                "trial": trial_id,
                "at": int(point.step),
                "number": value if math.isfinite(value) else None,
                "kind": _kind(value),
            }
            for point in new
            if (value := point.values.get(self._metric)) is not None
            and point.step.is_integer()
            and point.step <= LARGEST_STEP
        ]
        for row in rows:
            if again:
                write("delete step", {"trial": trial_id, "at": row["at"]})
            write("insert step", row)

    def _write_parts(
        self,
        write: "Write",
        trial_id: int,
        known: Sequence[CurvePoint],
        new: Sequence[CurvePoint],
        *,
        again: bool,
    ) -> None:
        """Write the last part again, and those that follow."""
        first = len(known) // POINTS_A_PART
        unwritten = [*known[first * POINTS_A_PART :], *new]
        for place in range(0, len(unwritten), POINTS_A_PART):
            row = {"trial": trial_id, "name": f"{POINTS}{first + place // POINTS_A_PART}"}
            text = pack_points(unwritten[place : place + POINTS_A_PART])
            if again:
                write("delete part", row)
            is_there = place == 0 and len(known) % POINTS_A_PART > 0 and not again
            write("update part" if is_there else "insert part", {**row, "text": text})


class _Statements:
    """The statements of a report as texts of one kind of database.

    SQLAlchemy needs more time to make such a text than SQLite needs to run it.
    """

    def __init__(self, engine: "Engine") -> None:
        self._texts: dict[str, str] = {}
        self._places: dict[str, list[str] | None] = {}
        """The names of the values in their order, if the database takes values by place."""
        for name, statement in _make_statements().items():
            compiled = cast("SQLCompiler", statement.compile(dialect=engine.dialect))
            self._texts[name], self._places[name] = str(compiled), compiled.positiontup

    def run(
        self, connection: "Connection", name: str, row: Mapping[str, Any]
    ) -> "CursorResult[Any]":
        """Run a statement with these values."""
        places = self._places[name]
        values = dict(row) if places is None else tuple(row[place] for place in places)
        return connection.exec_driver_sql(self._texts[name], values)


def _make_statements() -> dict[str, "ClauseElement"]:
    from optuna.storages._rdb import models
    from sqlalchemy import bindparam, select

    steps = models.TrialIntermediateValueModel.__table__
    parts = models.TrialSystemAttributeModel.__table__
    trial: BindParameter[Any] = bindparam("trial")
    name: BindParameter[Any] = bindparam("name")
    text: BindParameter[Any] = bindparam("text")
    same_step = (steps.c.trial_id == trial, steps.c.step == bindparam("at"))
    same_part = (parts.c.trial_id == trial, parts.c.key == name)
    return {
        "owner": select(parts.c.value_json).where(*same_part),
        "delete step": steps.delete().where(*same_step),
        "insert step": steps.insert().values(
            trial_id=trial,
            step=bindparam("at"),
            intermediate_value=bindparam("number"),
            intermediate_value_type=bindparam("kind"),
        ),
        "delete part": parts.delete().where(*same_part),
        "update part": parts.update().where(*same_part).values(value_json=text),
        "insert part": parts.insert().values(trial_id=trial, key=name, value_json=text),
    }


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
