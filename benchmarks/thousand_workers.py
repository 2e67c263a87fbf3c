"""Simulates a thousand workers on one store with a virtual clock.

    python benchmarks/thousand_workers.py waiting --ask 0.3 --store 0.07
    python benchmarks/thousand_workers.py quality --trials 128 --seeds 5 [--experience FILE ...]

A worker gets a suggestion, runs its trial, and reports. Run times are log-normal with a heavy tail
(mean 60 s): the slowest of 1,000 takes about 20 times the median.

`waiting` is queueing alone. The workers are shared among processes of `foretune tune`. Each process
serves one worker after another: it computes a suggestion for `--ask` seconds, and then stores it.
All processes share one store, which is locked for `--store` seconds for each trial: one look, one
begin, one end. Both numbers are measured (`many_trials.py`, `reliability/store_time.py`). It
prints the share of time in which workers run trials, how long a worker waits for a suggestion, and
the trials in a second. All are from the middle of the time, because all workers begin at once.

`quality` makes the suggestions with the real optimiser. The clock decides which results it knows at
each of them. A suggestion takes `--ask` seconds of virtual time, whatever it takes here. It prints
the regret after all trials for each number of workers. On smooth functions, it is the logarithm
(base 10) of the best loss. In recorded tasks, 0 is the least loss and 1 the median one.
"""

import argparse
import heapq
import json
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from foretune.experience import Experience
from foretune.methods.contracts import Target
from foretune.search import Optimizer, Told, method
from foretune.space import Space
from foretune_lab.bench.pools import pool_of

MEAN_SECONDS = 60.0
SPREAD = 1.0
"""The standard deviation of the logarithm of run times."""


def run_times(rng: np.random.Generator) -> Iterator[float]:
    while True:
        yield MEAN_SECONDS * float(np.exp(SPREAD * rng.standard_normal() - SPREAD**2 / 2))


# Waiting


@dataclass
class Waited:
    """The result of queueing."""

    busy: float
    """The share of the workers' time in which they ran trials."""
    mean_s: float
    """The mean seconds that a worker waited for a trial."""
    longest_s: float
    rate: float
    """The number of trials in a second."""


def simulate_queue(
    workers: int, processes: int, rounds: int, *, ask: float, store: float, seed: int = 0
) -> Waited:
    """Let each worker run about `rounds` trials.

    Whoever comes first is served first, by its process and then by the store.
    """
    times = run_times(np.random.default_rng(seed))
    queues: list[deque[int]] = [deque() for _ in range(processes)]
    store_free, came = 0.0, [0.0] * workers
    # (when, what, worker): it needs a trial, its suggestion is there, or its trial is stored.
    events = [(0.0, "needs", worker) for worker in range(workers)]
    end = rounds * MEAN_SECONDS
    window = (0.2 * end, 0.8 * end)
    running, waits, begun = 0.0, [], 0
    while events and events[0][0] <= end:
        now, what, worker = heapq.heappop(events)
        queue = queues[worker % processes]
        if what == "needs":
            came[worker] = now
            queue.append(worker)
            if len(queue) == 1:
                heapq.heappush(events, (now + ask, "suggested", worker))
        elif what == "suggested":
            store_free = max(now, store_free) + store
            heapq.heappush(events, (store_free, "stored", worker))
        else:
            queue.popleft()
            if queue:
                heapq.heappush(events, (now + ask, "suggested", queue[0]))
            seconds = next(times)
            running += max(0.0, min(now + seconds, window[1]) - max(now, window[0]))
            if window[0] <= came[worker] <= window[1]:
                waits.append(now - came[worker])
            begun += window[0] <= now <= window[1]
            heapq.heappush(events, (now + seconds, "needs", worker))
    length = window[1] - window[0]
    longest = max(waits, default=float("nan"))
    mean = float(np.mean(waits)) if waits else float("nan")
    return Waited(running / (length * workers), mean, longest, begun / length)


def print_waiting(given: argparse.Namespace) -> None:
    for workers in given.workers:
        for processes in [p for p in given.processes if p <= workers]:
            found = simulate_queue(
                workers, processes, given.rounds, ask=given.ask, store=given.store
            )
            row = {"workers": workers, "processes": processes, "busy": round(found.busy, 3)}
            row |= {"mean_wait_s": round(found.mean_s, 2), "longest_s": round(found.longest_s, 1)}
            print(json.dumps(row | {"trials_per_s": round(found.rate, 2)}), flush=True)


# Quality


@dataclass(frozen=True)
class Problem:
    """A target with a loss for each configuration."""

    name: str
    target: Target
    loss: Callable[[dict[str, Any], int | None], float]
    """The loss of a configuration and its row in the pool."""
    regret: Callable[[float], float]


def smooth_problem(name: str, columns: int, seed: int) -> Problem:
    """Return a valley, with or without ripples, whose least loss is 0."""
    rng = np.random.default_rng(seed)
    centre, weights = rng.uniform(0.2, 0.8, columns), rng.uniform(0.3, 2.0, columns)

    def loss(config: dict[str, Any], _row: int | None) -> float:
        gap = np.array(list(config.values())) - centre
        if name == "valley":
            return float(weights @ gap**2)
        return float(np.mean(gap**2 + 0.05 * (1.0 - np.cos(9.0 * gap))))

    space = Space.of({f"x{i}": (0.0, 1.0) for i in range(columns)})
    return Problem(name, Target(space), loss, lambda best: float(np.log10(best)))


def recorded_problem(path: Path, seed: int) -> Problem:
    """Return the recorded configurations of one task of a file; each seed has another task."""
    past = Experience.open(path)
    pool = pool_of(past, past.tasks[seed % len(past.tasks)])
    losses = pool.losses[:, 0]
    low, middle = float(np.nanmin(losses)), float(np.nanmedian(losses))

    def loss(_config: dict[str, Any], row: int | None) -> float:
        assert row is not None
        return float(losses[row])

    target = Target(past.space, pool=pool.configs)
    return Problem(path.stem, target, loss, lambda best: (best - low) / (middle - low))


def run_study(
    problem: Problem, name: str, workers: int, trials: int, seed: int, ask: float
) -> tuple[float, float]:
    """Return the least loss of one study, and the CPU seconds of a suggestion."""
    entry = method(name)
    optimizer = Optimizer(problem.target, entry, entry.learn(None, seed=seed), seed=seed)
    times = run_times(np.random.default_rng(seed))
    # (when, worker, suggestion that has ended or None, its loss)
    events: list[tuple[float, int, int | None, float]]
    events = [(0.0, worker, None, 0.0) for worker in range(workers)]
    free_at, best, asked, begun = 0.0, np.inf, 0.0, 0
    while events:
        now, worker, id_, loss = heapq.heappop(events)
        if id_ is not None:
            optimizer.tell([Told(loss, id=id_)])
            best = np.fmin(best, loss)
        if begun == trials:
            continue
        began = time.process_time()
        suggestion = optimizer.ask()[0]
        asked += time.process_time() - began
        begun += 1
        free_at = max(now, free_at) + ask
        found = problem.loss(suggestion.config, suggestion.pool_index)
        heapq.heappush(events, (free_at + next(times), worker, suggestion.id, found))
    return float(best), asked / trials


def problems(files: Iterable[Path], seed: int) -> list[Problem]:
    smooth = [smooth_problem("valley", 4, seed), smooth_problem("ripples", 6, seed)]
    return [*smooth, *(recorded_problem(path, seed) for path in files)]


def print_quality(given: argparse.Namespace) -> None:
    """Print one line for each study, so that a stopped run has printed something."""
    for seed in range(given.seeds):
        for problem in problems(given.experience, seed):
            for name in given.methods:
                for workers in [w for w in given.workers if w <= given.trials]:
                    best, asked = run_study(problem, name, workers, given.trials, seed, given.ask)
                    row = {"problem": problem.name, "method": name, "workers": workers}
                    row |= {"seed": seed, "trials": given.trials}
                    row |= {"regret": round(problem.regret(best), 4), "ask_cpu_s": round(asked, 4)}
                    print(json.dumps(row), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["waiting", "quality"])
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 8, 64, 256, 1000])
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 8, 32])
    parser.add_argument("--ask", type=float, default=0.3, help="seconds of a suggestion")
    parser.add_argument("--store", type=float, default=0.07, help="seconds of a look, begin, end")
    parser.add_argument(
        "--rounds", type=int, default=40, help="trials of a worker, in mean run times"
    )
    parser.add_argument("--methods", nargs="+", default=["auto", "random"])
    parser.add_argument("--trials", type=int, default=128)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--experience", type=Path, nargs="*", default=[])
    given = parser.parse_args()
    (print_waiting if given.what == "waiting" else print_quality)(given)


if __name__ == "__main__":
    main()
