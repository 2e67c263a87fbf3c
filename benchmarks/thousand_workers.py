"""A thousand workers and one optimiser, simulated on a virtual clock with real suggestions.

    python benchmarks/thousand_workers.py [--workers 1 8 64 256 1000] [--trials 2000] [--seeds 5]

A worker asks, runs its trial, and tells. Run times are log-normal with a heavy tail (mean 60 s).
Only one worker at a time holds the lock of the study: it waits for the lock, and holds it for as
long as the optimiser really takes (CPU seconds) plus `--store` seconds for the database. All else
happens on the virtual clock, so an hour of a thousand workers takes as long as its suggestions.

Prints, for each method and number of workers: the share of time in which workers run trials, how
long they wait for the lock, the CPU seconds of one suggestion, and the best loss after all trials,
beside that of one worker who asks for the same number one by one.
"""

import argparse
import heapq
import json
import time
from dataclasses import dataclass

import numpy as np

from foretune.methods.contracts import Target
from foretune.search import Optimizer, Told, method
from foretune.space import Space

MEAN_SECONDS = 60.0
SPREAD = 1.0
"""Of the logarithm of run times: the slowest of 1,000 takes about 20 times the median."""


@dataclass(frozen=True)
class Problem:
    """A smooth function whose best loss is 0."""

    name: str
    columns: int

    def space(self) -> Space:
        return Space.of({f"x{i}": (0.0, 1.0) for i in range(self.columns)})

    def loss(self, config: dict[str, float], seed: int) -> float:
        rng = np.random.default_rng(seed)
        gap = np.array(list(config.values())) - rng.uniform(0.2, 0.8, self.columns)
        if self.name == "valley":
            return float(rng.uniform(0.3, 2.0, self.columns) @ gap**2)
        return float(np.mean(gap**2 + 0.05 * (1.0 - np.cos(9.0 * gap))))


PROBLEMS = (Problem("valley", 4), Problem("ripples", 6))


@dataclass
class Simulated:
    """What came of one run."""

    best: float
    busy: float
    """Share of the workers' time in which they ran trials."""
    waited: float
    """Mean seconds that a worker waited for its turn."""
    asked: float
    """Mean CPU seconds of one suggestion."""


def simulate(
    problem: Problem, name: str, workers: int, trials: int, seed: int, store: float
) -> Simulated:
    """One study until all of its trials have ended."""
    entry = method(name)
    target = Target(problem.space())
    optimizer = Optimizer(target, entry, entry.learn(None, seed=seed), seed=seed)
    rng = np.random.default_rng(seed)
    free_at, best, running, waited, asked = 0.0, np.inf, 0.0, 0.0, 0.0
    # (when, worker, suggestion that has ended or None): the earliest is served first.
    events: list[tuple[float, int, int | None, float]]
    events = [(0.0, worker, None, 0.0) for worker in range(workers)]
    heapq.heapify(events)
    begun, end = 0, 0.0
    while events:
        now, worker, id_, loss = heapq.heappop(events)
        end = max(end, now)
        if id_ is not None:
            optimizer.tell([Told(loss, id=id_)])
            best = min(best, loss)
        if begun == trials:
            continue
        began = time.process_time()
        suggestion = optimizer.ask()[0]
        took = time.process_time() - began
        asked += took
        got = max(now, free_at) + took + store
        waited += got - now
        free_at = got
        seconds = MEAN_SECONDS * float(np.exp(SPREAD * rng.standard_normal() - SPREAD**2 / 2))
        running += seconds
        begun += 1
        found = problem.loss(suggestion.config, seed)
        heapq.heappush(events, (got + seconds, worker, suggestion.id, found))
    return Simulated(best, running / (end * workers), waited / trials, asked / trials)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--methods", nargs="+", default=["auto", "random"])
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 8, 64, 256, 1000])
    parser.add_argument("--trials", type=int, default=2000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--store", type=float, default=0.01, help="seconds of a begin and an end")
    given = parser.parse_args()
    for problem in PROBLEMS:
        for name in given.methods:
            for workers in given.workers:
                runs = [
                    simulate(problem, name, workers, given.trials, seed, given.store)
                    for seed in range(given.seeds)
                ]
                row = {
                    "problem": problem.name,
                    "method": name,
                    "workers": workers,
                    "trials": given.trials,
                    "log10 best": round(float(np.mean([np.log10(run.best) for run in runs])), 2),
                    "busy": round(float(np.mean([run.busy for run in runs])), 3),
                    "waited_s": round(float(np.mean([run.waited for run in runs])), 2),
                    "ask_cpu_s": round(float(np.mean([run.asked for run in runs])), 3),
                }
                print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
