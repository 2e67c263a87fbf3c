"""Gets the table of a fit: from a file within the time, from the demo, or from memory."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Protocol, TypeAlias

import pandas as pd

from foretune._base.progress import Progress
from foretune._base.time_budget import TimeBudget
from foretune.tables import (
    NO_ROLES,
    ColumnRoles,
    Table,
    TrainingTable,
    read_table,
    read_table_in_time,
    read_test_table,
    table_name,
)
from foretune.tables.timed_reading import SAMPLES_OF_LARGE_TABLES, USUAL_SIZES

DEMO, DEMO_TARGET = "credit", "risk"
HELD_OUT = 0.25
"""The share of the demo's rows that test the model."""


def demo_frames() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return rows to learn from and rows to test on: credits, and whether they were paid back.

    German credit data of Hans Hofmann (UCI Machine Learning Repository, CC BY 4.0), written by
    benchmarks/build_fit_demo.py. The shipped experience has not seen it, so the demo shows what
    happens on a new dataset.
    """
    from sklearn.model_selection import train_test_split

    with files("foretune.automl").joinpath("credit.csv").open(encoding="utf-8") as file:
        frame = pd.read_csv(file)
    learn, held = train_test_split(
        frame, test_size=HELD_OUT, stratify=frame[DEMO_TARGET], random_state=0
    )
    return learn.reset_index(drop=True), held.reset_index(drop=True)


@dataclass(frozen=True)
class FitData:
    """The table that a fit learns from, and the table that its model is tested on."""

    table: Table
    target: str
    test: pd.DataFrame | None = None
    notes: Sequence[str] = ()
    """The assumptions about the tables, as sentences for people."""


UseSample: TypeAlias = Callable[[FitData], None]
"""A function that is called with a small sample of a large table, before the rest is read."""


class DataSource(Protocol):
    """The source of the table of a fit."""

    def read(self, clock: TimeBudget, progress: Progress, use_sample: UseSample) -> FitData:
        """Read the table, or a sample of it if there is no time for all of it."""


@dataclass(frozen=True)
class TableInMemory:
    """A table that is in memory already."""

    table: Table
    target: str

    def read(self, clock: TimeBudget, progress: Progress, use_sample: UseSample) -> FitData:  # noqa: ARG002
        """Return the table."""
        return FitData(self.table, self.target)


@dataclass(frozen=True)
class TableFile:
    """A table in a file, and perhaps one in another file to test the model on.

    task: "classification" or "regression"; the target decides if it is not given.
    """

    path: Path
    target: str
    test: Path | None = None
    task: str | None = None
    roles: ColumnRoles = NO_ROLES

    @property
    def name(self) -> str:
        """The name of the table, after which its folder is named by default."""
        return table_name(self.path)

    def read(self, clock: TimeBudget, progress: Progress, use_sample: UseSample) -> FitData:
        """Read the files."""

        def use(sample: TrainingTable) -> None:
            use_sample(FitData(sample.table, sample.target, None, sample.notes))

        training = read_table_in_time(
            self.path,
            self.target,
            clock,
            use,
            task=self.task,
            roles=self.roles,
            progress=progress,
            # A test table may be refused, so a model of a small table waits until it is read.
            sizes=USUAL_SIZES if self.test is None else SAMPLES_OF_LARGE_TABLES,
        )
        if self.test is None:
            return FitData(training.table, training.target, None, training.notes)
        held, notes = read_test_table(self.test, training)
        return FitData(training.table, training.target, held, [*training.notes, *notes])


@dataclass(frozen=True)
class DemoTable:
    """The table of credits that comes with Foretune."""

    roles: ColumnRoles = NO_ROLES
    name: str = DEMO

    def read(self, clock: TimeBudget, progress: Progress, use_sample: UseSample) -> FitData:  # noqa: ARG002
        """Read the table; a quarter of its rows test the model."""
        learn, held = demo_frames()
        training = read_table(learn, DEMO_TARGET, name=self.name, roles=self.roles)
        return FitData(training.table, DEMO_TARGET, held, training.notes)
