"""`kill -9` of a running `foretune tune` or `fit` at random moments, and a resume each time.

    python benchmarks/reliability/kills.py --command tune --kills 200 --jobs 2
    python benchmarks/reliability/kills.py --command fit --kills 100 --jobs 16 --done fit.jsonl

After every kill the SQLite file is read without Optuna or Foretune: it must pass its integrity
check, every trial that was finished before must still be there unchanged, and no configuration may
occur twice; a tuned function also notes its calls, and no finished trial may have been evaluated
again. In the end the study must have exactly the trials asked for; `fit` must have saved all of
them, must remember none twice for later fits, and its model must predict.

The method is random search, whose cost is small: it is the store that is tried here. One kill in
`1 / EARLY` comes at a random moment of the first second. `--jobs` series of kills run at the same
time, each with a study of its own. After each series a row says what was found so far; series that
stand in the file `--done` are not made again.
"""

import json
import os
import random
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from bowl import LOG
from commands import FIT, OUT, TUNE, prepare
from lives import import_early, kill, run_life, start_life
from parts import make_parser, run_parts
from series import Findings, run_kills
from tally import Tally

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
KILLS_A_SERIES = 10
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
class Found(Findings):
    """What a series has found."""

    early: int = 0
    again: int = 0
    trials: int = 0


def run_series(series: Series) -> Found:
    """Make all kills of a series."""
    return run_kills(series, Found(Tally()), run_study)


def run_study(series: Series, found: Found) -> None:
    """Kill and resume, and check after each kill; leaves its folder only if something is wrong."""
    folder = Path(tempfile.mkdtemp(prefix=f"kills-{series.command}-"))
    prepare(folder)
    os.environ["FORETUNE_HOME"] = str(folder / "home")
    store, draw = folder / COMMANDS[series.command][1], random.Random(series.seed)
    ended: dict[int, Trial] = {}
    goal = found.tally.count + series.kills
    while found.tally.count < goal and len(ended) < series.trials - 1:
        began = time.monotonic()
        pid, is_early = start_life(folder, series.words), draw.random() < EARLY
        more = 0 if is_early else draw.randint(1, TRIALS_A_KILL)
        seconds = draw.uniform(0, 1.0 if is_early else 0.2)
        code = wait_for_trials(pid, store, more, seconds)
        if code == 0:  # a quick machine has done all before the kill
            break
        if code is not None:
            found.tally.blame("wrong", f"a life ended by itself with exit code {code} in {folder}")
            return
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
    found.tally.remove_unless_faulty(folder)


def wait_for_trials(pid: int, store: Path, more: int, seconds: float) -> int | None:
    """Wait for so many more trials and then so long; the exit code if the process ends before."""
    goal, end = count_ended(store) + more, time.monotonic() + LONGEST_WAIT
    while more and count_ended(store) < goal and time.monotonic() < end:
        if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            break
        time.sleep(0.02)
    time.sleep(seconds)
    if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        return None
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


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
    found.again += sum(abandoned_in(trial) for trial in ended.values())
    found.trials += len(ended)


def read_done(path: Path | None) -> dict[Series, Found]:
    """The series that an earlier run has finished."""
    if path is None or not path.exists():
        return {}
    lines = [json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")]
    done = {}
    for line in lines:
        found = line["found"]
        done[Series(**line["series"])] = Found(**{**found, "tally": Tally(**found["tally"])})
    return done


def note_done(path: Path | None, series: Series, found: Found) -> None:
    """Keep what a finished series has found."""
    if path is not None:
        with path.open("a") as file:
            file.write(json.dumps({"series": asdict(series), "found": asdict(found)}) + "\n")


def main() -> None:
    parser = make_parser(__doc__, short="two kills")
    parser.add_argument("--command", choices=list(COMMANDS), default="tune")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--done", type=Path, help="file of finished series, to go on")
    given = parser.parse_args()
    kills = 2 if given.short else given.kills
    sizes = [min(KILLS_A_SERIES, kills - start) for start in range(0, kills, KILLS_A_SERIES)]
    wanted = [Series(given.command, size, given.seed + n) for n, size in enumerate(sizes)]
    done = read_done(given.done)
    todo = [series for series in wanted if series not in done]
    import_early(only_tune=given.command == "tune")
    total = Found(Tally())
    for series in wanted:
        if series in done:
            total.add(done[series])
    if len(todo) < len(wanted):
        print_row(given.command, total)
    for series, found in run_parts(run_series, todo, given.jobs):
        note_done(given.done, series, found)
        total.add(found)
        print_row(given.command, total)


def print_row(command: str, found: Found) -> None:
    note = f"{found.trials} trials; {found.early} kills in the first second; "
    found.tally.row(f"kill -9 of {command}", f"{note}{found.again} trials run again").print()


if __name__ == "__main__":
    main()
