"""A clock that jumps back and forth while commands run.

    python benchmarks/reliability/clock.py --times 6

A small library (`clock.c`, which needs a C compiler) shifts the wall clock of a command and of all
that it starts by up to two days, back or forth, at random moments. The monotonic clock runs on, as
it does when a real clock is set. A budget of time must be kept, no trial may take a negative time
or be stopped by its time limit, none may be lost or doubled, and the report must not show a
negative time. `fit` and `collect`, with their journals, must end well and have all their trials.
"""

import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from bowl import SECONDS
from commands import COLLECT, FIT, OUT, TUNE, prepare
from lives import LONGEST_LIFE, run_fresh
from parts import make_parser, run_parts
from rows import Row
from tally import SAID, Ended, Tally, read

from stores import cell, check_fit, compare, compare_evaluations, read_sqlite

HERE = Path(__file__).parent
TRIALS = 20
BUDGET = 4.0
EVALUATION = 0.2
MOST_TRIALS = BUDGET / EVALUATION + 1
"""One worker cannot evaluate more within the budget."""
SLACK = 30.0
"""Seconds that a busy machine may add to an evaluation."""
LARGEST_JUMP = 2 * 24 * 3600
COMMANDS = {
    "tune": (*TUNE, "--trials", str(TRIALS), "--jobs", "2", "--time-limit", "60s"),
    "tune --time": (*TUNE, "--time", f"{BUDGET:.0f}s", "--report", "tuned.html"),
    "fit": (*FIT, "--trials", "8", "--jobs", "1"),
    "collect": COLLECT,
}


def build(folder: Path) -> str:
    """Compile the library that shifts clocks; where it lies."""
    made = folder / "clock.so"
    words = ["cc", "-shared", "-fPIC", "-O1", "-o", made, HERE / "clock.c", "-ldl"]
    subprocess.run(words, check=True)
    return str(made)


def attack(name: str, folder: Path, library: str, draw: random.Random, tally: Tally) -> None:
    """Run a command while its clock jumps, and check what it has left."""
    prepare(folder)
    clock = folder / "clock.rc"
    set_clock(clock, 0)
    process = run_fresh(
        folder,
        COMMANDS[name],
        LD_PRELOAD=library,
        CLOCK_SHIFT_FILE=str(clock),
    )
    end = watch(process, clock, draw)
    tally.count += 1
    if tally.check_end(end, folder, 0) and end is not None:
        check(name, folder, end, tally)


def set_clock(clock: Path, shift: int) -> None:
    """Let the clock run on from now and so many seconds."""
    following = clock.with_suffix(".next")
    following.write_text(f"{shift:+d}\n")
    following.replace(clock)


def watch(process: subprocess.Popen, clock: Path, draw: random.Random) -> Ended | None:
    """Let the clock jump until the process ends; None, and it is killed, if it hangs."""
    began = time.monotonic()
    while time.monotonic() < began + LONGEST_LIFE:
        try:
            code = process.wait(draw.uniform(0.2, 1.5))
        except subprocess.TimeoutExpired:
            set_clock(clock, draw.randint(-LARGEST_JUMP, LARGEST_JUMP))
        else:
            return Ended(code, time.monotonic() - began, 0.0)
    process.kill()
    process.wait()
    return None


def check(name: str, folder: Path, end: Ended, tally: Tally) -> None:
    """Check what a command has left whose clock has jumped."""
    from foretune.experience import Experience

    if name.startswith("tune"):
        check_tuned(name, folder, tally)
    elif name == "fit":
        os.environ["FORETUNE_HOME"] = str(folder / "home")
        if check_fit(folder, 8, tally) != 8:
            tally.blame("lost", f"not all trials are remembered in {folder}")
        check_seconds(folder, Experience.open(folder / OUT / "trials.parquet"), end, tally)
    else:
        collected = Experience.open(folder / "collected.parquet")
        check_seconds(folder, collected, end, tally)
        if len(collected) != 12:
            tally.blame("lost", f"{len(collected)} of 12 evaluations in {folder}")


def check_tuned(name: str, folder: Path, tally: Tally) -> None:
    now, running = read_sqlite(folder / "study.db", tally)
    compare({}, now, running, 1 if name == "tune --time" else 0, tally)
    compare_evaluations(folder, now, tally)
    if name == "tune" and len(now) != TRIALS:
        tally.blame("lost", f"{len(now)} of {TRIALS} trials in {folder}")
    # Not by the time of the command: a busy machine takes long to start Python and to report.
    if name == "tune --time" and not 1 <= len(now) <= MOST_TRIALS:
        tally.blame("wrong", f"{len(now)} trials within {BUDGET} s in {folder}")
    for number, trial in now.items():
        seconds = float(cell(trial, "trial_user_attributes", "seconds") or 0.0)
        if not 0.0 <= seconds < SLACK:
            tally.blame("wrong", f"trial {number} took {seconds} s in {folder}")
    with closing(sqlite3.connect(folder / "study.db")) as store:
        if not store.execute("SELECT COUNT(*) FROM studies").fetchone()[0]:
            tally.blame("lost", f"the study is gone in {folder}")
    for text in (read(folder / "tuned.html"), read(folder / SAID)):
        if "-1 day" in text:
            tally.blame("wrong", f"a negative time is shown in {folder}")


def check_seconds(folder: Path, experience, end: Ended, tally: Tally) -> None:
    """Blame run times that are negative or longer than the whole life."""
    for seconds in experience.seconds.tolist():
        if not 0.0 <= seconds <= end.seconds:
            tally.blame("wrong", f"an evaluation took {seconds} s in {folder}")


def main() -> None:
    parser = make_parser(__doc__, times=6, short="one tune")
    parser.add_argument("--command", nargs="+", choices=list(COMMANDS), default=list(COMMANDS))
    given = parser.parse_args()
    if shutil.which("cc") is None or not sys.platform.startswith("linux"):
        Row("clock jumps back and forth", 0, skipped="needs Linux and a C compiler").print()
        return
    if given.short:
        given.command, given.times = ["tune"], 1
    os.environ[SECONDS] = "0.05" if given.short else str(EVALUATION)
    tally = Tally()
    root = Path(tempfile.mkdtemp(prefix="clock-"))
    library = build(root)
    parts = [
        Part(name, number, root, library, given.seed)
        for number in range(given.times)
        for name in given.command
    ]
    for _, found in run_parts(attack_once, parts, given.jobs):
        tally.add(found)
        tally.row("clock jumps back and forth", ", ".join(given.command)).print()
    tally.remove_unless_faulty(root)


class Part(NamedTuple):
    """One life of one command."""

    command: str
    number: int
    root: Path
    library: str
    seed: int


def attack_once(part: Part) -> Tally:
    tally, draw = Tally(), random.Random(f"{part.seed} {part.command} {part.number}")
    folder = part.root / f"{part.command.replace(' ', '-')}-{part.number}"
    attack(part.command, folder, part.library, draw, tally)
    return tally


if __name__ == "__main__":
    main()
