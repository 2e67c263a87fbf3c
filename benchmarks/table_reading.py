"""Measures CPU seconds and peak memory of reading a table and the kinds of its columns.

    python benchmarks/table_reading.py                  # 500,000 x 30, 2,000 x 3,000, 5,000 x 5,000
    python benchmarks/table_reading.py --shapes 500000x30 --profile profile.txt

Each table is made from a seed: half of its columns are numbers, the others are categories, dates,
texts, numbers as people write them, and columns with missing values. Each shape is read in a
process of its own. Each shape gives a line of JSON; `steps` are the CPU seconds of each step that
shows progress, and `silent_s` is the longest time on the clock between two signs of life.
"""

import argparse
import cProfile
import json
import pstats
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

SHAPES = ("500000x30", "2000x3000", "5000x5000")
TARGET = "target"
WORDS = np.array(["red", "green", "blue", "north", "south", "small", "large", "slow", "new", "old"])
COLUMN_KINDS = (
    *("float", "int", "float", "category", "float", "gaps", "float", "date", "float", "text"),
    *("money", "float", "marked", "float", "boolean"),
)


def make_table(rows: int, columns: int, path: Path) -> None:
    """Write a CSV file with a target and columns of all kinds."""
    rng = np.random.default_rng(0)
    made = {
        f"c{place}": make_column(COLUMN_KINDS[place % len(COLUMN_KINDS)], rows, rng)
        for place in range(columns - 1)
    }
    signal = made["c0"] + made["c2"] * rng.standard_normal(rows)
    made[TARGET] = np.where(signal > 0, "yes", "no")
    pd.DataFrame(made).to_csv(path, index=False)


def make_column(kind: str, rows: int, rng: np.random.Generator) -> np.ndarray:
    """Return the cells of one column."""
    numbers = rng.standard_normal(rows).round(4)
    share, whole = rng.random(rows), rng.integers(0, 10_000, rows)
    words = WORDS[rng.integers(0, len(WORDS), (4, rows))]
    columns = {
        "float": lambda: numbers,
        "int": lambda: whole,
        "category": lambda: words[0],
        "gaps": lambda: np.where(share < 0.1, np.nan, numbers),
        "date": lambda: (np.datetime64("2015-01-01") + whole // 3).astype(str),
        "text": lambda: np.array([f"{' '.join(row)} {at}" for at, row in enumerate(words.T)]),
        "money": lambda: np.array([f"${each:,.2f}" for each in whole * share * 5]),
        "marked": lambda: np.where(share < 0.05, "unknown", numbers.astype(str)),
        "boolean": lambda: np.where(share < 0.3, "yes", "no"),
    }
    return columns[kind]()


class SignsOfLife:
    """A progress that measures the steps and the silence between signs of life."""

    def __init__(self) -> None:
        self.steps: dict[str, float] = {}
        self.longest_silence = 0.0
        self._step, self._cpu, self._heard = "", time.process_time(), time.monotonic()

    def start(self, what: str, _total: int | None) -> None:
        """Begin a step."""
        self._end_step(what)

    def step(self, *_: object) -> None:
        """Hear that a step goes on."""
        self._hear()

    def stop(self) -> None:
        """End a step."""
        self._end_step("between")

    def _end_step(self, following: str) -> None:
        self._hear()
        now = time.process_time()
        self.steps[self._step] = round(self.steps.get(self._step, 0.0) + now - self._cpu, 2)
        self._step, self._cpu = following, now

    def _hear(self) -> None:
        now = time.monotonic()
        self.longest_silence = max(self.longest_silence, now - self._heard)
        self._heard = now


def peak_mb() -> int:
    """Return the peak memory of this process so far. (`ru_maxrss` would include its parent's.)"""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) // 1024 for line in lines if line.startswith("VmHWM"))


def measure(path: Path, profile: str) -> dict[str, object]:
    """Read the table in this process, whose memory nothing else has used."""
    try:
        from foretune.tables import read_table
    except ImportError:  # This is its earlier name.
        from foretune.automl.tables.reading import read_training as read_table
    before, begin = peak_mb(), time.process_time()
    signs, profiler = SignsOfLife(), cProfile.Profile()
    if profile:
        profiler.enable()
    training = read_table(path, TARGET, progress=signs)
    if profile:
        profiler.disable()
        with open(profile, "w") as out:
            pstats.Stats(profiler, stream=out).sort_stats("cumulative").print_stats(60)
    return {
        "cpu_s": round(time.process_time() - begin, 2),
        "peak_mb": peak_mb() - before,
        "silent_s": round(signs.longest_silence, 2),
        "columns": len(training.table.schema.columns),
        "matrix": float(np.nansum(training.table.x)),
        "steps": {step: taken for step, taken in signs.steps.items() if step},
    }


def main() -> None:
    """Measure all shapes, each in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shapes", nargs="*", default=SHAPES, help="rows x columns")
    parser.add_argument("--folder", type=Path, help="where tables are kept for the next run")
    parser.add_argument("--profile", default="", help="write the profile of the last shape here")
    parser.add_argument("--measure", type=Path, help="only measure reading this file")
    given = parser.parse_args()
    if given.measure:
        print(json.dumps(measure(given.measure, given.profile)))
        return
    with tempfile.TemporaryDirectory() as temporary:
        for shape in given.shapes:
            path = (given.folder or Path(temporary)) / f"{shape}.csv"
            if not path.exists():
                make_table(*map(int, shape.split("x")), path)
            command = [sys.executable, __file__, "--measure", str(path)]
            more = ["--profile", given.profile] if given.profile else []
            done = subprocess.run([*command, *more], capture_output=True, text=True, check=True)
            print(json.dumps({"shape": shape, **json.loads(done.stdout)}), flush=True)


if __name__ == "__main__":
    main()
