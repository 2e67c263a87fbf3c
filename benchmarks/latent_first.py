"""Does the ranking model choose better sources than chance? The paper's Figure 7a, all else equal.

All arms use the same pre-trained embeddings, of all past tasks of a split. `first` takes the first
source of the ranking model, `random` a source drawn for each task and seed, and `panel` is
`latent-cash` itself. `first:S` takes the first source of a ranking model that was taught another
score: `spearman`, `early` (success of the first twenty picks) or `five` (best of five of the first
thirty). Pre-training takes minutes: give the same --prior again to use it.

Example: python benchmarks/latent_first.py --experience benchmarks/data/cash.parquet \
    --prior latent.prior --seeds 0,1,2,3,4 --trials 100 --out first.jsonl
"""

import argparse
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from zlib import crc32

import numpy as np

from foretune.experience import Experience
from foretune.methods import Target, past_tasks
from foretune.methods.latent.learn import LatentPrior
from foretune.methods.latent.sources import agreement, fit_ranker
from foretune.numerics import Floats, share_of_better
from foretune.search import METHODS, Optimizer, Told
from foretune_lab.bench.pools import pool_of

TOP, PICKS, BEST_OF, DRAWS = 30, 20, 5, 200


def early_success(bowl: Floats, losses: Floats) -> float:
    """Return the share that is worse than the best of the first picks, averaged over them."""
    picks = np.argsort(bowl, kind="stable")[:PICKS]
    return -float(np.minimum.accumulate(losses[picks]).mean())


def best_of_five(bowl: Floats, losses: Floats) -> float:
    """Return the expected best of five random ones of the thirty that the bowl puts first."""
    top = losses[np.argsort(bowl, kind="stable")[:TOP]]
    rng = np.random.default_rng(0)
    drawn = rng.permuted(np.tile(top, (DRAWS, 1)), axis=1)[:, :BEST_OF]
    return -float(drawn.min(axis=1).mean())


SCORES: dict[str, Callable[[Floats, Floats], float]] = {
    "spearman": agreement,
    "early": early_success,
    "five": best_of_five,
}


def arm_prior(arm: str, prior: LatentPrior, past: Experience, seed: tuple[int, int]) -> LatentPrior:
    """Return the prior of an arm for one task and seed."""
    if arm == "panel":
        return prior
    if arm == "random":
        number = int(np.random.default_rng(seed).integers(len(prior.embeddings)))
        return replace(prior, embeddings=(prior.embeddings[number],))
    _, _, score = arm.partition(":")
    if not score:
        return replace(prior, one_source=True)
    tasks = past_tasks(past, share_of_better)
    ranker = fit_ranker(
        prior.embeddings, tasks, past.configs, prior.meta_features, seed=0, score=SCORES[score]
    )
    return replace(prior, one_source=True, ranker=ranker)


def play(prior: LatentPrior, experience: Experience, task: str, seed: int, trials: int) -> Floats:
    """Return the best loss after each trial, from 0 (the pool's best) to 1 (its median)."""
    pool = pool_of(experience, task)
    described = experience.meta_features[task]
    metric = experience.metrics[0].name
    target = Target(experience.space, (metric,), pool.configs, described)
    optimizer = Optimizer(target, METHODS["latent-cash"], prior, seed=seed)
    for _ in range(min(trials, len(pool.configs))):
        [suggestion] = optimizer.ask()
        assert suggestion.pool_index is not None
        loss = float(pool.losses[suggestion.pool_index, 0])
        optimizer.tell([Told((loss,), id=suggestion.id)])
    known = pool.losses[np.isfinite(pool.losses[:, 0]), 0]
    low, middle = known.min(), np.median(known)
    told = np.where(np.isfinite(optimizer.told.losses[:, 0]), optimizer.told.losses[:, 0], np.inf)
    best: Floats = (np.minimum.accumulate(told) - low) / (middle - low)
    return best


def main() -> None:
    """Learn or read the prior, play the arms, and write a line of JSON for each run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--experience", required=True)
    parser.add_argument("--split", default="families")
    parser.add_argument("--prior", type=Path, required=True)
    parser.add_argument("--arms", default="first,random,panel")
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    whole = Experience.open(options.experience)
    experience = whole.with_metrics([whole.metrics[0].name]).compact()
    split = experience.splits[options.split]
    past = experience.only([*split["train"], *split.get("validation", ())])
    learner = METHODS["latent-cash"].learner()
    if not options.prior.exists():
        METHODS["latent-cash"].learn(past, seed=0).save(options.prior)
    prior = learner.load(options.prior)
    assert isinstance(prior, LatentPrior)
    if options.out is None:
        return
    with options.out.open("a") as out:
        for arm in options.arms.split(","):
            for seed in map(int, options.seeds.split(",")):
                for task in split["test"]:
                    one = arm_prior(arm, prior, past, (seed, crc32(task.encode())))
                    best = play(one, experience, task, seed, options.trials)
                    row = {"arm": arm, "seed": seed, "task": task, "best": best.round(5).tolist()}
                    out.write(json.dumps(row) + "\n")
                    out.flush()


if __name__ == "__main__":
    main()
