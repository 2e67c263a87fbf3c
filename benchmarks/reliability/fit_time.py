"""Whether `foretune fit --time` keeps its time and its memory, and ends with a model.

    python benchmarks/reliability/fit_time.py --rows 500000 --columns 30 --time 60 --cores 2 \
        --out fit_time.jsonl
    python benchmarks/reliability/fit_time.py --all --out fit_time.jsonl
    python benchmarks/reliability/fit_time.py --quick --jobs 16 --out fit_time.jsonl
    python benchmarks/reliability/fit_time.py --cells 1000x30@10,2000x3000@60 --out fit_time.jsonl

Each cell makes a table (numbers with gaps, categories, dates, short texts; the same for the same
size), runs `fit` in a process of its own on so many cores, and adds one line of JSON to the file.
`--all` runs every cell of the matrix that the file does not have yet; `--quick` those of 10 s to
3 min, short ones first, in about 7 minutes on 16 cores; `--cells` some. With `--jobs`, several
cells run at the same time, each on cores of its own.

A line tells: `wall`, the seconds of the command; `late`, by how many seconds it was over its time;
`first_line`, `longest_silence`: seconds without any output; `first_model`: when there was a model
in the folder; `code`: the exit code; `score` and `baseline` of the model on 2,000 rows that were
not in the table (log loss); `peak`: the peak of the memory of all its processes together in bytes,
where pages that several share count once; `table`: the bytes of the table as a data frame of
float64 and Python strings; `libraries`: `peak` on a table of 1,000 rows and 30 columns, the same
cores and 30 s, which is what the libraries take in as many processes. `memory_ratio` is
`(peak - libraries) / table`. `kept` sums up: there is a model and exit code 0, at most 10% or 5 s
late, and the ratio is below 3.
"""

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import asdict, dataclass
from multiprocessing import current_process
from pathlib import Path

import numpy as np
import pandas as pd
from parts import run_parts
from rows import Row

TARGET = "target"
HELD = 2_000
LOOK_SECONDS = 0.2
MOST_LATE_SHARE, MOST_LATE_SECONDS = 0.1, 5.0
MOST_TIMES_THE_TABLE = 3.0
PATIENCE = 3.0
"""A command that takes so many times its time, and two minutes more, is killed."""
SMALL = (1_000, 30, 30.0)
SIZES = ((1_000, 30), (50_000, 30), (500_000, 30), (1_000_000, 30), (2_000, 3_000), (5_000, 5_000))
SECONDS = (10.0, 60.0, 600.0)
QUICK_SECONDS = (10.0, 30.0, 60.0, 180.0)
WORDS = ("red", "green", "blue", "large", "small", "old", "new", "cheap", "fine", "broken")
FIT = (
    "import os; os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[{first}:][:{cores}]); "
    "from foretune.cli import main; main()"
)


@dataclass(frozen=True)
class Cell:
    """One command of the matrix."""

    rows: int
    columns: int
    seconds: float
    cores: int

    @classmethod
    def of_text(cls, text: str, cores: int) -> "Cell":
        """The cell that a text such as 1000x30@10 names."""
        size, _, seconds = text.partition("@")
        rows, _, columns = size.partition("x")
        return cls(int(rows), int(columns), float(seconds), cores)


def make_table(rows: int, columns: int, seed: int = 0) -> pd.DataFrame:
    """A table with every kind of column, whose target depends on about half of them."""
    rng = np.random.default_rng(seed)
    effects = np.random.default_rng(columns)  # The same for every table of this width.
    score, found = np.zeros(rows), {}
    words = np.array(WORDS)
    for place in range(columns):
        kind, effect = place % 10, effects.normal() / np.sqrt(columns)
        if kind < 6:
            values = rng.normal(size=rows)
            score += effect * values * (1.5 if place % 2 else np.sign(values))
            values = np.round(values, 4)
            values[rng.random(rows) < 0.05] = np.nan
        elif kind == 6:
            values = rng.integers(0, 50, rows)
        elif kind == 7:
            codes = rng.integers(0, 12, rows)
            score += 2.0 * effects.normal(size=12)[codes] / np.sqrt(columns)
            values = np.array([f"kind {code}" for code in range(12)])[codes]
        elif kind == 8:
            days = rng.integers(0, 3000, rows)
            values = (np.datetime64("2015-01-01") + days).astype("datetime64[D]").astype(str)
        else:
            picked = words[rng.integers(0, len(words), (rows, 4))]
            values = np.array([" ".join(row) for row in picked])
        found[f"c{place}"] = values
    found[TARGET] = np.where(score + 0.5 * rng.normal(size=rows) > 0.0, "yes", "no")
    return pd.DataFrame(found)


def object_bytes(frame: pd.DataFrame) -> int:
    """The bytes of a table of float64 and Python strings."""
    texts = [name for name in frame if not pd.api.types.is_numeric_dtype(frame[name])]
    strings = sum(int(frame[name].str.len().sum()) + 57 * len(frame) for name in texts)
    return 8 * frame.size + strings


class Watch(threading.Thread):
    """Looks at the processes of a group until it is told to stop."""

    def __init__(self, group: int, model: Path) -> None:
        super().__init__(daemon=True)
        self._group, self._model, self._began = group, model, time.monotonic()
        self._over = threading.Event()
        self.peak = 0
        self.first_model: float | None = None

    def run(self) -> None:
        while not self._over.wait(LOOK_SECONDS):
            self.peak = max(self.peak, sum(map(resident, members(self._group))))
            if self.first_model is None and self._model.exists():
                self.first_model = round(time.monotonic() - self._began, 1)

    def stop(self) -> None:
        self._over.set()
        self.join()


def first_core(cores: int) -> int:
    """Where the cores of a command begin, so that commands at the same time have others."""
    place = (current_process()._identity or (1,))[0] - 1
    available = len(os.sched_getaffinity(0))
    return place * cores % max(cores, available - cores + 1)


def members(group: int) -> list[int]:
    """The processes of a session."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                fields = Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[3]) == group:
                found.append(int(entry))
    return found


def resident(process: int) -> int:
    """The bytes of memory of a process; of shared pages its part, where the system tells it."""
    for name, key in (("smaps_rollup", "Pss:"), ("status", "VmRSS:")):
        try:
            lines = Path(f"/proc/{process}/{name}").read_text().splitlines()
        except OSError:
            continue
        for line in lines:
            if line.startswith(key):
                return 1024 * int(line.split()[1])
    return 0


def run(cell: Cell, folder: Path) -> dict[str, object]:
    """Run one command on a new table and say what came of it."""
    frame = make_table(cell.rows + HELD, cell.columns)
    learnt, held = frame.iloc[: cell.rows], frame.iloc[cell.rows :]
    size = object_bytes(learnt)
    learnt.to_csv(folder / "table.csv", index=False)
    held.to_csv(folder / "held.csv", index=False)
    del frame, learnt, held
    out = folder / "out"
    words = [
        sys.executable,
        "-u",
        "-c",
        FIT.format(first=first_core(cell.cores), cores=cell.cores),
        "fit",
        "table.csv",
        "--target",
        TARGET,
    ]
    words += ["--time", f"{cell.seconds:g}s", "--jobs", str(cell.cores), "-o", str(out)]
    began = time.monotonic()
    process = subprocess.Popen(
        [*words, "--no-remember"],
        cwd=folder,
        env={**os.environ, "FORETUNE_HOME": str(folder / "home")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    watch = Watch(process.pid, out / "model.foretune")
    watch.start()
    killer = threading.Timer(PATIENCE * cell.seconds + 120.0, end, [process.pid])
    killer.start()
    spoke, lines = [began], []
    for line in process.stdout or ():
        spoke.append(time.monotonic())
        lines.append(line.rstrip())
    code = process.wait()
    wall = time.monotonic() - began
    killer.cancel()
    watch.stop()
    end(process.pid)
    silences = np.diff([*spoke, began + wall])
    row = {
        "rows": cell.rows,
        "columns": cell.columns,
        "time": cell.seconds,
        "cores": cell.cores,
        "load": round(os.getloadavg()[0], 1),
        "wall": round(wall, 1),
        "late": round(max(0.0, wall - cell.seconds), 1),
        "first_line": round(spoke[1] - began, 1) if lines else None,
        "longest_silence": round(float(silences.max()), 1),
        "first_model": watch.first_model,
        "code": code,
        "peak": watch.peak,
        "table": size,
        "trials": max((int(line.split()[0]) for line in lines if " trial" in line[:12]
                       and line.split()[0].isdigit()), default=0),
        "warned": any(line.startswith("WARNING") for line in lines),
        "last": lines[-1] if lines else "",
    }  # fmt: skip
    return row | scores(out / "model.foretune", folder)


def end(group: int) -> None:
    """Kill what is left of a session that this script has started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def scores(model: Path, folder: Path) -> dict[str, object]:
    """How the model does on rows that it has not learnt from."""
    if not model.exists():
        return {"score": None, "baseline": None}
    from foretune.automl.final_model.model import Model
    from foretune.automl.model_scores import scores_on

    held = pd.read_csv(folder / "held.csv")
    share = held[TARGET].value_counts(normalize=True)
    baseline = float(-(share * np.log(share)).sum())
    found = scores_on(Model.open(model), held, ["log_loss"])["log_loss"]
    return {"score": round(found, 4), "baseline": round(baseline, 4)}


def measure_cell(cell: Cell, libraries: int) -> dict[str, object]:
    """A row of the matrix."""
    with tempfile.TemporaryDirectory() as folder:
        row = run(cell, Path(folder))
    most = max(MOST_LATE_SECONDS, MOST_LATE_SHARE * cell.seconds)
    ratio = max(0.0, float(row["peak"]) - libraries) / float(row["table"])  # type: ignore[arg-type]
    row |= {"libraries": libraries, "memory_ratio": round(ratio, 2)}
    in_time = float(row["late"]) <= most  # type: ignore[arg-type]
    # A table smaller than what libraries take at random has no ratio of its own.
    in_memory = ratio < MOST_TIMES_THE_TABLE or row["table"] < libraries / 10  # type: ignore[operator]
    has_model = row["code"] == 0 and row["score"] is not None
    return row | {"kept": bool(in_time and in_memory and has_model)}


def key(row: dict[str, object]) -> tuple[object, ...]:
    """The cell of a row."""
    seconds = row["time"] if "time" in row else row["seconds"]
    return (row["rows"], row["columns"], seconds, row["cores"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--columns", type=int, default=30)
    parser.add_argument("--time", type=float, default=60.0)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--cells", default="", help="ROWSxCOLUMNS@SECONDS, with commas between")
    parser.add_argument("--seconds", type=float, nargs="+", default=SECONDS, help="with --all")
    parser.add_argument("--jobs", type=int, default=1, help="cores for all commands together")
    parser.add_argument("--out", "--done", type=Path, default=Path("fit_time.jsonl"))
    given = parser.parse_args()
    wanted = [Cell(given.rows, given.columns, given.time, given.cores)]
    if given.all:
        wanted = [Cell(*size, seconds, given.cores) for seconds in given.seconds for size in SIZES]
        wanted.sort(key=lambda cell: (cell.seconds, cell.rows * cell.columns), reverse=True)
    if given.quick:
        wanted = [Cell(*size, seconds, given.cores) for seconds in QUICK_SECONDS for size in SIZES]
    if given.cells:
        wanted = [Cell.of_text(text, given.cores) for text in given.cells.split(",")]
    rows = [json.loads(line) for line in given.out.open()] if given.out.exists() else []
    known = {key(row): row for row in rows}
    small = Cell(*SMALL, given.cores)
    for cells in ([small], wanted):  # all others need what libraries take in the small one
        libraries = known.get(key(asdict(small)), {}).get("peak", 0)
        missing = [(cell, libraries) for cell in cells if key(asdict(cell)) not in known]
        for _, row in run_parts(measure_part, missing, given.jobs // given.cores):
            known[key(row)] = row
            with given.out.open("a") as file:
                file.write(json.dumps(row) + "\n")
            print(json.dumps(row), flush=True)
            print_row([known[name] for name in map(key, map(asdict, wanted)) if name in known])


def measure_part(part: tuple[Cell, int]) -> dict[str, object]:
    return measure_cell(*part)


def print_row(rows: list[dict[str, object]]) -> None:
    """The cells that were wanted as one row of the table of attacks."""
    failed = [row for row in rows if not row["kept"]]
    said = [f"{row['rows']} x {row['columns']}, {row['time']} s: {why(row)}" for row in failed]
    walls = [float(row["wall"]) for row in rows]  # type: ignore[arg-type]
    peaks = [float(row["peak"]) / 2**20 for row in rows]  # type: ignore[arg-type]
    if rows:
        Row(
            "fit --time keeps its time and memory", len(rows), wrong=len(failed),
            longest_s=max(walls), peak_mb=round(max(peaks)), note="; ".join(said[:3]),
        ).print()  # fmt: skip


def why(row: dict[str, object]) -> str:
    """What a command has not kept."""
    if row["code"] != 0 or row["score"] is None:
        return f"exit code {row['code']}"
    return f"{row['late']} s late, {row['memory_ratio']} times the table"


if __name__ == "__main__":
    main()
