"""A first portfolio within a fraction of a second. Forests would take many seconds.

Each past task gets two cheap models: a ridge regression on the hyperparameters and their squares,
and a mean over the nearest evaluations. Their average predicts what the best configurations of
every task would have given on every other task. The greedy portfolio of that table comes first.
"""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from foretune._base.arrays import Floats, Ints
from foretune.experience import Experience
from foretune.methods.past_data import PastTask, past_tasks
from foretune.numerics.greedy import greedy, mean
from foretune.numerics.kernels import squared_distances
from foretune.numerics.scores import midrank_scores
from foretune.space import Encoded

CANDIDATES_OF_EACH = 5
"""The number of best configurations of each task that the portfolio is chosen from."""
MOST_READ, BEST_READ = 256, 32
"""The most evaluations of a task that its model reads, and how many of them are the best ones."""
PENALTY = 1.0
"""The penalty of the ridge regression."""
NEIGHBOURS = 20
"""The share of a task's evaluations that count as near is 1 / NEIGHBOURS."""
THREADS = 2


def early_portfolio(experience: Experience, k: int) -> Encoded:
    """Return the k configurations to try first. It reads all tasks, so there should be few."""
    tasks = past_tasks(experience, midrank_scores)
    best = [task.rows[np.argsort(task.z, kind="stable")[:CANDIDATES_OF_EACH]] for task in tasks]
    candidates = experience.configs.take(np.unique(np.concatenate(best)))
    x = candidates.x
    # NumPy lets another thread run during most of this.
    with ThreadPoolExecutor(THREADS) as threads:
        rows = list(threads.map(lambda task: _predict(task, experience.configs, x), tasks))
    table = np.stack(rows)
    return candidates.take(greedy(table, k, mean).chosen)


def spread_by_rank(z: Floats, most: int = MOST_READ, best: int = BEST_READ) -> Ints:
    """Return at most `most` rows of the losses z (n,): the best, and others evenly over ranks."""
    order = np.argsort(z, kind="stable")
    if len(order) <= most:
        return order
    others = order[best:]
    evenly = np.linspace(0, len(others) - 1, most - best).astype(np.int64)
    return np.concatenate([order[:best], others[evenly]])


def _predict(task: PastTask, configs: Encoded, x: Floats) -> Floats:
    """Return (m,), the predicted losses of the task at x (m, W)."""
    read = spread_by_rank(task.z)
    known, z = configs.take(task.rows[read]).x, task.z[read]
    return 0.5 * (_by_ridge(known, z, x) + _by_neighbours(known, z, x))


def _by_ridge(known: Floats, z: Floats, x: Floats) -> Floats:
    inputs = _with_squares(known)
    gram = inputs.T @ inputs + PENALTY * np.eye(inputs.shape[1])
    predicted: Floats = _with_squares(x) @ np.linalg.solve(gram, inputs.T @ z)
    return predicted


def _with_squares(x: Floats) -> Floats:
    centred = x - 0.5
    return np.hstack([np.ones((len(x), 1)), centred, np.square(centred)])


def _by_neighbours(known: Floats, z: Floats, x: Floats) -> Floats:
    distances = squared_distances(x, known)
    place = min(max(5, len(z) // NEIGHBOURS), len(z) - 1)
    width = float(np.median(np.partition(distances, place, axis=1)[:, place])) + 1e-9
    # The nearest one keeps the weight 1, however far it is.
    weights = np.exp((distances.min(axis=1, keepdims=True) - distances) / width)
    predicted: Floats = weights @ z / weights.sum(axis=1)
    return predicted
