"""Every attack on Foretune, and one table of what came of them.

    python -m benchmarks.reliability                             # one after the other: hours
    python -m benchmarks.reliability --jobs 16 --time 520        # on 16 cores
    python -m benchmarks.reliability --short                     # a few minutes
    python -m benchmarks.reliability --only kills-tune,kills-fit --jobs 16
    python -m benchmarks.reliability --out results               # go on, or show the table again

Each attack is a script in this folder. With `--jobs`, several run at the same time, and each takes
several cores if it can. The output folder has two files. `rows.jsonl` holds a line for each attack
that is finished; it is not made again until you remove its line. `table.md` is written after each
attack. What the scripts print stands in `--logs` (`NAME.txt` and `NAME.log`) as soon as it is
printed. An attack that is over its time is stopped, and its row says how far it came; the same
command makes it again, or goes on with it. The exit code is 1 if anything was lost, doubled or
wrong.
"""

import argparse
import contextlib
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

from benchmarks.reliability.rows import Row, read_rows

HERE = Path(__file__).parent
SHOWN_LINES = 3
LIMIT = 3600.0
"""Seconds that an attack may take by default."""
LOOK_SECONDS = 0.2
PATIENCE = 10.0
"""Seconds that a stopped attack has to end."""
ROWS = "rows.jsonl"
"""The file of all rows, in the output folder."""
COLUMNS = ("attack", "count", "lost", "doubled", "wrong", "refused", "longest", "peak memory")


@dataclass(frozen=True)
class Attack:
    """One script with its arguments."""

    name: str
    script: str
    words: tuple[str, ...] = ()
    short: tuple[str, ...] = ("--short",)
    """Arguments of the short form."""
    cores: int = 1
    """How many it uses at most, by `--jobs` if it is more than one."""
    goes_on: bool = False
    """Whether it keeps what it has done in the file `--done`."""
    folder: Path = HERE
    """Where the script lies."""

    def command(self, logs: Path, *, short: bool, jobs: int) -> list[str]:
        words = [*(self.short if short else self.words)]
        if self.cores > 1:
            words += ["--jobs", str(min(jobs, self.cores))]
        if self.goes_on:
            words += ["--done", str(logs / f"{self.stem(short)}.jsonl")]
        return [sys.executable, str(self.folder / self.script), *words]

    def stem(self, short: bool) -> str:
        """The name of its files."""
        return f"{self.name}-short" if short else self.name


def _kills(command: str, kills: int) -> Attack:
    words = ("--command", command)
    counted = (*words, "--kills", str(kills))
    return Attack(
        f"kills-{command}", "kills.py", counted, (*words, "--short"), cores=5, goes_on=True
    )


ATTACKS = (
    _kills("tune", 200),
    _kills("fit", 100),
    Attack("kills-stop", "step_kills.py", cores=4),
    Attack("endings", "endings.py", cores=4),
    Attack("stops", "stops.py", cores=8),
    Attack("full-disk", "full_disk.py", cores=4),
    Attack("read-only", "read_only.py"),
    Attack("outage-postgresql", "outages.py", ("--store", "postgresql")),
    Attack(
        "outage-sqlite",
        "outages.py",
        ("--store", "sqlite", "--times", "3"),
        ("--store", "sqlite", "--short"),
    ),
    Attack("clock", "clock.py", cores=3),
    Attack("faults", "faults.py", cores=4),
    Attack("results", "results.py", short=("--large", "20")),
    Attack(
        "workers",
        "workers.py",
        short=("--trials", "50", "--replaced", "10", "--printed", "20"),
    ),
    Attack(
        "degenerate",
        "degenerate.py",
        short=("--methods", "gp", "random", "--kinds", "one task", "all values equal"),
        cores=4,
    ),
    Attack("fuzz", "fuzz.py", short=("--seeds", "0-3", "--reader", "space|table"), cores=4),
    Attack("shell", "shell.py", short=("--templates", "10", "--values", "10"), cores=4),
    Attack(
        "fit-time",
        "fit_time.py",
        ("--all", "--seconds", "10", "60"),
        ("--rows", "5000", "--time", "10"),
        cores=6,
        goes_on=True,
    ),
    Attack("many-trials", "many_trials.py", short=("--trials", "200", "--methods", "gp"), cores=2),
    Attack("large-study", "large_study.py", short=("--trials", "200")),
    Attack(
        "processes",
        "processes.py",
        ("--processes", "16", "--trials", "640"),
        short=("--processes", "2", "--trials", "20"),
    ),
    Attack(
        "processes-postgresql",
        "processes.py",
        ("--store", "postgresql", "--processes", "64", "--trials", "640"),
        short=("--store", "postgresql", "--processes", "2", "--trials", "20"),
    ),
    Attack("ray-nodes", "ray_nodes.py"),
)
LONGEST = (
    *("fit-time", "stops", "faults", "clock", "full-disk", "fuzz", "outage-sqlite", "kills-fit"),
    *("endings", "read-only", "kills-tune", "large-study", "degenerate", "processes"),
)
"""These are begun first, in this order, so that none of them is left for the end."""


@dataclass
class Run:
    """An attack that is running."""

    attack: Attack
    process: subprocess.Popen
    scratch: Path
    """A folder for its temporary files."""
    ends: float
    """The moment when it is stopped."""
    stopped: bool = False
    began: float = field(default_factory=time.monotonic)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began

    def signal(self, number: int) -> None:
        """Send a signal to the script and all that it has started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)


def start(attack: Attack, given: SimpleNamespace, limit: float) -> Run:
    """Start an attack, whose output goes to files."""
    stem, paths = attack.stem(given.short), [os.environ.get("PYTHONPATH", "")]
    if find_spec("foretune") is None:
        paths.insert(0, str(HERE.parents[1] / "src"))
    scratch = Path(tempfile.mkdtemp(prefix=f"{attack.name}-"))
    scratch.chmod(0o711)  # a database server runs as another user
    said, log = (given.logs / f"{stem}.txt").open("w"), (given.logs / f"{stem}.log").open("w")
    with said, log:
        process = subprocess.Popen(
            attack.command(given.logs.absolute(), short=given.short, jobs=given.jobs),
            stdout=said,
            stderr=log,
            env={
                **os.environ,
                "TMPDIR": str(scratch),
                "PYTHONPATH": os.pathsep.join(filter(None, paths)),
            },
            start_new_session=True,
        )
    return Run(attack, process, scratch, time.monotonic() + limit)


def rows_of(run: Run, given: SimpleNamespace) -> list[Row]:
    """What a run that has ended says, which is kept if it is all."""
    stem = run.attack.stem(given.short)
    text = (given.logs / f"{stem}.txt").read_text()
    rows, code = read_rows(text), run.process.returncode
    if run.stopped:
        note = f"not finished within {run.seconds:.0f} s"
        if not rows:
            last = (text.strip().splitlines() or ["(nothing)"])[-1][:200]
            return [Row(run.attack.name, 0, note=f"{note}; last said: {last}")]
        return [replace(row, note=f"{note}; {row.note}".rstrip("; ")) for row in rows]
    if code and not any(row.faults for row in rows):
        rows.append(_failure_row(run.attack, code, given.logs / f"{stem}.log"))
    elif not rows:
        rows.append(Row(run.attack.name, 1, wrong=1, note=f"it printed no row, see {stem}.txt"))
    with (given.out / ROWS).open("a") as kept:
        kept.write(json.dumps({"name": stem, "rows": [asdict(row) for row in rows]}) + "\n")
    return rows


def _failure_row(attack: Attack, code: int, log: Path) -> Row:
    said = log.read_text(errors="replace").strip().splitlines()[-SHOWN_LINES:]
    return Row(attack.name, 1, wrong=1, note=f"exit code {code}: {' '.join(said)[-300:]}")


def rows_kept(attack: Attack, given: SimpleNamespace) -> list[Row] | None:
    """The rows of an earlier run, or why there are none in this version."""
    kept = given.out / ROWS
    for line in kept.read_text().splitlines() if kept.exists() else ():
        found = json.loads(line)
        if found["name"] == attack.stem(given.short):
            return [Row(**row) for row in found["rows"]]
    if not (attack.folder / attack.script).exists():
        return [Row(attack.name, 0, skipped=f"there is no {attack.script} in this version")]
    return None


def make_all(attacks: list[Attack], given: SimpleNamespace) -> list[Row]:
    """The rows of all attacks, several of which run at the same time where cores are free."""
    end = time.monotonic() + given.time
    found = {attack.name: rows_kept(attack, given) for attack in attacks}
    waiting = [attack for attack in attacks if found[attack.name] is None]
    waiting.sort(key=lambda a: LONGEST.index(a.name) if a.name in LONGEST else len(LONGEST))
    running: list[Run] = []
    try:
        while waiting or running:
            for attack in list(waiting):
                left = end - time.monotonic()
                if left > 0 and _has_room(attack, running, given.jobs):
                    waiting.remove(attack)
                    print(f"{attack.name} ...", flush=True)
                    running.append(start(attack, given, min(given.limit, left)))
            if end <= time.monotonic():
                waiting.clear()
            time.sleep(LOOK_SECONDS)
            for run in [run for run in running if _has_ended(run)]:
                running.remove(run)
                found[run.attack.name] = rows = rows_of(run, given)
                if not any(row.faults for row in rows):
                    shutil.rmtree(run.scratch, ignore_errors=True)
                print(f"{run.attack.name}: {run.seconds:.0f} s", flush=True)
                write_table(found, given.out)
    finally:  # also after Ctrl-C: rows that were printed stay
        for run in running:
            run.signal(signal.SIGKILL)
            run.process.wait()
            run.stopped = True
            found[run.attack.name] = rows_of(run, given)
        rows = write_table(found, given.out)
        print(f"\n{in_text(rows)}\n\n{notes(rows)}", flush=True)
    return rows


def _has_room(attack: Attack, running: list[Run], jobs: int) -> bool:
    used = sum(min(run.attack.cores, jobs) for run in running)
    return not running or used + min(attack.cores, jobs) <= jobs


def _has_ended(run: Run) -> bool:
    """Whether a run is over; asks it to stop, and then kills it, if its time is."""
    if run.process.poll() is not None:
        run.signal(signal.SIGKILL)  # what it has left
        return True
    late = time.monotonic() - run.ends
    if late > 0 and not run.stopped:
        run.signal(signal.SIGTERM)
        run.stopped = True
    elif late > PATIENCE:
        run.signal(signal.SIGKILL)
    return False


def write_table(found: dict[str, list[Row] | None], out: Path) -> list[Row]:
    """Write all rows there are; those that were not begun are marked."""
    rows: list[Row] = []
    for name, known in found.items():
        rows += known if known is not None else [Row(name, 0, skipped="not begun, or not finished")]
    (out / "table.md").write_text(f"{in_markdown(rows)}\n{notes(rows)}\n")
    return rows


def cells(row: Row) -> list[str]:
    """A row of the table as texts."""
    if row.skipped:
        return [row.attack, "skipped", *[""] * 6]
    counts = (row.count, row.lost, row.doubled, row.wrong, row.refused)
    longest = "" if row.longest_s is None else f"{row.longest_s:.1f} s"
    peak = "" if row.peak_mb is None else f"{row.peak_mb:.0f} MiB"
    return [row.attack, *(f"{count:,}" for count in counts), longest, peak]


def in_text(rows: list[Row]) -> str:
    """The table for a terminal."""
    lines = [list(COLUMNS), *map(cells, rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(COLUMNS))]
    return "\n".join(
        "  ".join(
            text.rjust(width) if column else text.ljust(width)
            for column, (text, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def in_markdown(rows: list[Row]) -> str:
    """The table for a page."""
    lines = [list(COLUMNS), ["---", *["--:"] * 7], *map(cells, rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def notes(rows: list[Row]) -> str:
    """What rows say beside their numbers."""
    return "\n".join(
        f"{row.attack}: {row.skipped or row.note}" for row in rows if row.skipped or row.note
    )


def choose(only: str, attacks: Sequence[Attack]) -> list[Attack]:
    """Return the attacks with these names, or all."""
    names = [name for name in only.split(",") if name]
    known = {attack.name: attack for attack in attacks}
    unknown = [name for name in names if name not in known]
    if unknown:
        sys.exit(f"attacks are {', '.join(known)}, but got {', '.join(unknown)}")
    return [known[name] for name in names] or list(attacks)


def main(words: Sequence[str] | None = None, attacks: Sequence[Attack] = ATTACKS) -> None:
    parser = argparse.ArgumentParser(
        "python -m benchmarks.reliability", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--only", default="", metavar="A,B", help="names of attacks; all if empty")
    parser.add_argument("--short", action="store_true", help="a few of each")
    parser.add_argument("--jobs", type=int, default=1, help="cores for all attacks together")
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds for each attack")
    parser.add_argument("--time", type=float, default=math.inf, help="seconds for all of them")
    parser.add_argument("--out", type=Path, default=Path("reliability-results"))
    parser.add_argument(
        "--logs", type=Path, help="what scripts print; by default a temporary folder"
    )
    given = parser.parse_args(words, namespace=SimpleNamespace())
    given.out.mkdir(parents=True, exist_ok=True)
    name = "-".join(given.out.absolute().parts[1:])
    given.logs = given.logs or Path(tempfile.gettempdir()) / f"foretune-attacks-{name}"
    given.logs.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped: the same command goes on"))
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(variable, "1")
    rows = make_all(choose(given.only, attacks), given)
    sys.exit(1 if any(row.faults for row in rows) else 0)


if __name__ == "__main__":
    main()
