"""A small CASH problem in which what is good for one algorithm is good for the other."""

import numpy as np

from foretune.experience import Direction, Experience, Metric
from foretune.space import Encoded, Space
from foretune.space.algorithms import Algorithms

SPACE = Space.of(
    {
        "model": {
            "net": {"rate": (0.0, 1.0), "decay": (0.0, 1.0)},
            "trees": {"share": (0.0, 1.0)},
            "rule": {},
        }
    }
)
ALGORITHMS = Algorithms.of(SPACE)


def losses(configs: Encoded, optimum: float) -> np.ndarray:
    """Every algorithm is best where its flexibility, in its own terms, is `optimum`."""
    inputs, which = ALGORITHMS.inputs(configs), ALGORITHMS.algorithm_of(configs)
    of_net = 0.5 * (inputs[:, 0] + 1.0 - inputs[:, 1])
    of_trees = 1.0 - inputs[:, 0]
    gaps = [(of_net - optimum) ** 2, (of_trees - optimum) ** 2 + 0.02, np.full(len(configs), 0.3)]
    return np.choose(which, gaps)


def experience(optima: list[float], evaluations: int = 90) -> Experience:
    """One past task for each place of the optimum, which is also its only meta-feature."""
    configs = SPACE.sample(evaluations, seed=0)
    configs = configs.take(configs.first_occurrences())
    names = [f"task {number}" for number in range(len(optima))]
    return Experience.from_matrix(
        SPACE,
        configs,
        names,
        [Metric("loss", Direction.MIN)],
        {"loss": np.stack([losses(configs, optimum) for optimum in optima])},
        meta_features={
            name: {"optimum": optimum} for name, optimum in zip(names, optima, strict=True)
        },
    )
