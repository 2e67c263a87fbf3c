"""A database that goes away and comes back while `foretune tune` works on it.

    python benchmarks/reliability/outages.py --store postgresql --times 10
    python benchmarks/reliability/outages.py --store sqlite --times 3

PostgreSQL is killed at a random moment, and started again after some seconds, while two processes
work on one study. Each must go on, or end with exit code 2 and one sentence. An SQLite file is
locked by another program for `--seconds`: the command must wait for it. The same command must then
end well, and the study must hold each trial once with the right result. Servers are Debian's
packages, on loopback and on a folder of their own.
"""

import os
import random
import sqlite3
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

from bowl import LOG, SECONDS
from commands import TUNE, prepare
from lives import import_early, run_life, start_life, wait_for, wait_or_kill
from parts import make_parser
from rows import Row
from servers import Postgres, why_no_postgresql
from tally import MISTAKE, SAID, Tally, read

from stores import Trial, compare, compare_evaluations, count_ended, read_sqlite, read_trials

TRIALS = 40
PROCESSES = 2
LONGEST_OUTAGE = 8.0
LONGEST_WAIT = 360.0
"""A run waits five minutes for a server that is away."""


def attack_postgresql(root: Path, times: int, draw: random.Random, tally: Tally) -> str:
    """Kill the server at random moments, each time in a study of its own."""
    import psycopg

    server = Postgres(root)
    server.start()
    went_on = 0
    for number in range(times):
        folder = root / str(number)
        prepare(folder)
        words = (*TUNE, "--trials", str(TRIALS), "--study", f"study-{number}")
        words = tuple(server.url if word == "study.db" else word for word in words)
        pids = [start_life(folder, words) for _ in range(PROCESSES)]
        wait_for_evaluations(folder, draw.randint(0, TRIALS // 2))
        time.sleep(draw.uniform(0.0, 0.5))
        server.stop(draw.choice(("fast", "immediate")))
        time.sleep(draw.uniform(0.0, LONGEST_OUTAGE))
        server.start()
        tally.count += 1
        for pid in pids:
            end = wait_or_kill(pid, LONGEST_WAIT)
            if tally.check_end(end, folder, 0, MISTAKE) and end is not None:
                tally.refused += end.code == MISTAKE
                went_on += end.code == 0
                if end.code == MISTAKE:
                    print(read(folder / SAID).strip().splitlines()[-1], file=sys.stderr)
        with closing(psycopg.connect(server.url)) as store:
            before, _ = read_study(store, f"study-{number}", tally)
        tally.check_end(run_life(folder, words), folder, 0)
        with closing(psycopg.connect(server.url)) as store:
            now, running = read_study(store, f"study-{number}", tally)
        check(folder, before, now, running, tally)
        tally.row(name_of("postgresql"), f"{went_on} processes went on so far").print()
    server.stop("fast")
    return f"{went_on} of {PROCESSES * times} processes went on after the outage"


def wait_for_evaluations(folder: Path, number: int) -> None:
    """Wait until so many evaluations have ended, or for a minute."""
    end = time.monotonic() + 60.0
    while len(read(folder / LOG).splitlines()) < number and time.monotonic() < end:
        time.sleep(0.02)


def read_study(store, name: str, tally: Tally) -> tuple[dict[int, Trial], dict[int, str]]:
    """The trials of one study of a server, which has no table where nothing was stored yet."""
    cursor = store.cursor()
    cursor.execute("SELECT to_regclass('studies')")
    if cursor.fetchone()[0] is None:
        return {}, {}
    cursor.execute("SELECT study_id FROM studies WHERE study_name = %s", (name,))
    found = cursor.fetchone()
    return read_trials(store, tally, study=found[0]) if found else ({}, {})


def check(
    folder: Path,
    before: dict[int, Trial],
    now: dict[int, Trial],
    running: dict[int, str],
    tally: Tally,
) -> None:
    """Check a study that is finished."""
    compare(before, now, running, 0, tally)
    if len(now) != TRIALS:
        tally.blame("lost", f"{len(now)} of {TRIALS} trials in {folder}")
    # What ended while the database was away could not be stored, and was run again.
    compare_evaluations(folder, now, tally, more=1)


def attack_sqlite(root: Path, times: int, seconds: float, draw: random.Random, tally: Tally) -> str:
    """Lock the file at random moments, as another program would."""
    for number in range(times):
        folder = root / str(number)
        prepare(folder)
        words = (*TUNE, "--trials", str(TRIALS), "--jobs", "2")
        store = folder / "study.db"
        pid = start_life(folder, words)
        until, end = draw.randint(1, TRIALS // 2), None
        while count_ended(store) < until and end is None:
            end = wait_for(pid, 0.02)
        with closing(sqlite3.connect(store, timeout=60, isolation_level=None)) as lock:
            lock.execute("BEGIN EXCLUSIVE")
            before, _ = read_sqlite(store, tally)
            time.sleep(seconds)
            lock.execute("ROLLBACK")
        tally.count += 1
        tally.check_end(end or wait_or_kill(pid), folder, 0)
        now, running = read_sqlite(store, tally)
        check(folder, before, now, running, tally)
        tally.row(name_of("sqlite")).print()
    return f"locked for {seconds:.0f} s each"


def name_of(store: str) -> str:
    """What the attack is called in the table."""
    return f"database goes away and comes back: {store}"


def main() -> None:
    parser = make_parser(__doc__, times=10, short="once, with a lock of 1 s")
    parser.add_argument("--store", choices=["postgresql", "sqlite"], default="postgresql")
    parser.add_argument("--seconds", type=float, default=30.0, help="of a lock on SQLite")
    given = parser.parse_args()
    name = name_of(given.store)
    if given.store == "postgresql" and (reason := why_no_postgresql()):
        Row(name, 0, skipped=reason).print()
        return
    if given.short:
        given.times, given.seconds = 1, 1.0
    os.environ.setdefault(SECONDS, "0.05" if given.short else "0.2")
    import_early(only_tune=True)
    root = Path(tempfile.mkdtemp(prefix="outages-"))
    tally, draw = Tally(), random.Random(given.seed)
    if given.store == "postgresql":
        note = attack_postgresql(root, given.times, draw, tally)
    else:
        note = attack_sqlite(root, given.times, given.seconds, draw, tally)
    tally.row(name, note).print()
    tally.remove_unless_faulty(root)


if __name__ == "__main__":
    main()
