"""A thousand trials of which 44% go wrong, in every way there is.

    python benchmarks/reliability/faults.py

Of all configurations 30% raise, 5% hang past the time limit, 5% return NaN, an infinity or a text,
2% kill their process and 2% take more memory than they may; which ones is a matter of their digits,
not of their place, so nothing can learn to avoid them. The others return Hartmann's function of
six hyperparameters (minimum -3.3224). Every fault must be recorded with its reason. The best loss
of a method stands beside that of random search with as many trials and the same faults.
"""

import argparse
import hashlib
import json
import math
import os
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from rows import Row, peak_mb

SHARES = {"raise": 0.30, "hang": 0.05, "number": 0.05, "kill": 0.02, "memory": 0.02}
REASONS = {
    "raise": "ValueError: meant to fail",
    "hang": "over its limit of",
    "number": "must be a finite number, but got",
    "kill": "the worker process was killed by signal SIGKILL",
    "memory": "out of memory: over its limit of",
}
TIME_LIMIT, MEMORY_LIMIT = 8.0, 200 * 2**20
PEAKS = (1.0, 1.2, 3.0, 3.2)
SCALES = (
    (10, 3, 17, 3.5, 1.7, 8),
    (0.05, 10, 17, 0.1, 8, 14),
    (3, 3.5, 1.7, 10, 17, 8),
    (17, 8, 0.05, 10, 0.1, 14),
)
CENTRES = (
    (0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886),
    (0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991),
    (0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650),
    (0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381),
)


def hartmann(x: list[float]) -> float:
    total = 0.0
    for peak, scales, centres in zip(PEAKS, SCALES, CENTRES, strict=True):
        away = sum(a * (v - c) ** 2 for a, v, c in zip(scales, x, centres, strict=True))
        total -= peak * math.exp(-away)
    return total


def fault_of(config: dict) -> str | None:
    """What goes wrong with a configuration, drawn by a hash of it."""
    digest = hashlib.sha256(json.dumps(config, sort_keys=True).encode()).digest()
    point = int.from_bytes(digest[:8], "big") / 2**64
    for name, share in SHARES.items():
        if point < share:
            return name
        point -= share
    return None


def objective(config: dict) -> object:
    """Fail in the way that is due, or return the loss."""
    fault = fault_of(config)
    if fault == "raise":
        raise ValueError("meant to fail")
    if fault == "hang":
        time.sleep(3600)
    if fault == "number":
        return [math.nan, math.inf, "a text"][int(config["x0"] * 1e6) % 3]
    if fault == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if fault == "memory":
        taken = []
        while True:
            taken.append(b"x" * 2**25)
            time.sleep(0.01)
    return hartmann([config[f"x{i}"] for i in range(6)])


def is_right(trial, fault: str | None) -> bool:
    """Whether a trial has ended as it was bound to, with the reason on record."""
    wanted = {None: "DONE", "hang": "TIMEOUT"}.get(fault, "FAILED")
    return trial.status.name == wanted and (fault is None or REASONS[fault] in trial.reason)


def run(method_name: str, trials: int, jobs: int, folder: Path) -> Row:
    """Tune with a method, and check that every fault is on record."""
    from foretune.experience import Metric, Status
    from foretune.methods.contracts import Target
    from foretune.run.executor import Limits
    from foretune.run.pool import ProcessPool
    from foretune.run.trial_results import NamedFunction
    from foretune.run.tuning_loop import Budget, tune
    from foretune.search.optimizer import Optimizer
    from foretune.search.registry import method
    from foretune.space import Space
    from foretune.stores.studies import open_study

    space = Space.of({f"x{i}": (0.0, 1.0) for i in range(6)})
    chosen = method(method_name)
    optimizer = Optimizer(Target(space), chosen, chosen.learn(None, seed=0), seed=0)
    limits = Limits(wall_seconds=TIME_LIMIT, memory_bytes=MEMORY_LIMIT)
    function = NamedFunction("faults:objective", Path(__file__).parent)
    store = str(folder / f"{method_name}.db")
    began = time.monotonic()
    with (
        open_study(store, "faults", space=space, metrics=[Metric("loss")]) as study,
        ProcessPool(function, workers=jobs, limits=limits) as pool,
    ):
        assert tune(study, optimizer, pool, Budget(trials)) == "trials"
        ended = study.trials()
    seconds = time.monotonic() - began
    faults, wrong = Counter(), 0
    for trial in ended:
        fault = fault_of(trial.config)
        faults[fault or "none"] += 1
        if not is_right(trial, fault):
            wrong += 1
            print(f"wrong for the fault {fault}: {trial}", file=sys.stderr, flush=True)
    best = min(trial.values["loss"] for trial in ended if trial.status is Status.DONE)
    told = ", ".join(f"{name} {faults[name]}" for name in (*SHARES, "none"))
    return Row(
        f"trials that fail, chosen by {method_name}",
        trials,
        lost=max(0, trials - len(ended)),
        doubled=max(0, len(ended) - trials),
        wrong=wrong,
        longest_s=round(seconds, 1),
        peak_mb=round(peak_mb()),
        note=f"{told}; best loss {best:.4f}",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--methods", nargs="+", default=["random", "rf"])
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="faults-"))
    rows = []
    for name in given.methods:
        rows.append(run(name, given.trials, given.jobs, folder))
        rows[-1].print()
    if any(row.faults for row in rows):
        sys.exit(f"see {folder}")
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
