"""`kill -9` of a running `foretune tune` or `fit` at random moments, and a resume each time.

    python benchmarks/reliability/kills.py --command tune --kills 120 --trials 360
    python benchmarks/reliability/kills.py --command fit --kills 80 --trials 240

After every kill the SQLite file is read without Optuna or Foretune: it must pass its integrity
check, every trial that was finished before must still be there unchanged, and no configuration may
occur twice; a tuned function also notes its calls, and no finished trial may have been evaluated
again. In the end the study must have exactly the trials asked for; `fit` must have saved all of
them, must remember none twice for later fits, and its model must predict.

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
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

SPACE = {"x": {"range": [0.0, 1.0]}, "kind": {"a": {"rate": {"range": [0.001, 1.0]}}, "b": {}}}
LOG = "evaluations.log"
OUT = "fit"
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


@dataclass(frozen=True)
class Command:
    """What is killed."""

    name: str
    words: tuple[str, ...]
    store: str
    imports: tuple[str, ...]
    """What each life would import anew. Not at the top: workers import this module as well."""


COMMANDS = {
    "tune": Command(
        "tune",
        ("kills:bowl", "--space", "space.json", "--method", "random", "--store", "study.db"),
        "study.db",
        ("foretune.cli.tune", "foretune.run.pool", "foretune.search.optimizer"),
    ),
    "fit": Command(
        "fit",
        (
            *("table.csv", "--target", "label", "--only", "knn,naive_bayes,lda"),
            *("--method", "random", "--no-transfer", "--out", OUT),
        ),
        f"{OUT}/study.db",
        ("foretune.cli.fit", "foretune.automl.fit", "foretune.automl.telling", "sklearn.ensemble"),
    ),
}
ALL_IMPORT = (
    "alembic.command",
    "foretune.cli.display",
    "foretune.run.optuna_study",
    "foretune.run.tuning",
    "optuna.storages._rdb.models",
    "sqlalchemy.orm",
)


def prepare(folder: Path) -> None:
    """Write what the commands read."""
    (folder / "space.json").write_text(json.dumps(SPACE))
    draw = random.Random(0)
    rows = ["a,b,label"]
    for _ in range(150):
        a, b = draw.random(), draw.random()
        rows.append(f"{a:.3f},{b:.3f},{'yes' if a + 0.3 * draw.random() > b else 'no'}")
    (folder / "table.csv").write_text("\n".join(rows))
    os.environ["FORETUNE_HOME"] = str(folder / "home")


def life(command: Command, folder: Path, trials: int, jobs: int) -> int:
    """Start the command and return its process."""
    pid = os.fork()
    if pid:
        return pid
    os.chdir(folder)
    said = os.open("said.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.dup2(said, 1)
    os.dup2(said, 2)
    code = 1
    try:
        from foretune.cli import main as foretune

        sys.argv = ["foretune", command.name, *command.words]
        sys.argv += ["--trials", str(trials), "--jobs", str(jobs)]
        foretune()
        code = 0
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else int(left.code is not None)
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


def check(folder: Path, store: Path, before: dict[int, tuple], jobs: int) -> dict[int, tuple]:
    """Compare the store with what it held before, and with what has been evaluated."""
    ended, running = trials_of(store)
    for number, trial in before.items():
        assert ended.get(number) == trial, f"trial {number} is lost or changed"
    assert len(running) <= jobs, f"{len(running)} trials are running in {jobs} workers"
    configs = [tuple(row for row in t[1:] if row[0] == "trial_params") for t in ended.values()]
    assert len(set(configs)) == len(configs), "a configuration occurs twice"
    if (folder / LOG).exists():
        times = Counter(map(float, (folder / LOG).read_text().split()))
        for number, trial in ended.items():
            runs = times[cell(trial, "trial_params", "x")]
            assert 1 <= runs <= 1 + abandoned_in(trial), f"trial {number} ran {runs} times"
    return ended


def abandoned_in(trial: tuple) -> int:
    return int(cell(trial, "trial_user_attributes", "abandoned") or 0)


def check_fit(folder: Path, trials: int) -> int:
    """What a fit leaves beside its study: its trials, the user's memory of them, its model.

    Returns how many trials are remembered.
    """
    import pandas as pd

    from foretune.automl.knowledge.memory import Memory
    from foretune.automl.models.model import Model
    from foretune.experience import Experience

    saved = Experience.open(folder / OUT / "trials.parquet")
    assert len(saved) == trials, f"{len(saved)} trials are saved"
    remembered = Memory.of_user().recall("pipeline-classification")
    assert remembered is not None
    configs = remembered.configs.take(remembered.config_index)
    assert len(configs.first_occurrences()) == len(configs), "a trial is remembered twice"
    rows = pd.read_csv(folder / "table.csv").drop(columns="label")
    predicted = Model.open(folder / OUT / "model.foretune").predict(rows)
    assert len(predicted) == len(rows)
    return len(remembered)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--command", choices=list(COMMANDS), default="tune")
    parser.add_argument("--kills", type=int, default=120)
    parser.add_argument("--trials", type=int, default=360)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    command = COMMANDS[given.command]
    for name in (*ALL_IMPORT, *command.imports):
        import_module(name)
    draw = random.Random(given.seed)
    folder = Path(tempfile.mkdtemp(prefix="kills-"))
    prepare(folder)
    store = folder / command.store
    most = max(1, int(1.5 * given.trials / given.kills))
    ended: dict[int, tuple] = {}
    kills = early = 0
    began = time.monotonic()
    while kills < given.kills and len(ended) < given.trials:
        pid = life(command, folder, given.trials, given.jobs)
        is_early = draw.random() < EARLY
        more = 0 if is_early else draw.randint(1, most)
        if not wait(pid, store, more, draw.uniform(0, 1.0 if is_early else 0.2)):
            sys.exit(f"a life ended by itself: see {folder}/said.log")
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        kills, early = kills + 1, early + is_early
        if (store.exists() and ended) or finished(store):
            ended = check(folder, store, ended, given.jobs)
        if kills % 20 == 0:
            print(f"{kills} kills, {len(ended)} trials finished", flush=True)
    _, status = os.waitpid(life(command, folder, given.trials, given.jobs), 0)
    assert status == 0, f"the last life failed: see {folder}/said.log"
    ended = check(folder, store, ended, given.jobs)
    _, running = trials_of(store)
    assert (len(ended), len(running)) == (given.trials, 0)
    if command.name == "fit":
        print(f"remembered: {check_fit(folder, given.trials)} trials")
    abandoned = sum(abandoned_in(trial) for trial in ended.values())
    failed = sum(trial[0] == "FAIL" for trial in ended.values())
    print(f"{command.name}: {kills} kills, of which {early} in the first second")
    print(f"trials: {len(ended)} of {given.trials}, none lost, changed or doubled; {failed} failed")
    print(f"trials run again: {abandoned}; integrity checks passed")
    if (folder / LOG).exists():
        print(f"evaluations: {len((folder / LOG).read_text().splitlines())}")
    print(f"minutes: {(time.monotonic() - began) / 60:.1f}")


if __name__ == "__main__":
    main()
