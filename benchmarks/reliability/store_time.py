"""Seconds that a trial takes of a store: a look at it, a begin, an end. All are under its lock.

    python benchmarks/reliability/store_time.py --store sqlite
    python benchmarks/reliability/store_time.py --store postgresql
    python benchmarks/reliability/store_time.py --store mysql

One process has the store to itself. Prints medians and least values, because other programs on the
machine add to the clock. In the end, what the incremental reader has read must be what Optuna's own
interface reads.
"""

import argparse
import os
import tempfile
import time

import numpy as np
from servers import SERVERS

from foretune.experience import Metric, Status
from foretune.space import Space
from foretune.stores.addresses import storage_url
from foretune.stores.optuna.trial_format import Translation
from foretune.stores.studies import open_study

METRICS = (Metric("loss"),)
SPACE = Space.of({"x": (0.0, 1.0), "kind": ["a", "b"], "depth": (1, 9)})


def measure(url: str, trials: int) -> dict[str, list[float]]:
    """Seconds of each look, begin and end. Some trials fail, and some are left unfinished."""
    draw, seconds = np.random.default_rng(0), {"look": [], "begin": [], "end": []}
    study, seen = open_study(url, "timed", space=SPACE, metrics=METRICS), 0
    for number in range(trials):
        config = {"x": float(draw.random()), "kind": "ab"[number % 2], "depth": 1 + number % 9}
        with study.lock():
            began = time.perf_counter()
            seen = study.changes(seen).seen
            looked = time.perf_counter()
            begun = study.begin(config, chosen_by="random")
        stored = time.perf_counter()
        seconds["look"].append(looked - began)
        seconds["begin"].append(stored - looked)
        if number % 10 == 3:
            continue
        if number % 10 == 4:
            study.let_go(begun)
            continue
        failed = number % 7 == 0
        study.end(
            begun,
            status=Status.FAILED if failed else Status.DONE,
            values={} if failed else {"loss": config["x"]},
            seconds=0.5,
        )
        seconds["end"].append(time.perf_counter() - stored)
    check(url, study)
    study.close()
    return seconds


def check(url: str, study: object) -> None:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    raw = optuna.load_study(study_name="timed", storage=storage_url(url)).get_trials()
    translation = Translation(SPACE, METRICS)
    wanted = [repr(translation.trial(frozen)) for frozen in raw]
    assert [repr(trial) for trial in study.trials()] == wanted, "read one by one, trials differ"
    again = open_study(url, "timed", space=SPACE, metrics=METRICS)
    assert [repr(trial) for trial in again.trials()] == wanted, "read at once, trials differ"
    again.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--store", choices=list(SERVERS), default="sqlite")
    parser.add_argument("--trials", type=int, default=120)
    given = parser.parse_args()
    os.chdir(tempfile.mkdtemp(prefix="store-time-"))
    with SERVERS[given.store]() as url:
        for name, found in measure(url, given.trials).items():
            middle, least = 1000 * np.median(found), 1000 * min(found)
            print(f"{name}: median {middle:.1f} ms, least {least:.1f} ms")


if __name__ == "__main__":
    main()
