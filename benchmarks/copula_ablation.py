"""Measures the worth of each difference between gcp-prior and its paper.

Each task is left out in turn. The number is the average over tasks of the improvement over exact
random search (the copula paper's Table 2).

    python benchmarks/copula_ablation.py --experience xgboost.parquet --trials 100 --seeds 10
"""

import argparse
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from foretune._base.progress import SILENT
from foretune.experience import Experience
from foretune.methods.contracts import Prior, Target
from foretune.methods.copula.learn import CopulaLearner
from foretune.methods.copula.variants import (
    INFORMED,
    OURS,
    gcp_prior,
    gcp_prior_paper,
)
from foretune.numerics.scores import midrank_scores
from foretune.search import Design, Method, Optimizer, Told
from foretune_lab.bench.metrics import (
    best_so_far,
    distance_to_minimum,
    improvement_over_random,
    random_search_minimum,
)
from foretune_lab.bench.pools import TaskPool, pool_of


def midrank() -> CopulaLearner:
    """Return the learner whose scores of past tasks keep their best apart."""
    return CopulaLearner("midrank", midrank_scores, OURS)


def trusting() -> CopulaLearner:
    """Return the learner that never doubts the prior of its scores."""
    return CopulaLearner("trusting", midrank_scores, replace(INFORMED, doubt=0.0))


VARIANTS = {
    "paper": gcp_prior_paper,
    "midrank": midrank,
    "midrank+trusting": trusting,
    "midrank+informed": gcp_prior,
}


def losses_of(prior: Prior, pool: TaskPool, chosen: Method, seed: int, trials: int) -> np.ndarray:
    target = Target(pool.configs.space, pool=pool.configs)
    optimizer = Optimizer(target, chosen, prior, seed=seed)
    for _ in range(trials):
        suggestion = optimizer.ask()[0]
        loss = tuple(pool.losses[suggestion.pool_index])
        optimizer.tell([Told(loss, id=suggestion.id)])
    return optimizer.told.losses[:, 0]


def improvement(
    make: Callable[[], CopulaLearner],
    experience: Experience,
    task: str,
    seeds: Sequence[int],
    trials: int,
    opening: int,
) -> float:
    chosen = Method("variant", "", make, design=Design("prior", opening))
    pool = pool_of(experience, task)
    priors = make().learn_many(experience.without([task]), seeds, progress=SILENT)
    runs = [
        best_so_far(losses_of(prior, pool, chosen, seed, trials))
        for prior, seed in zip(priors, seeds, strict=True)
    ]
    pool_losses = pool.losses[:, 0]
    distance = distance_to_minimum(np.mean(runs, axis=0), pool_losses)
    random = distance_to_minimum(random_search_minimum(pool_losses, trials), pool_losses)
    return float(improvement_over_random(distance, random))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--experience", type=Path, required=True)
    parser.add_argument("--tasks", help="with commas between; all if not given")
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--opening", type=int, default=5, help="Thompson draws before the GP")
    parser.add_argument("--variants", default=",".join(VARIANTS))
    parser.add_argument("--out", type=Path, help="JSON lines, one a variant")
    given = parser.parse_args()
    experience = Experience.open(given.experience)
    experience = experience.with_metrics([experience.metrics[0].name])
    tasks = given.tasks.split(",") if given.tasks else list(experience.tasks)
    seeds = range(given.first_seed, given.first_seed + given.seeds)
    for name in given.variants.split(","):
        started = time.perf_counter()
        by_task = {}
        for task in tasks:
            gain = improvement(VARIANTS[name], experience, task, seeds, given.trials, given.opening)
            by_task[task] = round(gain, 3)
        row = {"suite": given.experience.stem, "variant": name, "seeds": given.seeds}
        row |= {"opening": given.opening}
        row |= {"mean": round(float(np.mean(list(by_task.values()))), 3), "tasks": by_task}
        row |= {"seconds": round(time.perf_counter() - started)}
        print(json.dumps(row), flush=True)
        if given.out:
            with given.out.open("a") as file:
                file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
