"""`kill -9` of a running `foretune tune --stop asha` at random moments, and a resume each time.

    python benchmarks/reliability/step_kills.py --kills 200 --jobs 2

The tuned function notes each report that was answered. After every kill the SQLite file is read
without Optuna or Foretune. Every report that was answered must be there, with its value, and no
step may be there twice. In the end the study must have exactly the trials asked for, none of which
may still run, and paused trials must have gone on: complete trials have all steps, each once.
"""

import json
import os
import random
import sqlite3
import tempfile
import time
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from lives import import_early, kill, run_life, start_life
from parts import make_parser, run_parts
from series import Findings, run_kills
from steps import LAST, LOG, loss
from tally import Tally

TUNE = (
    *("tune", "steps:train", "--space", "space.json", "--method", "random"),
    *("--store", "study.db", "--stop", "asha", "--jobs", "2"),
)
KILLS_A_SERIES = 10
TRIALS_A_KILL = 10
MOST_STEPS_A_LIFE = 25
EARLY = 0.1
LONGEST_WAIT = 120.0


@dataclass(frozen=True)
class Series:
    """Kills of one study."""

    kills: int
    seed: int

    @property
    def trials(self) -> int:
        return TRIALS_A_KILL * self.kills + 4

    @property
    def words(self) -> tuple[str, ...]:
        return (*TUNE, "--trials", str(self.trials))


@dataclass
class Found(Findings):
    """What a series has found."""

    answered: int = 0
    resumed: int = 0
    given_up: int = 0


def run_series(series: Series) -> Found:
    """Make all kills of a series."""
    return run_kills(series, Found(Tally()), run_study)


def run_study(series: Series, found: Found) -> None:
    """Kill and resume one study, and check it after each kill."""
    folder = Path(tempfile.mkdtemp(prefix="step-kills-"))
    (folder / "space.json").write_text(json.dumps({"x": {"range": [0.0, 1.0]}}))
    os.environ["FORETUNE_HOME"] = str(folder / "home")
    draw = random.Random(series.seed)
    for _ in range(series.kills):
        began = time.monotonic()
        pid, is_early = start_life(folder, series.words), draw.random() < EARLY
        more = 0 if is_early else draw.randint(1, MOST_STEPS_A_LIFE)
        if has_ended(pid, folder, more, draw.uniform(0, 1.0 if is_early else 0.05)):
            break
        kill(pid)
        found.tally.count += 1
        found.tally.longest_s = max(found.tally.longest_s, time.monotonic() - began)
        check(folder, found.tally)
    last = run_life(folder, series.words)
    if found.tally.check_end(last, folder, 0):
        check(folder, found.tally)
        check_last(series, folder, found)
    found.tally.remove_unless_faulty(folder)


def has_ended(pid: int, folder: Path, more: int, seconds: float) -> bool:
    """Wait for so many more answered reports, and then so long; True if the life ends before."""
    goal, end = len(read_answered_steps(folder)) + more, time.monotonic() + LONGEST_WAIT
    while more and len(read_answered_steps(folder)) < goal and time.monotonic() < end:
        if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            break
        time.sleep(0.002)
    time.sleep(seconds)
    if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        return False
    os.waitpid(pid, 0)
    return True


def read_answered_steps(folder: Path) -> set[tuple[int, int]]:
    """Return the reports that were answered: (trial, step)."""
    path = folder / LOG
    lines = path.read_text().splitlines() if path.exists() else []
    return {(int(w[1]), int(w[2])) for w in map(str.split, lines) if w[0] == "step"}


def check(folder: Path, tally: Tally) -> None:
    """Compare what the store holds with what was answered."""
    known = read_answered_steps(folder)  # read first: later answers may be in the store already
    if not (folder / "study.db").exists():
        return
    shown, kept = read_steps(folder)
    for trial, steps in kept.items():
        if steps != sorted(set(steps)):
            tally.blame("doubled", f"trial {trial} has the steps {steps} in {folder}")
        if shown.get(trial, []) != steps:
            tally.blame("wrong", f"Optuna shows {shown.get(trial)} of {steps} in {folder}")
    for trial, step in sorted(known):
        if step not in kept.get(trial, []):
            tally.blame("lost", f"step {step} of trial {trial} in {folder}")


def read_steps(folder: Path) -> tuple[dict[int, list[int]], dict[int, list[int]]]:
    """The steps of each trial, as Optuna shows them, and as the whole reports have them."""
    shown: dict[int, list[int]] = {}
    kept: dict[int, list[int]] = {}
    with closing(sqlite3.connect(folder / "study.db")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
        if "trial_intermediate_values" not in tables:
            return shown, kept
        for number, step in connection.execute(
            "SELECT t.number, v.step FROM trial_intermediate_values v "
            "JOIN trials t USING (trial_id) ORDER BY t.number, v.step"
        ):
            shown.setdefault(number, []).append(step)
        for number, _, text in sorted(
            (number, int(key.rpartition(":")[2]), text)
            for number, key, text in connection.execute(
                "SELECT t.number, a.key, a.value_json FROM trial_system_attributes a "
                "JOIN trials t USING (trial_id) WHERE a.key LIKE 'foretune:points:%'"
            )
        ):
            kept.setdefault(number, []).extend(int(step) for step in json.loads(text)["steps"])
    return shown, kept


def check_last(series: Series, folder: Path, found: Found) -> None:
    """Check the study in the end."""
    from foretune.experience import Metric, Status
    from foretune.space import Space
    from foretune.stores.studies import open_study

    space = Space.of({"x": (0.0, 1.0)})
    settings = {"objective": "steps:train"}
    with open_study(
        str(folder / "study.db"),
        "steps:train",
        space=space,
        metrics=[Metric("loss")],
        settings=settings,
    ) as study:
        trials = study.trials()
    tally, count = found.tally, Counter(trial.status for trial in trials)
    if len(trials) != series.trials or count[Status.RUNNING] or not count[Status.DONE]:
        tally.blame("lost", f"{len(trials)} of {series.trials} trials, {dict(count)} in {folder}")
    for trial in trials:
        steps = [] if trial.curve is None else list(map(int, trial.curve.steps))
        whole = list(range(1, LAST + 1))
        if trial.status is Status.DONE and steps != whole:
            tally.blame("lost", f"trial {trial.number} is complete with {steps} in {folder}")
        if steps != whole[: len(steps)]:
            tally.blame("lost", f"trial {trial.number} has a gap: {steps} in {folder}")
        values = [] if trial.curve is None else trial.curve.values["loss"]
        if any(
            abs(value - loss(trial.config, step)) > 1e-12
            for step, value in zip(steps, values, strict=True)
        ):
            tally.blame("wrong", f"trial {trial.number} has other values in {folder}")
        if trial.status is Status.FAILED and not trial.reason.endswith("while they ran it"):
            tally.blame("wrong", f"trial {trial.number} failed: {trial.reason} in {folder}")
    found.given_up += count[Status.FAILED]
    found.answered += len(read_answered_steps(folder))
    with closing(sqlite3.connect(folder / "study.db")) as connection:
        turns = connection.execute(
            "SELECT COUNT(*) FROM trial_system_attributes WHERE key = 'foretune:turn' "
            "AND CAST(value_json AS INTEGER) > 1"
        ).fetchone()[0]
    found.resumed += turns


def print_row(found: Found) -> None:
    note = f"{found.answered} answered reports, {found.resumed} trials resumed after a pause, "
    note += f"{found.given_up} given up after five kills"
    found.tally.row("kill -9 of tune --stop", note).print()


def main() -> None:
    parser = make_parser(__doc__, short="three kills")
    parser.add_argument("--kills", type=int, default=200)
    given = parser.parse_args()
    kills = 3 if given.short else given.kills
    sizes = [min(KILLS_A_SERIES, kills - start) for start in range(0, kills, KILLS_A_SERIES)]
    import_early(only_tune=True)
    total = Found(Tally())
    wanted = [Series(size, given.seed + n) for n, size in enumerate(sizes)]
    for _, found in run_parts(run_series, wanted, given.jobs):
        total.add(found)
        print_row(total)


if __name__ == "__main__":
    main()
