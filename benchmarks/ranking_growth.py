"""How well a ranking ensemble orders unseen tasks, against the steps of its meta-learning.

A quarter of the tasks (16 at most) is held out. After some random trials of each, the ensemble
ranks 500 other configurations of its pool. The number is Spearman's correlation with the truth,
averaged over tasks. The seconds include compilation.

Example: python benchmarks/ranking_growth.py --experience adaboost.parquet --most 20000
"""

import argparse
import json
import time

import jax.numpy as jnp
import numpy as np
from scipy.stats import spearmanr

from foretune.experience import Experience
from foretune.methods import Observations, Target
from foretune.methods.ranking.learn import (
    _pad,
    gather,
    initial_weights,
    padded_width,
    read_ensembles,
)
from foretune.methods.ranking.model import RankingPrior
from foretune.methods.ranking.training import RATE, Weights, meta_learn
from foretune.methods.ranking.variants import dre
from foretune_lab.bench.pools import pool_of

HELD_OUT, TRIALS, UNSEEN, PART = 16, (0, 5, 20), 500, 500
MARKS = (500, 1000, 2000, 5000, 10000, 20000, 40000, 80000)


def agreement(prior: RankingPrior, experience: Experience, tasks: list[str], trials: int) -> float:
    """Return the mean correlation over tasks after so many random trials of each."""
    found = []
    for number, task in enumerate(tasks):
        pool = pool_of(experience, task)
        known = np.flatnonzero(np.isfinite(pool.losses[:, 0]))
        order = np.random.default_rng(number).permutation(known)
        tried, unseen = order[:trials], order[trials : trials + UNSEEN]
        surrogate = prior.surrogate(Target(experience.space, pool=pool.configs))
        believed = np.zeros(trials, dtype=bool)
        seen = Observations(pool.configs.take(tried), pool.losses[tried], believed)
        belief = surrogate.condition(seen, seed=0).predict(pool.configs.take(unseen))
        found.append(spearmanr(belief.mean, pool.losses[unseen, 0]).statistic)
    return float(np.nanmean(found))


def main() -> None:
    """Print a line of JSON for each of the marked numbers of steps."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--experience", required=True)
    parser.add_argument("--most", type=int, default=20_000)
    options = parser.parse_args()
    whole = Experience.open(options.experience)
    experience = whole.with_metrics([whole.metrics[0].name]).compact()
    order = np.random.default_rng(7).permutation(len(experience.tasks)).tolist()
    names = [experience.tasks[place] for place in order]
    held_out = names[: max(3, min(HELD_OUT, len(names) // 4))]
    evaluations = gather(experience.without(held_out))
    width = evaluations.x.shape[1]
    tasks = _pad(evaluations, padded_width(width))
    weights: Weights = initial_weights(width, [0], meta_features=True)
    rng, begun = np.random.default_rng(0), time.monotonic()
    rates = jnp.full(PART, RATE, jnp.float32)
    scorers = len(read_ensembles(weights, width)[0].scorers[0][0])
    for steps in range(PART, options.most + 1, PART):
        draws = jnp.asarray(rng.random((1, PART, scorers, 4), np.float32))
        weights = meta_learn(weights, draws, rates, tasks, loss="list-wise")
        if steps in MARKS:
            [ensemble] = read_ensembles(weights, width)
            prior = RankingPrior("growth", experience.space, ensemble, dre().settings)
            seconds = round(time.monotonic() - begun, 1)
            each = {n: agreement(prior, experience, held_out, n) for n in TRIALS}
            print(json.dumps({"steps": steps, "seconds": seconds, "rho": each}), flush=True)


if __name__ == "__main__":
    main()
