"""The rivals of the copula paper's Figure 5 that search architectures: R-EA and REINFORCE.

Both know no past tasks. The settings are those of NAS-Bench-201 (Dong and Yang, 2020): regularised
evolution with a population of 10 and tournaments of 3; REINFORCE with Adam at a rate of 0.01, a
softmax for each hyperparameter, and an exponential average as baseline (momentum 0.9). It prints
the improvement over exact random search (Table 2), with a 95% interval over seeds. BOHB needs
epochs, which the archive of the paper does not have.

Example: python benchmarks/copula_nas.py --experience nas201.parquet --trials 70 --seeds 20
"""

import argparse
from collections import deque
from collections.abc import Callable
from functools import partial

import numpy as np

from foretune.experience import Experience
from foretune.numerics import Floats, Ints
from foretune_lab.bench.metrics import (
    best_so_far,
    distance_to_minimum,
    improvement_over_random,
    random_search_minimum,
)
from foretune_lab.bench.pools import pool_of

POPULATION, TOURNAMENT = 10, 3
RATE, MOMENTUM = 0.01, 0.9
BETAS, EPSILON = (0.9, 0.999), 1e-8


def regularised_evolution(
    choices: Ints, loss: Callable[[Ints], float], trials: int, rng: np.random.Generator
) -> Floats:
    """Return the losses (trials,): the oldest of a population is replaced by a child of a winner.

    choices: (H,), the number of choices of each hyperparameter.
    """
    population: deque[tuple[float, Ints]] = deque(maxlen=POPULATION)
    losses = []
    while len(losses) < trials:
        child = rng.integers(choices)
        if len(losses) >= POPULATION:
            drawn = rng.choice(len(population), TOURNAMENT, replace=False).tolist()
            child = min((population[k] for k in drawn), key=lambda member: member[0])[1].copy()
            place = int(rng.integers(len(choices)))
            others = np.setdiff1d(np.arange(choices[place]), child[place])
            child[place] = rng.choice(others)
        losses.append(loss(child))
        population.append((losses[-1], child))
    return np.array(losses)


def reinforce(
    choices: Ints, loss: Callable[[Ints], float], trials: int, rng: np.random.Generator
) -> Floats:
    """Return the losses (trials,) of draws from a policy that climbs the expected accuracy."""
    logits = [1e-3 * rng.standard_normal(n) for n in choices]
    moments = [(np.zeros(n), np.zeros(n)) for n in choices]
    baseline, losses = 0.0, []
    for step in range(1, trials + 1):
        chances = [np.exp(each) / np.exp(each).sum() for each in logits]
        drawn = np.array([rng.choice(len(p), p=p) for p in chances])
        losses.append(loss(drawn))
        reward = -losses[-1]
        baseline = MOMENTUM * baseline + (1.0 - MOMENTUM) * reward
        for place, chance in enumerate(chances):
            slope = (reward - baseline) * (np.eye(len(chance))[drawn[place]] - chance)
            first, second = moments[place]
            first = BETAS[0] * first + (1.0 - BETAS[0]) * slope
            second = BETAS[1] * second + (1.0 - BETAS[1]) * np.square(slope)
            moments[place] = (first, second)
            scaled = first / (1.0 - BETAS[0] ** step)
            size = np.sqrt(second / (1.0 - BETAS[1] ** step)) + EPSILON
            logits[place] = logits[place] + RATE * scaled / size
    return np.array(losses)


def _look_up(known: dict[tuple[int, ...], float], config: Ints) -> float:
    return known[tuple(config.tolist())]


RIVALS = {"r-ea": regularised_evolution, "reinforce": reinforce}


def main() -> None:
    """Print the improvement of both, and its interval."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--experience", required=True)
    parser.add_argument("--trials", type=int, default=70)
    parser.add_argument("--seeds", type=int, default=20)
    options = parser.parse_args()
    whole = Experience.open(options.experience)
    experience = whole.with_metrics([whole.metrics[0].name]).compact()
    choices = np.array([len(each.choices) for each in experience.space.parameters])
    for name, search in RIVALS.items():
        gains = []
        for task in experience.tasks:
            pool = pool_of(experience, task)
            rows = map(tuple, pool.configs.values.astype(int).tolist())
            known = dict(zip(rows, pool.losses[:, 0].tolist(), strict=True))
            by_chance = random_search_minimum(pool.losses[:, 0], options.trials)
            at_random = distance_to_minimum(by_chance, pool.losses[:, 0])
            for seed in range(options.seeds):
                rng = np.random.default_rng([seed, len(gains)])
                found = search(choices, partial(_look_up, known), options.trials, rng)
                distance = distance_to_minimum(best_so_far(found), pool.losses[:, 0])
                gains.append(improvement_over_random(distance, at_random))
        by_seed = np.reshape(gains, (len(experience.tasks), options.seeds)).mean(axis=0)
        half = 1.96 * by_seed.std(ddof=1) / np.sqrt(options.seeds)
        print(f"{name}: {by_seed.mean():.2f} ± {half:.2f}")


if __name__ == "__main__":
    main()
