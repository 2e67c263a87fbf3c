"""What the user of `foretune fit` brings: a table to learn from and one to test on."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from foretune.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd

    from foretune._base.time_budget import TimeBudget
    from foretune.tables.column_roles import ColumnRoles
    from foretune.tables.reading import TrainingTable


@dataclass(frozen=True)
class Given:
    """What the user brings."""

    training: "TrainingTable"
    test: "pd.DataFrame | None"
    notes: Sequence[str]
    """What was assumed about both, for people."""


def table_name_of(data: Path | None) -> str:
    """The name of the table, which its folder is named after."""
    from foretune.automl.demo import NAME
    from foretune.tables.formats.reader import table_name

    return NAME if data is None else table_name(data)


def read_demo(
    data: Path | None, target: str | None, test: Path | None, roles: "ColumnRoles"
) -> Given:
    """The table of credits that comes along."""
    from foretune.automl.demo import NAME, TARGET, demo_frames
    from foretune.tables.reading import training_of

    if data is not None or target is not None or test is not None:
        raise UsageError(
            "--demo brings a table of its own, but got another one: leave one of them out"
        )
    learn, held = demo_frames()
    training = training_of(learn, TARGET, name=NAME, roles=roles)
    return Given(training, held, training.notes)


def read_given(
    data: Path | None,
    target: str | None,
    task: str | None,
    test: Path | None,
    roles: "ColumnRoles",
    clock: "TimeBudget",
    use_sample: "Callable[[TrainingTable], None]",
) -> Given:
    """Read the tables that the user names; `use_sample` is as of `read_training_in_time`."""
    from foretune._base.terminal import TerminalProgress
    from foretune.tables.reading import read_test
    from foretune.tables.timed_reading import read_training_in_time

    if data is None or target is None:
        lacking = "no table" if data is None else "no --target"
        raise UsageError(
            f"fit needs a table and the column to predict, but got {lacking}: say  foretune fit "
            "train.csv --target label,  or see it work with  foretune fit --demo"
        )
    training = read_training_in_time(
        data, target, clock, use_sample, task=task, roles=roles, progress=TerminalProgress()
    )
    if test is None:
        return Given(training, None, training.notes)
    held, notes = read_test(test, training)
    return Given(training, held, [*training.notes, *notes])
