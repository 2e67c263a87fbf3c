"""Processes of `foretune tune` on one SQLite file, and on one PostgreSQL or MySQL server.

    python benchmarks/reliability/processes.py --store sqlite --processes 16
    python benchmarks/reliability/processes.py --store postgresql --processes 64
    python benchmarks/reliability/processes.py --store mysql

`servers.py` starts the servers and says which packages they need.

All processes must end well without a word about locks; the store must hold exactly the trials asked
for, each finished, no configuration twice, each evaluated once. The method is random search and
the function returns at once, so that the store is all there is to wait for: the rate is an upper
bound of what real studies, which evaluate something, ask of it.
"""

import argparse
import os
import shutil
import tempfile
import time
from pathlib import Path

from bowl import LOG, SECONDS
from commands import TUNE, prepare
from lives import import_early, kill, start_life, wait_for
from rows import Row, peak_mb
from servers import SERVERS, why_no_postgresql
from tally import Ended

LONGEST = 1200.0
"""Seconds after which a process counts as hung."""


def start(folder: Path, url: str, trials: int, seed: int) -> int:
    """Start a command, as a fork that need not import everything anew, and return its process."""
    words = tuple(url if word == "study.db" else word for word in TUNE)
    words = (*words, "--trials", str(trials), "--seed", str(seed))
    return start_life(folder, words, said=folder / f"said-{time.monotonic_ns()}.log")


def watch(folder: Path, lives: list[int]) -> list[Ended | None]:
    """Wait for all, and say how far they are. Those that hang are killed, and count as None."""
    began, ends = time.monotonic(), {}
    while len(ends) < len(lives) and time.monotonic() < began + LONGEST:
        for life in set(lives) - ends.keys():
            end = wait_for(life, 0.02)
            if end is not None:
                ends[life] = end
        done = len((folder / LOG).read_text().splitlines()) if (folder / LOG).exists() else 0
        print(f"{done} evaluations after {time.monotonic() - began:.0f} s", flush=True)
    for life in set(lives) - ends.keys():
        kill(life)
    return [ends.get(life) for life in lives]


def check(folder: Path, url: str, trials: int) -> float:
    """Read the study with Optuna, and return the seconds from its first to its last trial."""
    import optuna

    from foretune.stores.addresses import storage_url

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    os.chdir(folder)
    study = optuna.load_study(study_name="bowl:bowl", storage=storage_url(url))
    found = study.get_trials(deepcopy=False)
    assert [trial.number for trial in found] == list(range(trials))
    assert all(trial.state.name == "COMPLETE" for trial in found)
    xs = [trial.params["x"] for trial in found]
    assert len(set(xs)) == trials, "a configuration occurs twice"
    evaluated = sorted(map(float, (folder / LOG).read_text().split()))
    assert evaluated == sorted(xs), "a trial was evaluated twice, or not at all"
    assert all(trial.value == (trial.params["x"] - 0.3) ** 2 for trial in found)
    first = min(trial.datetime_start for trial in found)
    return (max(trial.datetime_complete for trial in found) - first).total_seconds()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--store", choices=list(SERVERS), default="sqlite")
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--trials", type=int, default=2000)
    given = parser.parse_args()
    what = f"{given.processes} processes of tune on one store, {given.store}"
    if given.store == "postgresql" and (reason := why_no_postgresql()):
        Row(what, 0, skipped=reason).print()
        return
    os.environ[SECONDS] = "0"
    import_early(only_tune=True)
    folder = Path(tempfile.mkdtemp(prefix="processes-"))
    prepare(folder)
    with SERVERS[given.store]() as url:
        began = time.monotonic()
        # The same seed everywhere: without care they would all suggest the same.
        lives = [start(folder, url, given.trials, seed=0) for _ in range(given.processes)]
        ends = watch(folder, lives)
        elapsed = time.monotonic() - began
        for path in folder.glob("said-*.log"):
            text = path.read_text()
            assert "locked" not in text, text
            assert "Traceback" not in text, text
        assert all(end is not None and end.code == 0 for end in ends), (ends, folder)
        seconds = check(folder, url, given.trials)
    Row(
        what, given.trials,
        longest_s=round(elapsed, 1), peak_mb=round(peak_mb()),
        note=f"{given.trials / seconds:.1f} suggestions/s",
    ).print()  # fmt: skip
    print(f"{given.trials / seconds:.1f} suggestions/s from the first trial to the last")
    print(f"{seconds:.0f} s, {elapsed:.0f} s with the start of the processes")
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
