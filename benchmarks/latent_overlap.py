"""Measures how much adversarial regularisation makes algorithms overlap in the latent space.

It uses several sources of an experience and several strengths beta. One number says how well a
classifier tells two algorithms apart by their latent coordinates (cross-validated, balanced,
averaged over all pairs of algorithms; 0.5 is chance). The other one says how well |u|² still orders
the losses of the source.

    python benchmarks/latent_overlap.py EXPERIENCE.parquet --sources 5
"""

import argparse
from itertools import combinations

import numpy as np
from scipy.stats import spearmanr
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier

from foretune.experience import Experience
from foretune.methods.latent.learn import pretrain
from foretune.methods.past_data import past_tasks
from foretune.numerics.normalise import share_of_better
from foretune.space.algorithms import Algorithms

BETAS = (0.0, 1e-4, 1e-2)
LEAST = 10
"""The least evaluations of an algorithm that takes part."""


def separability(u: np.ndarray, which: np.ndarray) -> float:
    found = []
    present = np.flatnonzero(np.bincount(which) >= LEAST)
    for pair in combinations(present.tolist(), 2):
        rows = np.isin(which, pair)
        classifier = KNeighborsClassifier(5, weights="distance")
        scores = cross_val_score(
            classifier, u[rows], which[rows], cv=5, scoring="balanced_accuracy"
        )
        found.append(float(scores.mean()))
    return float(np.mean(found))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("experience")
    parser.add_argument("--sources", type=int, default=5)
    arguments = parser.parse_args()
    experience = Experience.open(arguments.experience)
    algorithms = Algorithms.of(experience.space)
    tasks = past_tasks(experience, share_of_better)
    drawn = np.random.default_rng(0).permutation(len(tasks))[: arguments.sources].tolist()
    for beta in BETAS:
        apart, ordered = [], []
        for place in drawn:
            configs = experience.configs.take(tasks[place].rows)
            gaps = tasks[place].z
            embedding = pretrain(algorithms, configs, gaps, seed=place, beta=beta)
            u = embedding.place(configs)
            apart.append(separability(u, algorithms.algorithm_of(configs)))
            ordered.append(float(spearmanr(np.square(u).sum(axis=1), gaps).statistic))
        print(
            f"beta {beta:g}: pairs told apart with accuracy {np.mean(apart):.3f}, "
            f"|u|² orders losses with Spearman {np.mean(ordered):.3f} ({len(drawn)} sources)"
        )


if __name__ == "__main__":
    main()
