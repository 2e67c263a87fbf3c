"""Measures the time of a suggestion of a deep ranking ensemble, and of learning it.

There are 90 past tasks of 100 evaluations in 9 dimensions, synthetic bowls that differ by task, a
pool of 2,000 configurations, and 10, 50 and 100 told trials. `--first` measures the time of a new
process from its start to the first suggestion with a saved prior.

    OPENBLAS_NUM_THREADS=1 python benchmarks/ranking_speed.py
    OPENBLAS_NUM_THREADS=1 python benchmarks/ranking_speed.py --first
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np

from foretune.experience import Direction, Experience, Metric
from foretune.methods.contracts import Prior, Target
from foretune.search import Optimizer, Told, method
from foretune.space import Encoded, Space

DIMENSIONS, TASKS, EVALUATIONS, POOL, REPEATS = 9, 90, 100, 2000, 15
TOLD = (10, 50, 100)
SPACE = Space.of({f"x{i}": (0.0, 1.0) for i in range(DIMENSIONS)})


def loss(configs: Encoded, task: int) -> np.ndarray:
    centre = np.random.default_rng(task).uniform(0.3, 0.7, DIMENSIONS)
    weights = np.random.default_rng(100 + task).uniform(0.2, 1.0, DIMENSIONS)
    return np.square(configs.x - centre) @ weights


def past() -> Experience:
    configs = SPACE.sample(EVALUATIONS, seed=0)
    matrix = np.stack([loss(configs, task) for task in range(1, TASKS + 1)])
    names = [f"task {task}" for task in range(1, TASKS + 1)]
    metrics = [Metric("loss", Direction.MIN)]
    return Experience.from_matrix(SPACE, configs, names, metrics, {"loss": matrix})


def milliseconds(name: str, prior: Prior, told: int, repeats: int = REPEATS) -> tuple[float, float]:
    """Return the median wall and processor time of a suggestion after `told` trials."""
    pool = SPACE.sample(POOL, seed=1)
    losses, configs = loss(pool, 0), pool.dicts()
    target, no_opening = Target(SPACE, pool=pool), pool.take([])
    optimizer = Optimizer(target, method(name), prior, start=no_opening)
    optimizer.tell(Told((float(losses[row]),), config=configs[row]) for row in range(told))
    wall, processor = [], []
    for row in range(told, told + repeats):
        started, worked = time.perf_counter(), time.process_time()
        suggestion = optimizer.ask()[0]
        wall.append(time.perf_counter() - started)
        processor.append(time.process_time() - worked)
        optimizer.tell([Told((float(losses[row]),), id=suggestion.id)])
    return 1000 * median(wall), 1000 * median(processor)


def learning(name: str) -> Prior:
    for attempt in ("first", "second"):
        started, worked = time.perf_counter(), time.process_time()
        prior = method(name).learn(past(), seed=0)
        wall, processor = time.perf_counter() - started, time.process_time() - worked
        print(f"{name}: learning, {attempt} time: {wall:.1f} s, processor {processor:.1f} s")
    return prior


def first_suggestion(path: Path) -> None:
    """Load a prior, tell 100 trials and ask, in a process of its own."""
    milliseconds("dre", method("dre").load(path), TOLD[-1], repeats=1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", action="store_true", help="time new processes")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        first_suggestion(given.child)
        return
    prior = learning("dre")
    if given.first:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "prior"
            prior.save(path)
            command = [sys.executable, __file__, "--child", str(path)]
            started = time.perf_counter()
            subprocess.run(command, check=True)
            print(f"a new process and its first suggestion: {time.perf_counter() - started:.2f} s")
        return
    for name, learnt in (("dre", prior), ("dre-ri", method("dre-ri").learn(None, seed=0))):
        for told in TOLD:
            wall, processor = milliseconds(name, learnt, told)
            print(f"{name}: {told} told: {wall:.0f} ms a suggestion, processor {processor:.0f} ms")


if __name__ == "__main__":
    main()
