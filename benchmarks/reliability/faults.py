"""Trials of which 44% go wrong, in every way there is.

    python benchmarks/reliability/faults.py --trials 1000 --seconds 3600

Of all configurations 30% raise, 5% hang past the time limit, 5% return NaN, an infinity or a text,
2% kill their process and 2% take more memory than they may; which ones is a matter of their digits,
not of their place, so nothing can learn to avoid them. The others return Hartmann's function of
six hyperparameters (minimum -3.3224). Every fault must be recorded with its reason. The best loss
of a method stands beside that of random search with as many trials and the same faults. A method
stops after `--seconds`; its row says how many trials it has made by then.
"""

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

from parts import make_parser
from rows import Row, peak_mb

SHARES = {"raise": 0.30, "hang": 0.05, "number": 0.05, "kill": 0.02, "memory": 0.02}
REASONS = {
    "raise": "ValueError: meant to fail",
    "hang": "over its limit of",
    "number": "must be a finite number, but got",
    "kill": "the worker process was killed by signal SIGKILL",
    "memory": "out of memory: over its limit of",
}
TIME_LIMIT, MEMORY_LIMIT = 3.0, 200 * 2**20
TRIALS_A_ROW = 50
"""After so many trials a row says what was found so far."""
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


class Judge:
    """Hears of every trial that ends, and checks that its fault is on record."""

    def __init__(self, method_name: str) -> None:
        self._attack = f"trials that fail, chosen by {method_name}"
        self._faults: Counter[str] = Counter()
        self._wrong, self._best, self._began = 0, math.inf, time.monotonic()

    def trial_began(self, trial: object) -> None:
        """Ignore."""

    def trial_ended(self, trial) -> None:
        """Judge a trial."""
        fault = fault_of(trial.config)
        self._faults[fault or "none"] += 1
        if not is_right(trial, fault):
            self._wrong += 1
            print(f"wrong for the fault {fault}: {trial}", file=sys.stderr, flush=True)
        self._best = min(self._best, trial.values.get("loss", math.inf))
        if self._faults.total() % TRIALS_A_ROW == 0:
            self.row(self._faults.total(), "so far; ").print()

    def row(self, stored: int, note: str = "") -> Row:
        """What was found. stored: how many trials the store holds."""
        told = ", ".join(f"{name} {self._faults[name]}" for name in (*SHARES, "none"))
        judged = self._faults.total()
        return Row(
            self._attack,
            judged,
            lost=max(0, judged - stored),
            doubled=max(0, stored - judged),
            wrong=self._wrong,
            longest_s=round(time.monotonic() - self._began, 1),
            peak_mb=round(peak_mb()),
            note=f"{note}{told}; best loss {self._best:.4f}",
        )


def run(method_name: str, trials: int, seconds: float, jobs: int, folder: Path) -> Row:
    """Tune with a method, and check that every fault is on record."""
    from foretune.experience import Metric
    from foretune.methods.contracts import Target
    from foretune.run import Budget, tune
    from foretune.run.executor import Limits
    from foretune.run.pool import ProcessPool
    from foretune.run.trial_results import NamedFunction
    from foretune.search.optimizer import Optimizer
    from foretune.search.registry import method
    from foretune.space import Space
    from foretune.stores.studies import open_study

    space = Space.of({f"x{i}": (0.0, 1.0) for i in range(6)})
    chosen = method(method_name)
    optimizer = Optimizer(Target(space), chosen, chosen.learn(None, seed=0), seed=0)
    limits = Limits(wall_seconds=TIME_LIMIT, memory_bytes=MEMORY_LIMIT)
    function = NamedFunction("faults:objective", Path(__file__).parent)
    store, judge = str(folder / f"{method_name}.db"), Judge(method_name)
    with (
        open_study(store, "faults", space=space, metrics=[Metric("loss")]) as study,
        ProcessPool(function, workers=jobs, limits=limits) as pool,
    ):
        ending = tune(study, optimizer, pool, Budget(trials, seconds), watch=judge)
        ended = [trial for trial in study.trials() if trial.status is not None]
    note = "" if ending == "trials" else f"stopped after {seconds:.0f} s of {trials} trials; "
    return judge.row(len(ended), note)


def main() -> None:
    parser = make_parser(__doc__, short="100 trials")
    parser.add_argument("--trials", type=int, default=400)
    parser.add_argument("--seconds", type=float, default=120.0, help="for each method")
    parser.add_argument("--methods", nargs="+", default=["random", "rf"])
    given = parser.parse_args()
    trials = 100 if given.short else given.trials
    folder = Path(tempfile.mkdtemp(prefix="faults-"))
    rows = []
    for name in given.methods:
        rows.append(run(name, trials, given.seconds, given.jobs, folder))
        rows[-1].print()
    if any(row.faults for row in rows):
        sys.exit(f"see {folder}")
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
