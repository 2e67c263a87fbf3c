"""How alike the tasks of a suite are to the prior of the copula paper (its Figure 4).

Each task is left out in turn. Its RMSE is sqrt(mean (z - mu(x))²) over all its evaluations, where
z are its Gaussian scores and mu is the prior of the other tasks: near 0 if these tell everything,
near 1 if they tell nothing. With a file of results the improvement of each method over exact random
search follows, task by task, and its rank correlation with the RMSE.

Example: python benchmarks/copula_difficulty.py --experience xgboost.parquet --results x.parquet
"""

import argparse
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

from foretune.experience import Experience
from foretune.methods.copula.model import CopulaPrior
from foretune.numerics import copula_scores
from foretune.search import METHODS
from foretune_lab.bench.metrics import (
    best_so_far,
    distance_to_minimum,
    improvement_over_random,
    random_search_minimum,
)
from foretune_lab.bench.pools import pool_of
from foretune_lab.bench.results import read


def prior_error(experience: Experience, task: str) -> float:
    """Return the RMSE of the prior of the other tasks on this one."""
    prior = METHODS["gcp-prior-paper"].learn(experience.without([task]), seed=0)
    assert isinstance(prior, CopulaPrior)
    pool = pool_of(experience, task)
    known = np.flatnonzero(np.isfinite(pool.losses[:, 0]))
    mu = prior.networks.believe(pool.configs.x[known]).mu[:, 0]
    return float(np.sqrt(np.mean(np.square(copula_scores(pool.losses[known, 0]) - mu))))


def improvements(experience: Experience, results: Path, task: str) -> dict[str, float]:
    """Return {method: improvement over random search on the task, averaged over seeds}."""
    rows = read(results).rows
    pool = pool_of(experience, task).losses[:, 0]
    metric = experience.metrics[0]
    sign = -1.0 if str(metric.direction) == "max" else 1.0
    found = {}
    for name, of_method in rows[rows["task"] == task].groupby("method"):
        runs = of_method.sort_values("trial").groupby("seed")[metric.name].apply(np.asarray)
        best = np.mean([best_so_far(sign * np.asarray(run, float)) for run in runs], axis=0)
        by_chance = distance_to_minimum(random_search_minimum(pool, len(best)), pool)
        found[str(name)] = float(
            improvement_over_random(distance_to_minimum(best, pool), by_chance)
        )
    return found


def main() -> None:
    """Print a line for each task, the easiest first."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--experience", required=True)
    parser.add_argument("--results", type=Path)
    options = parser.parse_args()
    whole = Experience.open(options.experience)
    experience = whole.with_metrics([whole.metrics[0].name]).compact()
    errors = {task: prior_error(experience, task) for task in experience.tasks}
    order = sorted(errors, key=errors.__getitem__)
    gains = {}
    if options.results is not None:
        gains = {task: improvements(experience, options.results, task) for task in order}
    for task in order:
        shown = "  ".join(f"{name} {gain:.2f}" for name, gain in gains.get(task, {}).items())
        print(f"{task:20s} RMSE {errors[task]:.2f}  {shown}")
    methods = sorted({name for each in gains.values() for name in each})
    for name in methods:
        played = [task for task in order if name in gains[task]]
        pairs = [(errors[task], gains[task][name]) for task in played]
        print(
            f"{name:20s} rank correlation with the RMSE {spearmanr(np.array(pairs)).statistic:.2f}"
        )


if __name__ == "__main__":
    main()
