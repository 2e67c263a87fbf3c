"""The surrogate baseline (section 7): one random forest a task predicts what was not evaluated."""

import numpy as np

from foretune.arrays import Ints
from foretune.methods.zero_shot.jobs import Jobs
from foretune.numerics.forests import grown
from foretune.numerics.greedy import Aggregate, Losses, Picks, greedy

MOST_FORESTS = 100
"""Where tasks share no configurations, so many of them stand for all, unless this way is asked for:
each task needs a forest that predicts what all others have tried."""
BEST_PREDICTED = 200
"""Where tasks share no configurations, so many of the best of each may enter a portfolio."""
TREES = 100
LARGEST_FIT = 2000
"""A forest learns from at most so many evaluations of its task."""


def surrogate(jobs: Jobs, k: int, aggregate: Aggregate, *, seed: int) -> Picks:
    """Evaluate random candidates, others on each task, and pick k by the predicted losses."""
    rng = np.random.default_rng(seed)
    for task, count in enumerate(_shares(jobs, rng)):
        drawn = rng.choice(np.flatnonzero(jobs.possible[task]), count, replace=False)
        jobs.run(np.full(count, task), drawn)
    columns = _columns(jobs)
    picks = greedy(completed(jobs, columns, rng), k, aggregate)
    return Picks(columns[picks.chosen], picks.losses)


def _shares(jobs: Jobs, rng: np.random.Generator) -> list[int]:
    """How many jobs each task gets: equally many, as far as it has them."""
    available = jobs.possible.sum(axis=1)
    shares = np.zeros(len(available), dtype=np.int64)
    while (left := jobs.left - int(shares.sum())) > 0:
        open_tasks = rng.permutation(np.flatnonzero(shares < available))[:left]
        each = left // len(open_tasks)
        shares[open_tasks] = np.minimum(shares[open_tasks] + each, available[open_tasks])
    return [int(share) for share in shares]


def _columns(jobs: Jobs) -> Ints:
    """The candidates to choose among: all, or where nothing is shared the best of each task."""
    if jobs.possible.all():
        return np.arange(len(jobs.candidates))
    # NaN sort last, so that what was not evaluated comes only where a task has nothing else.
    best = np.argsort(jobs.losses, axis=1)[:, :BEST_PREDICTED]
    return np.unique(best[~np.isnan(np.take_along_axis(jobs.losses, best, axis=1))])


def completed(jobs: Jobs, columns: Ints, rng: np.random.Generator) -> Losses:
    """The losses in these columns, predicted where not evaluated; NaN for tasks without any."""
    from sklearn.tree import DecisionTreeRegressor

    codes = jobs.candidates.codes.astype(np.float32)
    every, tasks = np.arange(len(codes)), len(jobs.possible)
    table = np.full((tasks, len(columns)), np.nan, dtype=np.float32)
    for task in range(tasks):
        known = jobs.known(np.array([task]), every)[0]
        rows = rng.permutation(np.flatnonzero(~np.isnan(known)))[:LARGEST_FIT]
        if len(rows):
            seed = int(rng.integers(2**31))
            trees = grown(DecisionTreeRegressor(), codes[rows], known[rows], trees=TREES, seed=seed)
            each = [tree.predict(codes[columns])[:, 0] for tree in trees]
            table[task] = np.where(np.isnan(known[columns]), np.mean(each, axis=0), known[columns])
    return table
