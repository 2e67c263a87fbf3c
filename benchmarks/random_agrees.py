"""Compares replays of `random` with the closed form of random search, on recorded tables.

The best of t draws without replacement has a known mean and variance. The difference of the
replays' mean to it, in units of its standard deviation, has a root mean square near 1 if the
replay is right. Trials of one run depend on each other, so a single suite may stray by some tenths.

    python benchmarks/random_agrees.py xgboost.parquet oboe.parquet ...
"""

import argparse
from pathlib import Path

import numpy as np

from foretune.experience import Experience
from foretune.methods.contracts import Target
from foretune.search import Optimizer, Told, method
from foretune_lab.bench.metrics import best_so_far, random_search_minimum
from foretune_lab.bench.pools import TaskPool, pool_of


def run(pool: TaskPool, seed: int, trials: int) -> np.ndarray:
    random = method("random")
    target = Target(pool.configs.space, pool=pool.configs)
    optimizer = Optimizer(target, random, random.learn(None, seed=seed), seed=seed)
    for _ in range(trials):
        suggestion = optimizer.ask()[0]
        loss = tuple(pool.losses[suggestion.pool_index])
        optimizer.tell([Told(loss, id=suggestion.id)])
    return best_so_far(optimizer.told.losses[:, 0])


def differences(pool: TaskPool, seeds: int, trials: int) -> np.ndarray:
    """Return the differences (trials,) in standard deviations of the mean."""
    losses = pool.losses[:, 0] - np.nanmin(pool.losses[:, 0])
    mean = random_search_minimum(losses, trials)
    variance = random_search_minimum(losses**2, trials) - mean**2
    runs = [run(pool, seed, trials) - np.nanmin(pool.losses[:, 0]) for seed in range(seeds)]
    spread = np.sqrt(np.maximum(variance, 0.0) / seeds)
    gap = np.mean(runs, axis=0) - mean
    return np.divide(gap, spread, out=np.zeros(trials), where=spread > 0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("experiences", nargs="+", type=Path)
    parser.add_argument("--tasks", type=int, default=5, help="how many, evenly spread")
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--trials", type=int, default=15)
    given = parser.parse_args()
    for path in given.experiences:
        experience = Experience.open(path)
        experience = experience.with_metrics([experience.metrics[0].name])
        count = min(given.tasks, len(experience.tasks))
        places = np.linspace(0, len(experience.tasks) - 1, count).astype(int)
        pools = [pool_of(experience, experience.tasks[place]) for place in places]
        z = np.concatenate([differences(pool, given.seeds, given.trials) for pool in pools])
        rms = np.sqrt(np.mean(z**2))
        print(
            f"{path.stem}: {count} tasks, rms {rms:.2f}, largest {np.abs(z).max():.2f}", flush=True
        )


if __name__ == "__main__":
    main()
