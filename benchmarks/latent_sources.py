"""Compares ways to choose the pre-trained embedding that suits a target, on source datasets.

Every source is a pseudo target once. The embeddings of its eighth of all sources are not used, and
ranking models learn from the other seven eighths. Its initial design is two random configurations
of each algorithm. The report has two numbers for every way of choosing. The first is Spearman's
correlation of the chosen bowl, or of the average of several, with all losses of the pseudo target.
The second is the share of configurations that are better than the best of the first picks in the
bowl's order, averaged over the first 20 picks.

    python benchmarks/latent_sources.py benchmarks/data/cash.parquet
"""

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np

from foretune.experience import Experience
from foretune.methods.latent.embedding import Bowls
from foretune.methods.latent.learn import LatentPrior
from foretune.methods.latent.sources import MetaFeatures, agreement, fit_ranker
from foretune.methods.past_data import PastTask, past_tasks
from foretune.numerics.normalise import share_of_better
from foretune.search import method
from foretune.space.algorithms import Algorithms

PARTS, PICKS, DESIGN = 8, 20, 2


def early_success(order: np.ndarray, z: np.ndarray) -> float:
    """Return the success of the first picks: close to the paper's searches, but mostly luck."""
    picks = np.argsort(order, kind="stable")[:PICKS]
    return -float(np.minimum.accumulate(z[picks]).mean())


def rank_sources(
    prior: LatentPrior,
    tasks: list[PastTask],
    experience: Experience,
    part: np.ndarray,
    score: Callable[[np.ndarray, np.ndarray], float],
) -> np.ndarray:
    """Return scores (S, S) of sources by ranking models that did not see the target's part."""
    found = np.full((len(tasks), len(tasks)), -np.inf)
    table, names = prior.meta_features.table, prior.meta_features.names
    for number in range(PARTS):
        kept = np.flatnonzero(part != number)
        known = MetaFeatures(names, table[kept])
        ranker = fit_ranker(
            [prior.embeddings[source] for source in kept],
            [tasks[source] for source in kept],
            experience.configs,
            known,
            seed=0,
            score=score,
        )
        for target in np.flatnonzero(part == number):
            described = dict(zip(names, table[target].tolist(), strict=True))
            found[target, kept] = ranker.scores(known.distances(described))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("experience")
    parser.add_argument("--prior", type=Path, help="of latent-cash, saved; else it is learnt")
    parser.add_argument("--split", default="families")
    arguments = parser.parse_args()
    experience = Experience.open(arguments.experience)
    experience = experience.only(list(experience.splits[arguments.split]["train"]))
    experience = experience.with_metrics([experience.metrics[0].name])
    learner = method("latent-cash")
    prior = learner.load(arguments.prior) if arguments.prior else learner.learn(experience, seed=0)
    assert isinstance(prior, LatentPrior)
    tasks = past_tasks(experience, share_of_better)
    rng = np.random.default_rng(0)
    part = rng.permutation(len(tasks)) % PARTS
    bowls = Bowls.of(prior.embeddings)(experience.configs).T
    by_luck = rank_sources(prior, tasks, experience, part, early_success)
    by_agreement = rank_sources(prior, tasks, experience, part, agreement)
    algorithms = Algorithms.of(experience.space)
    which = algorithms.algorithm_of(experience.configs)
    found: dict[str, list[tuple[float, float]]] = {}
    for target, task in enumerate(tasks):
        others = np.flatnonzero(part != part[target])
        z = np.full(len(which), np.nan)
        z[task.rows] = task.z
        design = np.concatenate(
            [rng.choice(task.rows[which[task.rows] == m], DESIGN) for m in np.unique(which)]
        )
        votes = np.full(len(tasks), -np.inf)
        votes[others] = [agreement(bowls[source, design], z[design]) for source in others]
        chosen = {
            "a source at random": rng.choice(others, 1),
            "ranking model taught by early success": np.argsort(-by_luck[target])[:1],
            "ranking model taught by agreement": np.argsort(-by_agreement[target])[:1],
            "eight of them": np.argsort(-by_agreement[target])[:8],
            "order of the initial design": np.argsort(-votes, kind="stable")[:1],
            "four of them": np.argsort(-votes, kind="stable")[:4],
            "eight of them by the design": np.argsort(-votes, kind="stable")[:8],
            "all": others,
        }
        for name, members in chosen.items():
            bowl = bowls[members].mean(axis=0)[task.rows]
            of_all = agreement(bowl, task.z), -early_success(bowl, task.z)
            found.setdefault(name, []).append(of_all)
    for name, values in found.items():
        of_all, reached = np.mean(values, axis=0)
        print(f"{name}: correlation {of_all:.2f}, share of better configurations {reached:.3f}")


if __name__ == "__main__":
    main()
