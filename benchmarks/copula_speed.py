"""Measures the time of a suggestion of gcp-prior and of plain gp, and the time of learning.

A suggestion follows 100 told trials, over a pool of 5,000 configurations in 9 dimensions, with one
thread. The experience is synthetic: 9 tasks of 5,000 evaluations of bowls that differ by task.

    OPENBLAS_NUM_THREADS=1 python benchmarks/copula_speed.py
"""

import time
from statistics import median

import numpy as np

from foretune.experience import Direction, Experience, Metric
from foretune.methods.contracts import Prior, Target
from foretune.search import Optimizer, Told, method
from foretune.space import Encoded, Space

DIMENSIONS, TASKS, POOL, TOLD, REPEATS = 9, 9, 5000, 100, 15
METHODS = ("gp", "gcp", "gcp-prior-paper", "gcp-prior")
SPACE = Space.of({f"x{i}": (0.0, 1.0) for i in range(DIMENSIONS)})


def loss(configs: Encoded, task: int) -> np.ndarray:
    centre = np.random.default_rng(task).uniform(0.3, 0.7, DIMENSIONS)
    weights = np.random.default_rng(100 + task).uniform(0.2, 1.0, DIMENSIONS)
    return np.square(configs.x - centre) @ weights


def past() -> Experience:
    configs = SPACE.sample(POOL, seed=0)
    matrix = np.stack([loss(configs, task) for task in range(1, TASKS)])
    names = [f"task {task}" for task in range(1, TASKS)]
    metrics = [Metric("loss", Direction.MIN)]
    return Experience.from_matrix(SPACE, configs, names, metrics, {"loss": matrix})


def told_optimizer(name: str, prior: Prior, pool: Encoded) -> Optimizer:
    optimizer = Optimizer(Target(SPACE, pool=pool), method(name), prior)
    losses = loss(pool, 0)
    configs = pool.dicts()
    optimizer.tell(Told((float(losses[row]),), config=configs[row]) for row in range(TOLD))
    return optimizer


def main() -> None:
    experience, pool = past(), SPACE.sample(POOL, seed=1)
    optimizers, seconds = {}, {name: [] for name in METHODS}
    for name in METHODS:
        for attempt in ("first", "second"):
            started = time.perf_counter()
            prior = method(name).learn(experience, seed=0)
            print(f"{name}: learning, {attempt} time: {time.perf_counter() - started:.2f} s")
        optimizers[name] = told_optimizer(name, prior, pool)
        optimizers[name].ask()
    losses, configs = loss(pool, 0), pool.dicts()
    for repeat in range(REPEATS):
        row = TOLD + repeat
        for name, optimizer in optimizers.items():
            optimizer.tell([Told((float(losses[row]),), config=configs[row])])
            for pending in list(optimizer.pending):
                optimizer.tell([Told((1.0,), id=pending)])
            started = time.perf_counter()
            optimizer.ask()
            seconds[name].append(time.perf_counter() - started)
    for name in METHODS:
        ratio = median(seconds[name]) / median(seconds["gp"])
        print(f"{name}: {1000 * median(seconds[name]):.1f} ms a suggestion, {ratio:.2f} x gp")


if __name__ == "__main__":
    main()
