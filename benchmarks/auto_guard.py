"""Compares `auto` with misleading experience and Gaussian processes that have no experience.

    python benchmarks/auto_guard.py --tasks 5 --seeds 3
    python benchmarks/auto_guard.py --experience xgboost.parquet

Past tasks stay as they are, or their losses are shuffled among the configurations, reversed (the
best is the worst), or replaced by noise. The distance to the best of the pool after 5 to 30 trials
is relative to that of the median configuration, averaged over tasks and seeds.
"""

import argparse
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from foretune._base.arrays import Floats
from foretune.experience import Experience
from foretune.methods.contracts import Target
from foretune.search import METHODS, Optimizer, Told
from foretune_lab.bench.demo import demo_experience
from foretune_lab.bench.pools import pool_of

LOOKS = (5, 10, 20, 30)
FROM_NOTHING = ("gcp-smooth", "gcp")
"""Methods without experience. The first one is also an expert of `auto`."""
Corrupt = Callable[[Floats, np.random.Generator], Floats]

WAYS: dict[str, Corrupt] = {
    "as recorded": lambda values, rng: values,  # noqa: ARG005
    "shuffled": lambda values, rng: rng.permutation(values),
    "turned around": lambda values, rng: -values,  # noqa: ARG005
    "noise": lambda values, rng: rng.standard_normal(len(values)),
}


def corrupt_past(experience: Experience, how: Corrupt) -> Experience:
    rng = np.random.default_rng(0)
    values = experience.values.copy()
    for task in experience.tasks:
        rows = experience.rows(task)
        values[rows, 0] = how(values[rows, 0], rng)
    return replace(experience, values=values)


def regrets(experience: Experience, task: str, method: str, past: Experience | None, seed: int):
    pool = pool_of(experience, task)
    prior = METHODS[method].learn(past, seed=seed)
    target = Target(experience.space, (experience.metrics[0].name,), pool=pool.configs)
    optimizer = Optimizer(target, METHODS[method], prior, seed=seed)
    losses = []
    for _ in range(max(LOOKS)):
        suggestion = optimizer.ask()[0]
        losses.append(float(pool.losses[suggestion.pool_index, 0]))
        optimizer.tell([Told((losses[-1],), id=suggestion.id)])
    low, middle = float(np.nanmin(pool.losses)), float(np.nanmedian(pool.losses))
    return {f"after {look}": (np.nanmin(losses[:look]) - low) / (middle - low) for look in LOOKS}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--experience", type=Path)
    parser.add_argument("--tasks", type=int, default=5)
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    whole = Experience.open(given.experience) if given.experience else demo_experience()
    whole = whole.with_metrics([whole.metrics[0].name])
    rows = []
    for task in whole.tasks[: given.tasks]:
        for seed in range(given.seeds):
            for name in FROM_NOTHING:
                found = regrets(whole, task, name, None, seed)
                rows.append({"past tasks": f"none: {name}", **found})
            for name, how in WAYS.items():
                past = corrupt_past(whole.without([task]), how)
                rows.append({"past tasks": name, **regrets(whole, task, "auto", past, seed)})
    print(pd.DataFrame(rows).groupby("past tasks", sort=False).mean().round(4).to_string())


if __name__ == "__main__":
    main()
