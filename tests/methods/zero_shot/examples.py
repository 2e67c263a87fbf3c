"""Small tables with a known best portfolio."""

import numpy as np

from foretune.experience import Direction, Experience, Metric
from foretune.methods.zero_shot.build import BUILDERS
from foretune.methods.zero_shot.builder import spend_budget
from foretune.methods.zero_shot.jobs import RecordedJobs
from foretune.numerics.greedy import Picks, mean
from foretune.space import Encoded, Space

SPACE = Space.of({"where": (0.0, 1.0), "kind": ["left", "right"]})


def candidates(n: int = 60) -> Encoded:
    drawn = SPACE.sample(n, seed=3)
    return drawn.take(drawn.first_occurrences())


def bowls(configs: Encoded, tasks: int = 30, seed: int = 0) -> np.ndarray:
    """(D, N): half of the tasks like one corner of the space, half another."""
    rng = np.random.default_rng(seed)
    where, kind = (configs.values[:, SPACE.names.index(name)] for name in ("where", "kind"))
    likes_right = np.arange(tasks) % 2 == 1
    centre = np.where(likes_right, 0.8, 0.2) + rng.normal(0.0, 0.03, tasks)
    distance = np.abs(where - centre[:, None])
    return 0.1 + 0.5 * distance + 0.3 * (kind != likes_right[:, None])


def jobs_of(losses: np.ndarray, configs: Encoded, budget: int | None = None) -> RecordedJobs:
    return RecordedJobs(len(losses), configs, lambda t, c: losses[t, c], budget=budget)


def experience_of(losses: np.ndarray, configs: Encoded, *, name: str = "error") -> Experience:
    direction = Direction.MAX if name == "accuracy" else Direction.MIN
    tasks = [f"task {number}" for number in range(len(losses))]
    metrics = [Metric(name, direction)]
    return Experience.from_matrix(SPACE, configs, tasks, metrics, {name: losses})


def unshared_experience(tasks: int = 6, each: int = 40) -> Experience:
    """Every task has tried configurations of its own."""
    configs = SPACE.sample(tasks * each, seed=5)
    losses = bowls(configs, tasks)
    own = np.repeat(np.arange(tasks), each) == np.arange(tasks)[:, None]
    return experience_of(np.where(own, losses, np.nan), configs)


def built(name: str, jobs: RecordedJobs, k: int, aggregate=mean, *, seed: int = 0) -> Picks:
    """Spend the budget with a builder."""
    return spend_budget(BUILDERS[name](jobs, k, aggregate, seed=seed), jobs)
