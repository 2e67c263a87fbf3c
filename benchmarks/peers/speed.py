"""Measure the seconds of one suggestion after 100 trials: Foretune, HEBO and BoTorch in turns.

    python -m benchmarks.peers.speed xgboost-peers.played/problems/a6a.npz --environments DIR

`auto` and BoTorch choose among the recorded configurations, 5,000 on XGBoost's tasks; HEBO cannot,
and searches the whole space as it always does. Each is told the same 100 random configurations in a
process of its own with one thread, and asked once to warm up, then a few times more, each time
after one more trial. The medians of these asks are printed, in seconds of the processor.
"""

import argparse
import importlib
import os
import statistics
import subprocess
import sys
from pathlib import Path
from time import process_time

import numpy as np
from benchmarks.peers.install import python_of
from benchmarks.peers.objective import Problem
from benchmarks.peers.play import ONE_THREAD, ROOT

CONTESTANTS = {"auto": "foretune", "botorch": "botorch", "hebo": "hebo"}
TRIALS, ASKS = 100, 5


def measure(problem: Problem, environment: str, peer: str) -> float:
    """Return the median seconds of an ask."""
    adapter = importlib.import_module(f"benchmarks.peers.adapters.{environment}")
    makers = getattr(adapter, "POOLED", adapter.PEERS)
    tuner = makers[peer](problem, 0, TRIALS)
    rows = np.random.default_rng(0).permutation(len(problem.losses))[:TRIALS]
    tuner.observe(problem.values[rows], problem.losses[rows])
    seconds = []
    for _ in range(ASKS + 1):
        start = process_time()
        row = tuner.ask()
        seconds.append(process_time() - start)
        tuner.tell(problem.settled(row), problem.loss(row))
    return statistics.median(seconds[1:])


def main() -> None:
    """Run one process for each tuner."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("problem", type=Path)
    parser.add_argument("--environments", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--one", choices=list(CONTESTANTS), help="measure in this process")
    given = parser.parse_args()
    if given.one:
        seconds = measure(Problem.load(given.problem), CONTESTANTS[given.one], given.one)
        print(f"{given.one}: {seconds:.3f} s")
        return
    priors = {"PEERS_PRIORS": str(given.problem.resolve().parents[1] / "priors" / "auto")}
    for _ in range(given.rounds):
        for peer, environment in CONTESTANTS.items():
            ours = environment == "foretune"
            python = sys.executable if ours else python_of(given.environments, environment)
            command = [str(python), "-m", "benchmarks.peers.speed", str(given.problem.resolve())]
            command += ["--environments", str(given.environments), "--one", peer]
            subprocess.run(
                command, cwd=ROOT, env={**os.environ, **ONE_THREAD, **priors}, check=True
            )


if __name__ == "__main__":
    main()
