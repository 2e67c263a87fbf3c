"""The metrics applied to the runs of one suite."""

import numpy as np

from foretune.numerics import Floats
from foretune_lab.bench.metrics import (
    distance_to_minimum,
    hypervolume,
    hypervolume_error,
    improvement_over_random,
    mean_over_seeds,
)
from foretune_lab.bench.results import Curves


def distances(curves: Curves) -> Floats:
    """Return DTM of every run: (methods, tasks, seeds, trials)."""
    best = curves.best
    by_task = [
        distance_to_minimum(best[:, task], np.array([pool.low, pool.high]))
        for task, pool in enumerate(curves.pools)
    ]
    return np.stack(by_task, axis=1)


def random_distances(curves: Curves) -> Floats:
    """Return DTM of exact random search: (tasks, trials)."""
    by_task = [
        distance_to_minimum(pool.random[: curves.trials], np.array([pool.low, pool.high]))
        for pool in curves.pools
    ]
    return np.stack(by_task)


def improvements(curves: Curves) -> Floats:
    """Return the improvement over exact random search on each task: (methods, tasks).

    Averaging the distances of the replicates equals taking the distance of their average, as in the
    definition, but a distance of exactly 0 stays free of rounding.
    """
    return improvement_over_random(mean_over_seeds(distances(curves)), random_distances(curves))


def errors(curves: Curves) -> Floats | None:
    """Return the best of every run as a non-negative error; None if the metric cannot be one.

    Losses that are never negative are errors already. For a maximised score between 0 and 1, such
    as accuracy, the error is the difference to 1.
    """
    worst = np.array([pool.high for pool in curves.pools])[None, :, None, None]
    best = np.where(np.isnan(curves.best), worst, curves.best)
    lowest = min(pool.low for pool in curves.pools)
    if lowest >= 0.0:
        return best
    if curves.settings.directions[0] == "max" and lowest >= -1.0 and worst.max() <= 0.0:
        return 1.0 + best
    return None


def missing_hypervolume(curves: Curves) -> Floats:
    """Return the hypervolume error as a share of its pool's: (methods, tasks, seeds, trials).

    The share makes tasks comparable, as DTM does for one objective. After the pool is used up, the
    error stays.
    """
    shares = np.empty(curves.values.shape[:-1])
    for task, pool in enumerate(curves.pools):
        whole = hypervolume(pool.front, pool.reference)
        for run in np.ndindex(len(curves.methods), len(curves.seeds)):
            history = curves.values[run[0], task, run[1]]
            error = hypervolume_error(history, pool.front, pool.reference)
            shares[run[0], task, run[1]] = error / whole if whole > 0.0 else 0.0
    return shares


def scores(curves: Curves) -> Floats:
    """Return what ranks compare, lower is better: the distance or the hypervolume error."""
    return distances(curves) if len(curves.objectives) == 1 else missing_hypervolume(curves)
