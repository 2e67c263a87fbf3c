"""Past tasks that tests learn from."""

import numpy as np

from foretune.experience import Direction, Experience, Metric
from foretune.space import Space

SPACE = Space.of({"x": (0.0, 1.0), "y": (0.0, 1.0)})


def relatives(tasks: int, space: Space, seed: int = 0) -> Experience:
    """Tasks whose best first hyperparameter lies near 0.8."""
    rng = np.random.default_rng(seed)
    configs = space.sample(tasks * 20, seed=seed)
    x = np.array([config[next(iter(config))] for config in configs.dicts()])
    centre = np.repeat(0.8 + 0.02 * rng.normal(size=tasks), 20)
    return Experience.build(
        space,
        [Metric("score", Direction.MAX)],
        [f"task-{i}" for i in range(tasks)],
        np.repeat(np.arange(tasks), 20),
        configs,
        np.arange(len(x)),
        -np.square(x - centre),
    )
