"""Play one tuner on one problem: runs in the tuner's own environment, which needs NumPy alone.

    python -m benchmarks.peers.play PROBLEM MODULE PEER SEED TRIALS OUT

PROBLEM is a file, or a function's name such as `bowl:3`; MODULE is the adapter that knows the peer;
OUT becomes one NPZ file.
"""

import importlib
import sys
from pathlib import Path
from time import process_time
from typing import Protocol

import numpy as np
from benchmarks.peers.functions import FunctionProblem
from benchmarks.peers.objective import Floats, Problem

ROOT = Path(__file__).resolve().parents[2]
ONE_THREAD = {
    **dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    "JAX_PLATFORMS": "cpu",
}
"""The environment variables of a run. They are the same for all, so that times compare."""


class Tuner(Protocol):
    """A peer as its adapter presents it. `PEERS` maps names to makers (problem, seed, trials)."""

    def ask(self) -> Floats:
        """Return the next row to try. Values of inactive parameters are ignored."""

    def tell(self, row: Floats, loss: float) -> None:
        """Take in the loss of a row."""


def play(problem: Problem, module: str, peer: str, seed: int, trials: int) -> dict[str, Floats]:
    """Make a peer of an adapter and play it. The time to make the tuner is measured apart."""
    start = process_time()
    tuner: Tuner = importlib.import_module(module).PEERS[peer](problem, seed, trials)
    learn_seconds = process_time() - start
    played = play_tuner(tuner, problem, trials)
    return {**played, "learn_seconds": np.array(getattr(tuner, "learn_seconds", learn_seconds))}


def play_tuner(tuner: Tuner, problem: Problem, trials: int) -> dict[str, Floats]:
    """Play a tuner, and return the losses, the rows and the seconds of each trial.

    The time to tell a loss belongs to the next suggestion. Seconds are processor time, which other
    work on the machine hardly changes.
    """
    losses, seconds = np.empty(trials), np.empty(trials)
    rows = np.empty((trials, len(problem.parameters)))
    start = process_time()
    for trial in range(trials):
        rows[trial] = problem.settled(tuner.ask())
        seconds[trial] = process_time() - start
        losses[trial] = problem.loss(rows[trial])
        start = process_time()
        tuner.tell(rows[trial], float(losses[trial]))
    return {"losses": losses, "rows": rows, "suggest_seconds": seconds}


def main() -> None:
    """Write the run as one NPZ file in one step."""
    given, module, peer, seed, trials, out = sys.argv[1:]
    problem = Problem.load(Path(given)) if given.endswith(".npz") else FunctionProblem.called(given)
    played = play(problem, module, peer, int(seed), int(trials))
    unfinished = Path(out).with_suffix(".unfinished")
    with unfinished.open("wb") as file:
        np.savez(file, **played)  # type: ignore[arg-type]
    unfinished.rename(out)


if __name__ == "__main__":
    main()
