"""`kill -9` of a running `foretune tune` at random moments, and a resume after each.

    python benchmarks/reliability/kills.py --kills 200 --trials 600

After every kill the SQLite file is read without Optuna or Foretune: it must pass its integrity
check, every trial that was finished before must still be there unchanged, no configuration may
occur twice, and no finished trial may have been evaluated again. In the end the study must have
exactly the trials asked for.

The method is random search, whose cost is small: it is the store that is tried here. Each life of
the command is a fork of one process that has its imports done, so that kills hit work and not the
start of Python; one in `1 / EARLY` comes at a random moment of the first second.
"""

import argparse
import json
import os
import random
import signal
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from contextlib import closing
from importlib import import_module
from pathlib import Path

SPACE = {"x": {"range": [0.0, 1.0]}, "kind": {"a": {"rate": {"range": [0.001, 1.0]}}, "b": {}}}
STORE, LOG = "study.db", "evaluations.log"
EARLY = 0.2
LONGEST_LIFE = 300.0


def bowl(config: dict) -> float:
    """A trial that notes in a file that it was evaluated."""
    time.sleep(0.02)
    line = f"{config['x']!r}\n".encode()
    descriptor = os.open(LOG, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, line)
    os.close(descriptor)
    return (config["x"] - 0.3) ** 2


def import_all() -> None:
    """What each life would import anew. Not at the top: workers import this module as well."""
    for name in (
        "alembic.command",
        "foretune.cli.display",
        "foretune.cli.tune",
        "foretune.run.optuna_study",
        "foretune.run.pool",
        "foretune.run.tuning",
        "foretune.search.optimizer",
        "optuna.storages._rdb.models",
        "sqlalchemy.orm",
    ):
        import_module(name)


def life(folder: Path, trials: int, jobs: int) -> int:
    """Start `foretune tune` and return its process."""
    pid = os.fork()
    if pid:
        return pid
    os.chdir(folder)
    said = os.open("said.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.dup2(said, 1)
    os.dup2(said, 2)
    words = ["kills:bowl", "--space", "space.json", "--method", "random", "--store", STORE]
    code = 1
    try:
        from foretune.cli.tune import tune_command

        words += ["--trials", str(trials), "--jobs", str(jobs)]
        code = tune_command.main(words, standalone_mode=False) or 0
    finally:
        os._exit(code)


def finished(path: Path) -> int:
    """How many trials have ended, as far as the file exists."""
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=60)) as store:
            return store.execute(
                "SELECT COUNT(*) FROM trials WHERE state IN ('COMPLETE', 'FAIL')"
            ).fetchone()[0]
    except sqlite3.OperationalError:
        return 0


def wait(pid: int, path: Path, more: int, seconds: float) -> bool:
    """Wait for so many more trials and then so long; False if the process ends before."""
    goal, end = finished(path) + more, time.monotonic() + LONGEST_LIFE
    while more and finished(path) < goal:
        if os.waitpid(pid, os.WNOHANG)[0] or time.monotonic() > end:
            return False
        time.sleep(0.02)
    time.sleep(seconds)
    return True


def trials_of(path: Path) -> tuple[dict[int, tuple], dict[int, int]]:
    """Finished trials with all that is stored of them, and the x and number of unfinished ones."""
    with closing(sqlite3.connect(path, timeout=60)) as store:
        (intact,) = store.execute("PRAGMA integrity_check").fetchone()
        assert intact == "ok", intact
        rows = store.execute("SELECT trial_id, number, state FROM trials ORDER BY number")
        states = {number: (trial, state) for trial, number, state in rows}
        parts: dict[int, list] = {}
        for table, columns in (
            ("trial_params", "param_name, param_value"),
            ("trial_values", "objective, value"),
            ("trial_user_attributes", "key, value_json"),
        ):
            for trial, *cells in store.execute(f"SELECT trial_id, {columns} FROM {table}"):
                parts.setdefault(trial, []).append((table, *cells))
    assert list(states) == list(range(len(states))), "numbers must be 0, 1, 2, ..."
    ended = {
        number: (state, *sorted(parts[trial]))
        for number, (trial, state) in states.items()
        if state in ("COMPLETE", "FAIL")
    }
    return ended, {number: trial for number, (trial, _) in states.items() if number not in ended}


def cell(trial: tuple, table: str, key: str) -> object:
    return next((row[2] for row in trial[1:] if row[:2] == (table, key)), None)


def check(folder: Path, before: dict[int, tuple], jobs: int) -> dict[int, tuple]:
    """Compare the store with what it held before, and with what has been evaluated."""
    ended, running = trials_of(folder / STORE)
    for number, trial in before.items():
        assert ended.get(number) == trial, f"trial {number} is lost or changed"
    assert len(running) <= jobs, f"{len(running)} trials are running in {jobs} workers"
    xs = [cell(trial, "trial_params", "x") for trial in ended.values()]
    assert len(set(xs)) == len(xs), "a configuration occurs twice"
    log = folder / LOG
    times = Counter(map(float, log.read_text().split())) if log.exists() else Counter()
    for number, trial in ended.items():
        abandoned = int(cell(trial, "trial_user_attributes", "abandoned") or 0)
        runs = times[cell(trial, "trial_params", "x")]
        assert 1 <= runs <= 1 + abandoned, f"trial {number} ran {runs} times"
    return ended


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--trials", type=int, default=600)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    import_all()
    draw = random.Random(given.seed)
    folder = Path(tempfile.mkdtemp(prefix="kills-"))
    (folder / "space.json").write_text(json.dumps(SPACE))
    most = max(1, int(1.5 * given.trials / given.kills))
    ended: dict[int, tuple] = {}
    kills = early = 0
    began = time.monotonic()
    while kills < given.kills and len(ended) < given.trials:
        pid = life(folder, given.trials, given.jobs)
        is_early = draw.random() < EARLY
        more = 0 if is_early else draw.randint(1, most)
        if not wait(pid, folder / STORE, more, draw.uniform(0, 1.0 if is_early else 0.2)):
            sys.exit(f"a life ended by itself: see {folder}/said.log")
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        kills, early = kills + 1, early + is_early
        if ((folder / STORE).exists() and ended) or finished(folder / STORE):
            ended = check(folder, ended, given.jobs)
        if kills % 20 == 0:
            print(f"{kills} kills, {len(ended)} trials finished", flush=True)
    _, status = os.waitpid(life(folder, given.trials, given.jobs), 0)
    assert status == 0, f"the last life failed: see {folder}/said.log"
    ended = check(folder, ended, given.jobs)
    _, running = trials_of(folder / STORE)
    assert (len(ended), len(running)) == (given.trials, 0)
    abandoned = sum(int(cell(t, "trial_user_attributes", "abandoned") or 0) for t in ended.values())
    failed = sum(trial[0] == "FAIL" for trial in ended.values())
    evaluations = len((folder / LOG).read_text().splitlines())
    print(f"kills: {kills}, of which {early} in the first second")
    print(f"trials: {len(ended)} of {given.trials}, none lost, changed or doubled; {failed} failed")
    print(f"trials run again: {abandoned}; evaluations: {evaluations}; integrity checks passed")
    print(f"minutes: {(time.monotonic() - began) / 60:.1f}")


if __name__ == "__main__":
    main()
