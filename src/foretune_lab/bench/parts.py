"""The finished runs of an unfinished replay: a folder of small files beside the output.

Each run is written in one step when it ends. If a replay is stopped, only the runs that had not
ended are lost.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from foretune.errors import UsageError
from foretune.plugins import replace_file, try_lock, write_text
from foretune_lab.bench.curve_replay import CurveRun
from foretune_lab.bench.results import ReplaySettings
from foretune_lab.bench.run import MethodRun

_SETTINGS = "settings.json"
_EXPERIENCE = "experience.parquet"
_RUNS = "run-*.parquet"


@dataclass(frozen=True, slots=True)
class Parts:
    """A folder of finished runs."""

    folder: Path

    @classmethod
    def beside(cls, out: Path) -> "Parts":
        """Return the folder that belongs to an output file."""
        return cls(out.with_name(f"{out.name}.parts"))

    @property
    def experience(self) -> Path:
        """The file of the experience that worker processes read."""
        return self.folder / _EXPERIENCE

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Let one replay in at a time, because two would delete each other's runs."""
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        path = self.folder.with_suffix(".lock")
        lock = _lock(path)
        if lock is None:
            raise UsageError(
                "one replay at a time adds to its results, but another one is filling "
                f"'{self.folder}': wait until it has ended, or choose another --out",
                rule="one-replay-at-a-time",
                field="out",
            )
        with lock:
            if not (self.folder / _SETTINGS).exists():
                self.remove()  # This is the rest of an interrupted removal, with any settings.
            try:
                yield
            finally:
                with suppress(OSError):  # Windows keeps a file that is open.
                    path.unlink()

    def check(self, settings: ReplaySettings) -> None:
        """Refuse a folder that was begun with other settings."""
        begun = self.folder / _SETTINGS
        if not begun.exists():
            return
        try:
            earlier = ReplaySettings.from_dict(json.loads(begun.read_text(encoding="utf-8")))
            difference = settings.difference(earlier)
        except (ValueError, TypeError, LookupError):  # It is from another version, or damaged.
            difference = "settings that cannot be read"
        if difference:
            raise UsageError(
                f"an interrupted replay goes on with equal settings only, but got {difference} "
                f"in '{self.folder}': remove that folder or choose another --out",
                rule="equal-settings",
                field="out",
                value=difference,
            )

    def begin(self, settings: ReplaySettings) -> None:
        """Make the folder, or go on with the one that is there."""
        self.folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps(asdict(settings), indent=1)
        write_text(self.folder / _SETTINGS, text)

    def add(self, run: MethodRun | CurveRun, settings: ReplaySettings) -> None:
        """Keep one finished run."""
        key = hashlib.sha256(f"{run.task}\n{run.method}\n{run.seed}".encode()).hexdigest()[:24]
        rows = run.table() if isinstance(run, CurveRun) else run.rows(settings)
        replace_file(self.folder / f"run-{key}.parquet", lambda path: pq.write_table(rows, path))

    def count(self) -> int:
        """Return the number of finished runs."""
        return sum(1 for _ in self.folder.glob(_RUNS))

    def rows(self) -> pd.DataFrame | None:
        """Return the rows of all finished runs; None if there are none."""
        files = sorted(self.folder.glob(_RUNS))
        if not files:
            return None
        # One by one, because `read_table` takes three times as long to see what it reads.
        tables = [pq.ParquetFile(file).read() for file in files]
        frame: pd.DataFrame = pa.concat_tables(tables).to_pandas()
        return frame

    def remove(self) -> None:
        """Delete the folder, after its runs are in the output."""
        shutil.rmtree(self.folder, ignore_errors=True)


def _lock(path: Path) -> IO[bytes] | None:
    """Take the lock of the file at `path`; return None if another process has it.

    The process that ends removes the file. A process that opened it just before locks nobody out.
    """
    while (lock := try_lock(path)) is not None:
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(lock.fileno()), path.stat()):
                return lock
        lock.close()
    return None
