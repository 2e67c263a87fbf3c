"""Reading a table within a time limit: a small sample first, then as many rows as time allows."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from foretune._base.freed_memory import return_freed_memory
from foretune._base.progress import SILENT, Progress
from foretune._base.time_budget import TimeBudget
from foretune.errors import UsageError
from foretune.tables.column_inference import NO_DEADLINES, SEEING_WHICH_HELP, Deadlines
from foretune.tables.column_roles import ColumnRoles
from foretune.tables.formats.file_sample import write_sample
from foretune.tables.formats.reader import bytes_a_row, table_bytes, table_name
from foretune.tables.reading import MOST_BYTES, TrainingTable, read_table
from foretune.tables.table import NO_ROLES
from foretune.tables.target import Task


@dataclass(frozen=True, slots=True)
class SampleSizes:
    """The bytes of a table that decide about its first sample."""

    small: int = 8 * 2**20
    """There is always time for all rows of a smaller table."""
    first: int = 2 * 2**20
    """The size of the first sample, if its rows are not too few. A table that is not larger is its
    own first sample."""
    least: int = 0
    """A smaller table has no first sample."""


USUAL_SIZES = SampleSizes()
SAMPLES_OF_LARGE_TABLES = SampleSizes(least=USUAL_SIZES.small)
"""The same if only large tables have a first sample."""
FIRST_ROWS = 1000
"""The rows in the first sample of a wide table, if they are at most half of the table."""
READING_SHARE = 0.35
"""The share of the time left after the first sample that reading and preparing may take."""
TEXTS_SHARE = 0.2
"""Texts are searched for helpful words until this share of the time left before reading is over."""
COLUMNS_SHARE = 0.3
"""The same for searching texts for numbers and dates."""
FIRST_COLUMNS_SHARE = 0.1
"""The same for the first sample."""
SECONDS_A_COLUMN = 0.0004
"""The time of a column, however many rows there are. The rest grows with the rows."""
LEAST_SECONDS = 0.001
LEAST_GAIN = 2.0
"""A sample that is fewer times larger than the first one is not worth reading."""
LEAST_GROWING = 0.2
"""At least this share of the first sample's time is assumed to grow with the rows."""


def read_table_in_time(
    path: str | Path,
    target: str,
    clock: TimeBudget,
    use_sample: Callable[[TrainingTable], None],
    *,
    task: Task | str | None = None,
    roles: ColumnRoles = NO_ROLES,
    progress: Progress = SILENT,
    sizes: SampleSizes = USUAL_SIZES,
) -> TrainingTable:
    """Read the table in a file, or a sample of it if there is no time for all of it.

    use_sample: called with a first sample, before all rows are read and texts are tested, if there
        is a time limit.
    """
    path = Path(path)
    size = min(table_bytes(path), MOST_BYTES)

    def read(
        rows: Path, columns: float = COLUMNS_SHARE, texts: float = TEXTS_SHARE
    ) -> TrainingTable:
        deadlines = _deadlines(clock, columns, texts)
        training = read_table(
            rows, target, task=task, roles=roles, progress=progress, deadlines=deadlines
        )
        return_freed_memory()  # The data frame is not needed any more.
        return training

    if not clock.is_limited or size < sizes.least:
        return read(path)
    first_bytes = max(sizes.first, min(size // 2, int(FIRST_ROWS * bytes_a_row(path))))
    with TemporaryDirectory(prefix="foretune-") as made:
        sample = path if size <= first_bytes else write_sample(path, first_bytes, Path(made))
        if sample is None:
            return read(path)  # Its rows cannot be found from the middle of the file.
        progress = stages = _StageTimes(progress)
        small = _read_if_possible(partial(read, columns=FIRST_COLUMNS_SHARE, texts=0.0), sample)
        took, share_read = stages.growing, table_bytes(sample) / table_bytes(path)
        if small is not None:
            is_all = sample == path
            use_sample(small if is_all else _name_sample(small, path, share_read))
        columns = 0 if small is None else small.facts.columns
        expected = max(LEAST_SECONDS, _forecast_seconds(took, columns, share_read))
        share = READING_SHARE * clock.remaining_for_model() / expected
        if share >= 1.0 or size < sizes.small:
            return read(path)
        if small is not None and share * size < LEAST_GAIN * first_bytes:
            return _name_sample(small, path, share_read)
        larger = write_sample(path, max(first_bytes, int(_round_share(share) * size)), Path(made))
        training = read(larger or path)
        if larger is None:
            return training
        return _name_sample(training, path, table_bytes(larger) / table_bytes(path))


def _deadlines(clock: TimeBudget, columns: float, texts: float) -> Deadlines:
    """Return deadlines at these shares of the time that is left."""
    if not clock.is_limited:
        return NO_DEADLINES
    now, left = time.monotonic(), clock.remaining_for_model()
    return Deadlines(now + columns * left, now + texts * left)


class _StageTimes:
    """Passes on the progress of reading, and adds up the time that grows with the table."""

    def __init__(self, shown: Progress) -> None:
        self._shown, self._since = shown, math.inf
        self.growing = 0.0

    def start(self, what: str, total: int | None) -> None:
        """Begin to measure, unless this work has few rows however large the table is."""
        self.stop()
        self._since = math.inf if what == SEEING_WHICH_HELP else time.monotonic()
        self._shown.start(what, total)

    def step(self, n: int = 1, note: str = "") -> None:
        """Pass the step on."""
        self._shown.step(n, note)

    def stop(self) -> None:
        """Add the time that the work took."""
        self.growing += max(0.0, time.monotonic() - self._since)
        self._since = math.inf
        self._shown.stop()


def _read_if_possible(read: Callable[[Path], TrainingTable], sample: Path) -> TrainingTable | None:
    """Return None if the sample lacks what the table may have. Reading all rows will tell."""
    try:
        return read(sample)
    except UsageError:
        return None


def _round_share(share: float) -> float:
    """Round down to a power of a half, so that the same command mostly reads the same rows."""
    return float(2.0 ** math.floor(math.log2(share)))


def _forecast_seconds(took: float, columns: int, share: float) -> float:
    """Estimate the seconds for a whole table from those for this share of the rows."""
    growing = max(LEAST_GROWING * took, took - SECONDS_A_COLUMN * columns)
    return took - growing + growing / share


def _name_sample(training: TrainingTable, path: Path, share: float) -> TrainingTable:
    """Return the training table of a sample under the name of the original file."""
    name = table_name(path)
    note = (
        f"There is no time to read all of {path.name}: about {share:.1%} of its rows are used, "
        "in blocks spread over the file. Give more --time to use more rows."
    )
    return replace(
        training, table=replace(training.table, name=name), notes=[note, *training.notes]
    )
