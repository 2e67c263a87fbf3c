"""Every attack on Foretune, and one table of what came of them.

    python -m benchmarks.reliability                             # everything: hours
    python -m benchmarks.reliability --short                     # a few minutes
    python -m benchmarks.reliability --only kills-tune,kills-fit --jobs 16
    python -m benchmarks.reliability --out results               # go on, or show the table again

Each attack is a script in this folder. What has come of it is kept in a file of its own in the
output folder (`NAME.json`), and an attack that is there is not made again; remove the file to
repeat it. The table is printed and written to `table.md`. The exit code is 1 if anything was lost,
doubled or wrong.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.reliability.rows import Row, read_rows

HERE = Path(__file__).parent
SHOWN_LINES = 3
COLUMNS = ("attack", "count", "lost", "doubled", "wrong", "refused", "longest", "peak memory")


@dataclass(frozen=True)
class Attack:
    """One script with its arguments."""

    name: str
    script: str
    words: tuple[str, ...] = ()
    short: tuple[str, ...] = ("--short",)
    """Arguments of the short form."""
    takes_jobs: bool = False
    """Whether it can use several cores, by `--jobs`."""

    def command(self, *, short: bool, jobs: int) -> list[str]:
        words = self.short if short else self.words
        more = ["--jobs", str(jobs)] if self.takes_jobs else []
        return [sys.executable, str(HERE / self.script), *words, *more]


def _kills(command: str, kills: int) -> Attack:
    words = ("--command", command)
    return Attack(
        f"kills-{command}",
        "kills.py",
        (*words, "--kills", str(kills)),
        (*words, "--short"),
        takes_jobs=True,
    )


ATTACKS = (
    _kills("tune", 200),
    _kills("fit", 100),
    Attack("endings", "endings.py", short=()),
    Attack("stops", "stops.py"),
    Attack("full-disk", "full_disk.py"),
    Attack("read-only", "read_only.py"),
    Attack("outage-postgresql", "outages.py", ("--store", "postgresql")),
    Attack(
        "outage-sqlite",
        "outages.py",
        ("--store", "sqlite", "--times", "3"),
        ("--store", "sqlite", "--short"),
    ),
    Attack("clock", "clock.py"),
    Attack("faults", "faults.py", short=("--trials", "200")),
    Attack("results", "results.py", short=("--large", "20")),
    Attack(
        "workers",
        "workers.py",
        short=("--trials", "50", "--replaced", "10", "--printed", "20"),
    ),
    Attack("degenerate", "degenerate.py"),
    Attack("fuzz", "fuzz.py", short=("--seeds", "0-5")),
    Attack("shell", "shell.py", short=("--templates", "10", "--values", "10")),
    Attack("fit-time", "fit_time.py", ("--all",), ("--rows", "20000", "--time", "20")),
    Attack("many-trials", "many_trials.py", short=("--trials", "200", "--methods", "gp")),
    Attack("large-study", "large_study.py", short=("--trials", "200")),
    Attack("processes", "processes.py", short=("--processes", "2", "--trials", "20")),
)


def make(attack: Attack, out: Path, *, short: bool, jobs: int) -> list[Row]:
    """The rows of an attack: those of an earlier run, or of a new one."""
    kept = out / f"{attack.name}{'-short' if short else ''}.json"
    if kept.exists():
        return [Row(**row) for row in json.loads(kept.read_text())]
    if not (HERE / attack.script).exists():
        return [Row(attack.name, 0, skipped=f"there is no {attack.script} in this version")]
    print(f"{attack.name} ...", flush=True)
    began = time.monotonic()
    with (out / f"{attack.name}.log").open("w") as log:
        done = subprocess.run(
            attack.command(short=short, jobs=jobs),
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            check=False,
        )
    seconds = time.monotonic() - began
    (out / f"{attack.name}.txt").write_text(done.stdout)
    rows = read_rows(done.stdout)
    if done.returncode and not any(row.faults for row in rows):
        rows.append(_failed(attack, done, out))
    elif not rows:
        note = f"its checks have passed; it prints a table of its own, in {attack.name}.txt"
        rows.append(Row(attack.name, 1, longest_s=round(seconds, 1), note=note))
    kept.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")
    print(f"{attack.name}: {seconds:.0f} s", flush=True)
    return rows


def _failed(attack: Attack, done: subprocess.CompletedProcess, out: Path) -> Row:
    said = (out / f"{attack.name}.log").read_text().strip().splitlines()[-SHOWN_LINES:]
    note = f"exit code {done.returncode}: {' '.join(said)[-300:]}"
    return Row(attack.name, 1, wrong=1, note=note)


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


def choose(only: str) -> list[Attack]:
    """The attacks with these names, or all."""
    names = [name for name in only.split(",") if name]
    known = {attack.name: attack for attack in ATTACKS}
    unknown = [name for name in names if name not in known]
    if unknown:
        sys.exit(f"attacks are {', '.join(known)}, but got {', '.join(unknown)}")
    return [known[name] for name in names] or list(ATTACKS)


def main() -> None:
    parser = argparse.ArgumentParser(
        "python -m benchmarks.reliability", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--only", default="", metavar="A,B", help="names of attacks; all if empty")
    parser.add_argument("--short", action="store_true", help="a few of each")
    parser.add_argument("--jobs", type=int, default=1, help="for attacks that can use cores")
    parser.add_argument("--out", type=Path, default=Path("reliability-results"))
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(variable, "1")
    rows: list[Row] = []
    for attack in choose(given.only):
        rows += make(attack, given.out, short=given.short, jobs=given.jobs)
        (given.out / "table.md").write_text(in_markdown(rows))
    print(f"\n{in_text(rows)}\n\n{notes(rows)}")
    sys.exit(1 if any(row.faults for row in rows) else 0)


if __name__ == "__main__":
    main()
