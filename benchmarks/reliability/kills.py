"""`kill -9` of a running `foretune tune` or `fit` at random moments, and a resume each time.

    python benchmarks/reliability/kills.py --command tune --kills 200 --jobs 2
    python benchmarks/reliability/kills.py --command fit --kills 100 --jobs 16

After every kill the SQLite file is read without Optuna or Foretune: it must pass its integrity
check, every trial that was finished before must still be there unchanged, and no configuration may
occur twice; a tuned function also notes its calls, and no finished trial may have been evaluated
again. In the end the study must have exactly the trials asked for; `fit` must have saved all of
them, must remember none twice for later fits, and its model must predict.

The method is random search, whose cost is small: it is the store that is tried here. One kill in
`1 / EARLY` comes at a random moment of the first second. `--jobs` series of kills run at the same
time, each with a study of its own.
"""

import argparse
import os
import random
import shutil
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

from bowl import LOG
from lives import FIT, OUT, TUNE, Tally, import_early, kill, prepare, run_life, start_life

from stores import (
    Trial,
    abandoned_in,
    check_fit,
    compare,
    compare_evaluations,
    count_ended,
    read_sqlite,
)

COMMANDS = {"tune": (TUNE, "study.db"), "fit": (FIT, f"{OUT}/study.db")}
EARLY = 0.2
TRIALS_A_KILL = 3
KILLS_A_SERIES = 25
"""Beyond that a series costs more than it finds: each life reads all trials so far."""
WORKERS = 2
LONGEST_WAIT = 120.0


@dataclass(frozen=True)
class Series:
    """Kills of one command on one study."""

    command: str
    kills: int
    seed: int

    @property
    def trials(self) -> int:
        """More than the lives before the last one can finish."""
        return TRIALS_A_KILL * self.kills + 2

    @property
    def words(self) -> tuple[str, ...]:
        return (*COMMANDS[self.command][0], "--trials", str(self.trials), "--jobs", str(WORKERS))


@dataclass
class Found:
    """What a series has found."""

    tally: Tally
    early: int = 0
    again: int = 0
    trials: int = 0


def run_series(series: Series) -> Found:
    """Kill and resume, and check after each kill; leaves its folder only if something is wrong."""
    found = Found(Tally())
    folder = Path(tempfile.mkdtemp(prefix=f"kills-{series.command}-"))
    prepare(folder)
    os.environ["FORETUNE_HOME"] = str(folder / "home")
    store, draw = folder / COMMANDS[series.command][1], random.Random(series.seed)
    ended: dict[int, Trial] = {}
    while found.tally.count < series.kills and len(ended) < series.trials - 1:
        began = time.monotonic()
        pid, is_early = start_life(folder, series.words), draw.random() < EARLY
        more = 0 if is_early else draw.randint(1, TRIALS_A_KILL)
        seconds = draw.uniform(0, 1.0 if is_early else 0.2)
        if not wait_for_trials(pid, store, more, seconds):
            found.tally.blame("wrong", f"a life ended by itself in {folder}")
            return found
        kill(pid)
        found.tally.count += 1
        found.early += is_early
        found.tally.longest_s = max(found.tally.longest_s, time.monotonic() - began)
        if ended or count_ended(store):
            ended = check(series, folder, store, ended, found.tally)
    last = run_life(folder, series.words)
    if found.tally.check_end(last, folder, 0):
        ended = check(series, folder, store, ended, found.tally)
        check_last(series, folder, ended, found)
    if not found.tally.said:
        shutil.rmtree(folder)
    return found


def wait_for_trials(pid: int, store: Path, more: int, seconds: float) -> bool:
    """Wait for so many more trials and then so long; False if the process ends before."""
    goal, end = count_ended(store) + more, time.monotonic() + LONGEST_WAIT
    while more and count_ended(store) < goal and time.monotonic() < end:
        if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            break
        time.sleep(0.02)
    time.sleep(seconds)
    if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        return True
    os.waitpid(pid, 0)
    return False


def check(
    series: Series, folder: Path, store: Path, before: dict[int, Trial], tally: Tally
) -> dict[int, Trial]:
    """Compare the store with what it held before, and with what has been evaluated."""
    ended, running = read_sqlite(store, tally)
    compare(before, ended, running, WORKERS, tally)
    if series.command == "tune":
        compare_evaluations(folder, ended, tally)
    return ended


def check_last(series: Series, folder: Path, ended: dict[int, Trial], found: Found) -> None:
    """Check what there is in the end, and count what was evaluated again."""
    if len(ended) != series.trials:
        kind = "lost" if len(ended) < series.trials else "doubled"
        found.tally.blame(kind, f"{len(ended)} of {series.trials} trials in {folder}")
    if series.command == "fit":
        remembered = check_fit(folder, series.trials, found.tally)
        if remembered != series.trials:
            found.tally.blame("lost", f"{remembered} of {series.trials} are remembered: {folder}")
    else:
        evaluated = len((folder / LOG).read_text().splitlines())
        again = sum(abandoned_in(trial) for trial in ended.values())
        if evaluated > series.trials + again:
            found.tally.blame("doubled", f"{evaluated} evaluations of {series.trials} trials")
    found.again = sum(abandoned_in(trial) for trial in ended.values())
    found.trials = len(ended)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--command", choices=list(COMMANDS), default="tune")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=1, help="series of kills at the same time")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--short", action="store_true", help="three kills")
    given = parser.parse_args()
    kills = 3 if given.short else given.kills
    each = max(1, min(KILLS_A_SERIES, -(-kills // given.jobs)))
    sizes = [min(each, kills - start) for start in range(0, kills, each)]
    todo = [Series(given.command, size, given.seed + n) for n, size in enumerate(sizes)]
    import_early(only_tune=given.command == "tune")
    tally, early, again, trials = Tally(), 0, 0, 0
    with ProcessPoolExecutor(given.jobs, mp_context=get_context("fork")) as pool:
        for found in pool.map(run_series, todo):
            tally.add(found.tally)
            early, again, trials = early + found.early, again + found.again, trials + found.trials
            print(f"{tally.count} kills, {trials} trials finished", flush=True)
    note = f"{trials} trials; {early} kills in the first second; {again} trials run again"
    tally.row(f"kill -9 of {given.command}", note).print()


if __name__ == "__main__":
    main()
