"""Small experiences whose answers are known, and how good a method is on related tasks."""

from functools import cache

import numpy as np

from foretune.experience import Direction, Experience, Metric
from foretune.methods.contracts import Prior
from foretune.search import Method, Optimizer, Told
from foretune.space import Space
from foretune.testing import problem

SPACE = Space.of({"width": (0.0, 10.0), "depth": (1, 9), "kind": ["plain", "fancy", "odd"]})
NAN = float("nan")


def small_experience() -> Experience:
    """Five configurations on four tasks; the best are rows 1, 3, 1, and none at all."""
    configs = SPACE.encode(
        [
            {"width": 1.0, "depth": 1, "kind": "plain"},
            {"width": 2.0, "depth": 3, "kind": "odd"},
            {"width": 9.0, "depth": 9, "kind": "fancy"},
            {"width": 5.0, "depth": 2, "kind": "plain"},
            {"width": 8.0, "depth": 5, "kind": "fancy"},
        ]
    )
    losses = np.array(
        [
            [3.0, 1.0, 9.0, 2.0, 5.0],
            [NAN, 4.0, 3.0, 2.0, 5.0],
            [70.0, 10.0, NAN, 60.0, 50.0],
            [NAN, NAN, NAN, NAN, NAN],
        ]
    )
    failed = np.zeros((4, 5), dtype=bool)
    failed[3] = True
    metrics = [Metric("loss", Direction.MIN)]
    tasks = ["a", "b", "c", "hopeless"]
    return Experience.from_matrix(SPACE, configs, tasks, metrics, {"loss": losses}, failed=failed)


@cache
def least_loss() -> float:
    """The least loss of the flat problem, nearly."""
    flat = problem("flat")
    return float(flat.losses(flat.space.sample(5_000, seed=0)).min())


def mean_regret(method: Method, prior: Prior, *, trials: int, seeds: int) -> float:
    """How far the best of some trials on the flat problem is from the optimum, over seeds."""
    flat, lowest = problem("flat"), []
    for seed in range(seeds):
        optimizer = Optimizer(flat.target(), method, prior, seed=seed)
        for _ in range(trials):
            suggestion = optimizer.ask()[0]
            loss = flat.losses(flat.space.encode([suggestion.config]))[0]
            optimizer.tell([Told(tuple(loss), id=suggestion.id)])
        lowest.append(float(optimizer.told.losses.min() - least_loss()))
    return float(np.mean(lowest))
