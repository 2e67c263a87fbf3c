"""`kill -9` of a running `foretune portfolio build` at random moments, and a resume each time.

    python benchmarks/reliability/portfolio_kills.py --kills 200 --jobs 2

After every kill the journal is read without Optuna or Foretune: it must pass its integrity check,
every pair that was finished before must still be there unchanged with the right error, and no pair
may occur twice or have been evaluated again after its end. In the end the journal must have exactly
the evaluations asked for, the experience file must hold each of them, and the portfolio must be
there. The series take the four builders in turn.
"""

import json
import os
import random
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from kills import wait_for_trials
from lives import import_early, kill, run_life, start_life
from pairs import CENTRES, LOG, measure
from parts import make_parser, run_parts
from series import Findings, run_kills
from tally import Tally

from stores import Trial, abandoned_in, cell, compare, count_ended, read_sqlite

BUILDERS = ("obo", "mf", "naive", "surrogate")
KILLS_A_SERIES = 10
TRIALS_A_KILL = 3
EARLY = 0.2
WORKERS = 2
JOURNAL, OUT = "journal.db", "p.json"
BUILD = (
    *("portfolio", "build", "pairs:error", "--tasks", "tasks.json", "--space", "space.json"),
    *("--journal", JOURNAL, "-o", OUT, "--size", "2", "--candidates", "60"),
    *("--jobs", str(WORKERS)),
)
TASKS = sorted(CENTRES)


@dataclass(frozen=True)
class Series:
    """Kills of one build."""

    builder: str
    kills: int
    seed: int

    @property
    def evaluations(self) -> int:
        """More than the lives before the last one can finish."""
        return TRIALS_A_KILL * self.kills + 10

    @property
    def words(self) -> tuple[str, ...]:
        return (*BUILD, "--builder", self.builder, "--budget", str(self.evaluations))


@dataclass
class Found(Findings):
    """What a series has found."""

    early: int = 0
    again: int = 0
    evaluations: int = 0


def run_series(series: Series) -> Found:
    """Make all kills of a series."""
    return run_kills(series, Found(Tally()), run_build)


def run_build(series: Series, found: Found) -> None:
    """Kill and resume, and check after each kill; leaves its folder only if something is wrong."""
    folder = Path(tempfile.mkdtemp(prefix="portfolio-kills-"))
    (folder / "space.json").write_text(json.dumps({"x": {"range": [0.0, 1.0]}}))
    (folder / "tasks.json").write_text(json.dumps(TASKS))
    os.environ["FORETUNE_HOME"] = str(folder / "home")
    store, draw = folder / JOURNAL, random.Random(series.seed)
    ended: dict[int, Trial] = {}
    for _ in range(series.kills):
        if len(ended) >= series.evaluations - 1:
            break
        began = time.monotonic()
        pid, is_early = start_life(folder, series.words), draw.random() < EARLY
        more = 0 if is_early else draw.randint(1, TRIALS_A_KILL)
        code = wait_for_trials(pid, store, more, draw.uniform(0, 1.0 if is_early else 0.2))
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
            ended = check(folder, store, ended, found.tally)
    last = run_life(folder, series.words)
    if found.tally.check_end(last, folder, 0):
        ended = check(folder, store, ended, found.tally)
        check_last(series, folder, ended, found)
    found.tally.remove_unless_faulty(folder)


def check(folder: Path, store: Path, before: dict[int, Trial], tally: Tally) -> dict[int, Trial]:
    """Compare the journal with what it held before, and with what has been evaluated."""
    ended, running = read_sqlite(store, tally)
    compare(before, ended, running, WORKERS, tally)
    log = folder / LOG
    times = Counter(log.read_text().splitlines()) if log.exists() else Counter()
    for number, trial in ended.items():
        task, x = pair_of(trial)
        if not 1 <= times[f"{task} {x!r}"] <= 1 + abandoned_in(trial):
            tally.blame("doubled", f"pair {number} was evaluated {times[f'{task} {x!r}']} times")
        value = cell(trial, "trial_values", 0)
        if trial[0] != "COMPLETE" or abs(value - measure(task, x)) > 1e-12:
            tally.blame("wrong", f"pair {number} is {trial}")
    return ended


def pair_of(trial: Trial) -> tuple[str, float]:
    """Return the task, which Optuna stores by its place, and x."""
    place = int(cell(trial, "trial_params", "task"))
    return TASKS[place], cell(trial, "trial_params", "x")


def check_last(series: Series, folder: Path, ended: dict[int, Trial], found: Found) -> None:
    """Check what there is in the end, and count what was evaluated again."""
    from foretune.experience import Experience

    if len(ended) != series.evaluations:
        kind = "lost" if len(ended) < series.evaluations else "doubled"
        found.tally.blame(kind, f"{len(ended)} of {series.evaluations} evaluations in {folder}")
    saved = len(Experience.open((folder / OUT).with_suffix(".parquet")))
    if saved != series.evaluations:
        found.tally.blame("lost", f"the experience holds {saved} evaluations in {folder}")
    if len(json.loads((folder / OUT).read_text())["configs"]) != 2:
        found.tally.blame("wrong", f"the portfolio in {folder} is not of two configurations")
    found.again += sum(abandoned_in(trial) for trial in ended.values())
    found.evaluations += len(ended)


def main() -> None:
    parser = make_parser(__doc__, short="two kills")
    parser.add_argument("--kills", type=int, default=200)
    given = parser.parse_args()
    kills = 2 if given.short else given.kills
    sizes = [min(KILLS_A_SERIES, kills - start) for start in range(0, kills, KILLS_A_SERIES)]
    wanted = [
        Series(BUILDERS[n % len(BUILDERS)], size, given.seed + n) for n, size in enumerate(sizes)
    ]
    import_early(only_tune=True)
    import foretune.automl.live_portfolio.api  # noqa: F401 - each life would import it anew

    total = Found(Tally())
    for _, found in run_parts(run_series, wanted, given.jobs):
        total.add(found)
        print_row(total)


def print_row(found: Found) -> None:
    note = f"{found.evaluations} evaluations; {found.early} kills in the first second; "
    row = found.tally.row("kill -9 of portfolio build", f"{note}{found.again} run again")
    row.print()


if __name__ == "__main__":
    main()
