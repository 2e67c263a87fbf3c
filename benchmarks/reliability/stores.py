"""What a store holds, read by SQL without Optuna or Foretune, and what must hold of it."""

import shutil
import sqlite3
import tempfile
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

from bowl import LOG
from commands import OUT
from tally import Tally

TABLES = {
    "trial_params": "param_name, param_value",
    "trial_values": "objective, value",
    "trial_user_attributes": "key, value_json",
}
ENDED = ("COMPLETE", "FAIL")
Trial = tuple[Any, ...]
"""The state, and then all rows that belong to it, each beginning with the name of its table."""


def count_ended(path: Path) -> int:
    """How many trials have ended; 0 while there is no store."""
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=60)) as store:
            query = "SELECT COUNT(*) FROM trials WHERE state IN ('COMPLETE', 'FAIL')"
            return store.execute(query).fetchone()[0]
    except sqlite3.OperationalError:
        return 0


def read_sqlite(path: Path, tally: Tally) -> tuple[dict[int, Trial], dict[int, str]]:
    """Ended trials by number, and the states of the others; blames a file that is not whole."""
    with closing(sqlite3.connect(path, timeout=60)) as store:
        (intact,) = store.execute("PRAGMA integrity_check").fetchone()
        if intact != "ok":
            tally.blame("wrong", f"the integrity check says {intact} of {path}")
        return read_trials(store, tally)


def read_unfinished(path: Path, tally: Tally) -> dict[int, Trial]:
    """The ended trials of a store of a command that was stopped: it may not have all its tables.

    A copy is read, because SQLite itself needs room to read a store beside a write-ahead log.
    """
    if not path.exists() or not path.stat().st_size:
        return {}
    with tempfile.TemporaryDirectory() as folder:
        for each in path.parent.glob(f"{path.name}*"):
            shutil.copy(each, folder)
        try:
            ended, _ = read_sqlite(Path(folder) / path.name, tally)
        except sqlite3.OperationalError as error:
            if "no such table" not in str(error):
                raise
            return {}
    return ended


def read_trials(
    store: Any, tally: Tally, *, study: int = 1
) -> tuple[dict[int, Trial], dict[int, str]]:
    """The same of one study, by an open connection."""
    cursor = store.cursor()
    cursor.execute(
        f"SELECT trial_id, number, state FROM trials WHERE study_id = {study} ORDER BY number"
    )
    trials = {number: (trial, state) for trial, number, state in cursor.fetchall()}
    if list(trials) != list(range(len(trials))):
        tally.blame("lost", f"trials must have the numbers 0, 1, 2, ..., but got {list(trials)}")
    parts: dict[int, list[Any]] = {}
    for table, columns in TABLES.items():
        cursor.execute(f"SELECT trial_id, {columns} FROM {table}")
        for trial, *cells in cursor.fetchall():
            parts.setdefault(trial, []).append((table, *cells))
    ended = {
        number: (state, *sorted(parts.get(trial, []), key=str))
        for number, (trial, state) in trials.items()
        if state in ENDED
    }
    return ended, {n: state for n, (_, state) in trials.items() if n not in ended}


def cell(trial: Trial, table: str, key: object) -> Any:
    return next((row[2] for row in trial[1:] if row[:2] == (table, key)), None)


def abandoned_in(trial: Trial) -> int:
    """How many processes died while they ran this trial."""
    return int(cell(trial, "trial_user_attributes", "abandoned") or 0)


def compare(
    before: dict[int, Trial],
    now: dict[int, Trial],
    running: dict[int, str],
    jobs: int,
    tally: Tally,
) -> None:
    """Blame trials that are lost, changed or doubled, and more running ones than workers."""
    for number, trial in before.items():
        if number not in now:
            tally.blame("lost", f"trial {number} is gone")
        elif now[number] != trial:
            tally.blame("wrong", f"trial {number} was {trial} and is {now[number]}")
    if len(running) > jobs:
        tally.blame("wrong", f"{len(running)} trials are running in {jobs} workers")
    configs = Counter(
        tuple(row for row in trial[1:] if row[0] == "trial_params") for trial in now.values()
    )
    for config, times in configs.items():
        if times > 1:
            tally.blame("doubled", f"{times} trials have the configuration {config}")


def compare_evaluations(
    folder: Path, ended: dict[int, Trial], tally: Tally, *, more: int = 0
) -> None:
    """Blame stored results that are wrong, and ended trials that were evaluated again.

    An evaluation is made again if its process died, or, up to `more` times, if its result could
    not be stored.
    """
    times = Counter(map(float, (folder / LOG).read_text().split()))
    for number, trial in ended.items():
        x = cell(trial, "trial_params", "x")
        if not 1 <= times[x] <= 1 + abandoned_in(trial) + more:
            tally.blame("doubled", f"trial {number} was evaluated {times[x]} times")
        value = cell(trial, "trial_values", 0)
        if trial[0] != "COMPLETE" or abs(value - (x - 0.3) ** 2) > 1e-12:
            tally.blame("wrong", f"trial {number} is {trial}")


def check_fit(folder: Path, trials: int, tally: Tally) -> int:
    """Check what a fit leaves beside its study: its trials, the user's memory of them, its model.

    Returns how many trials are remembered.
    """
    import pandas as pd

    from foretune.automl.final_model.model import Model
    from foretune.automl.knowledge.memory import Memory
    from foretune.experience import Experience

    saved = Experience.open(folder / OUT / "trials.parquet")
    if len(saved) != trials:
        kind = "lost" if len(saved) < trials else "doubled"
        tally.blame(kind, f"{len(saved)} of {trials} trials are saved in {folder}")
    remembered = Memory.of_user().recall("pipeline-classification")
    if remembered is None:
        tally.blame("lost", f"no trial is remembered in {folder}")
        return 0
    configs = remembered.configs.take(remembered.config_index)
    if len(configs.first_occurrences()) != len(configs):
        tally.blame("doubled", f"a trial is remembered twice in {folder}")
    rows = pd.read_csv(folder / "table.csv").drop(columns="label")
    predicted = Model.open(folder / OUT / "model.foretune").predict(rows)
    if len(predicted) != len(rows):
        tally.blame("wrong", f"{len(predicted)} rows are predicted of {len(rows)} in {folder}")
    return len(remembered)
