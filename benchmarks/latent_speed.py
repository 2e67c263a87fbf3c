"""Measures the time of latent-cash: pre-training, and a suggestion after 224 trials.

It uses one thread. The space has 12 algorithms of 1 to 5 hyperparameters, as in the paper. The
suggestion uses as many sources as it would with many past tasks.

    OPENBLAS_NUM_THREADS=1 XLA_FLAGS="--xla_cpu_multi_thread_eigen=false" \\
        python benchmarks/latent_speed.py --evaluations 40000
"""

import argparse
import time
from statistics import median

import numpy as np

from foretune.methods.contracts import Target
from foretune.methods.latent.learn import LatentPrior, pretrain
from foretune.methods.latent.sources import ONE_IN, PANEL, MetaFeatures
from foretune.search import Optimizer, Told, method
from foretune.space import Encoded, Space
from foretune.space.algorithms import Algorithms

TOLD, REPEATS = 224, 7
SPACE = Space.of(
    {"model": {f"a{i}": {f"p{j}": (0.0, 1.0) for j in range(1 + i % 5)} for i in range(12)}}
)
ALGORITHMS = Algorithms.of(SPACE)


def losses(configs: Encoded) -> np.ndarray:
    inputs, which = ALGORITHMS.inputs(configs), ALGORITHMS.algorithm_of(configs)
    return np.square(inputs - 0.3).sum(axis=1) + 0.05 * which


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--evaluations", type=int, default=40_000)
    evaluations = parser.parse_args().evaluations
    configs = SPACE.sample(evaluations, seed=0)
    gaps = np.argsort(np.argsort(losses(configs))) / evaluations
    for attempt in ("first", "second"):
        wall, cpu = time.perf_counter(), time.process_time()
        embedding = pretrain(ALGORITHMS, configs, gaps, seed=0)
        spent = f"{time.perf_counter() - wall:.1f} s ({time.process_time() - cpu:.1f} s of CPU)"
        print(f"pre-training on {evaluations} evaluations, {attempt} time: {spent}")
    sources = PANEL * ONE_IN
    prior = LatentPrior(
        "benchmark", SPACE, (embedding,) * sources, MetaFeatures.of([{}] * sources), None
    )
    optimizer = Optimizer(Target(SPACE), method("latent-cash"), prior)
    told = SPACE.sample(TOLD + REPEATS, seed=1)
    rows = [Told((float(y),), config=c) for y, c in zip(losses(told), told.dicts(), strict=True)]
    optimizer.tell(rows[:TOLD])
    optimizer.ask()
    seconds = []
    for row in rows[TOLD:]:
        optimizer.tell([row])
        optimizer.tell([Told((1.0,), id=pending) for pending in optimizer.pending])
        wall, cpu = time.perf_counter(), time.process_time()
        optimizer.ask()
        seconds.append((time.perf_counter() - wall, time.process_time() - cpu))
    wall_each, cpu_each = (median(column) for column in zip(*seconds, strict=True))
    print(f"a suggestion after {TOLD} trials: {wall_each:.2f} s ({cpu_each:.2f} s of CPU)")


if __name__ == "__main__":
    main()
