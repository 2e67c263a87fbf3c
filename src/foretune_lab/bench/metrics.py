"""The measures of the papers, as pure functions of arrays of minimised losses.

A failed trial is NaN and never counts as a value. Where a run has no success yet, or a random
draw would meet a failed configuration, the pool's worst loss stands in, so that methods and the
exact random search are judged alike.
"""

from dataclasses import dataclass

import numpy as np
from scipy import stats

from foretune.numerics import Floats, pareto_front

NEXT_TO_IMPOSSIBLE = 1e-200


def best_so_far(values: Floats) -> Floats:
    """The lowest loss up to each trial along the last axis; NaN before the first success."""
    best: Floats = np.fmin.accumulate(values, axis=-1)
    return best


def mean_over_seeds(values: Floats) -> Floats:
    """The mean over seeds of (methods, tasks, seeds, ...), equal for equal values in any order.

    A sum of floats depends on their order, and methods that met the same losses with other seeds
    would not tie.
    """
    mean: Floats = np.sort(values, axis=2).mean(axis=2)
    return mean


def random_search_minimum(pool_losses: Floats, trials: int) -> Floats:
    """The exact expected minimum after 1..`trials` draws without replacement: (trials,).

    With the losses sorted, the minimum after t draws exceeds the k-th of n exactly when all draws
    come from the n - k others. Summing the gaps between neighbours, each weighted with that
    probability, adds only non-negative terms and makes ties gaps of zero.
    """
    losses = np.sort(_failures_as_worst(pool_losses))
    n = len(losses)
    gaps, below = np.diff(losses), np.arange(1, n)
    beyond = np.ones(n - 1)  # the probability that all draws so far rank above `below`
    expected = np.full(trials, losses[0])
    for drawn in range(min(trials, n)):
        beyond *= np.maximum(n - below - drawn, 0) / (n - drawn)
        # What is next to impossible adds nothing, and numbers that small are slow to reckon with.
        likely = int(np.count_nonzero(beyond > NEXT_TO_IMPOSSIBLE))
        beyond, below, gaps = beyond[:likely], below[:likely], gaps[:likely]
        expected[drawn] += gaps @ beyond
    return expected


def distance_to_minimum(best: Floats, pool_losses: Floats) -> Floats:
    """DTM: how far `best` is from the pool's minimum, as a share of the pool's range.

    HPO-B calls it normalised regret. Any shape of `best` is kept. NaN, which is no success yet, is
    at distance 1; on a constant pool every configuration is optimal and the distance is 0.
    """
    low, high = np.nanmin(pool_losses), np.nanmax(pool_losses)
    if low == high:
        return np.zeros_like(best)
    return np.where(np.isnan(best), 1.0, (best - low) / (high - low))


def average_distance_to_minimum(distances: Floats) -> Floats:
    """ADTM: the mean over tasks of (tasks, ..., trials) distances."""
    mean: Floats = distances.mean(axis=0)
    return mean


def improvement_over_random(distance: Floats, distance_random: Floats) -> Floats:
    """The mean over trials, the last axis, of (DTM_RS - DTM) / DTM_RS.

    `distance` is already averaged over replicates. Once random search is certain to have found
    the minimum there is no share to win, and a trial adds 0: also one of an optimiser that
    searches more than the pool and has not found it.
    """
    share = np.zeros(np.broadcast_shapes(np.shape(distance), np.shape(distance_random)))
    gain = np.subtract(distance_random, distance)
    np.divide(gain, distance_random, out=share, where=np.greater(distance_random, 0.0))
    mean: Floats = share.mean(axis=-1)
    return mean


@dataclass(frozen=True, slots=True)
class MeanCurves:
    """Means with their 95% confidence bands, each (methods, trials)."""

    mean: Floats
    low: Floats
    high: Floats


def ranks_by_task(best: Floats, *, seeds_as_tasks: bool = True) -> Floats:
    """Mean ranks of the methods over seeds, from `best` (methods, tasks, seeds, trials).

    Rank 1 is the lowest loss, ties share their mean rank, no success yet ranks last. The result
    is (methods, tasks, trials); where there is one task only, its seeds stand in for tasks.
    """
    ranks: Floats = stats.rankdata(np.where(np.isnan(best), np.inf, best), axis=0)
    alone = ranks.shape[1] == 1 and seeds_as_tasks
    return ranks[:, 0] if alone else ranks.mean(axis=2)


def rank_curves(ranks: Floats) -> MeanCurves:
    """Average ranks over tasks of (methods, tasks, trials), with Student's t interval.

    Seeds of one task are not independent of each other, so a task is one sample. The band stays
    among the ranks that there are; of one sample it is NaN.
    """
    mean = ranks.mean(axis=1)
    half = half_width(ranks)
    return MeanCurves(mean, np.maximum(mean - half, 1.0), np.minimum(mean + half, len(ranks)))


def half_width(samples: Floats) -> Floats:
    """Half of Student's 95% interval for the mean over axis 1; NaN of one sample."""
    n = samples.shape[1]
    if n == 1:
        return np.full(np.delete(samples.shape, 1), np.nan)
    spread: Floats = samples.std(axis=1, ddof=1) * stats.t.ppf(0.975, n - 1) / np.sqrt(n)
    return spread


def bootstrap_band(samples: Floats, *, draws: int = 1000, seed: int = 0) -> MeanCurves:
    """The mean over tasks of (methods, tasks, trials), with the bootstrap's 95% interval.

    Unlike Student's interval it never reaches below the lowest sample, so that it can be shown on
    a logarithmic axis.
    """
    rng = np.random.default_rng(seed)
    n = samples.shape[1]
    shares = rng.multinomial(n, np.full(n, 1.0 / n), size=draws) / n
    means = np.einsum("dt,mtn->dmn", shares, samples, optimize=True)
    low, high = np.quantile(means, [0.025, 0.975], axis=0)
    return MeanCurves(samples.mean(axis=1), low, high)


def hypervolume(points: Floats, reference: Floats) -> float:
    """The exact volume dominated by the (n, objectives) points, up to the reference point.

    Slices the volume along the last objective and recurses, which is fast for 2 objectives and
    fair for 3 or 4.
    """
    inside = points[(points < reference).all(axis=1)]
    if len(inside) == 0:
        return 0.0
    if inside.shape[1] == 1:
        return float(reference[0] - inside.min())
    inside = inside[pareto_front(inside)]
    inside = inside[np.argsort(inside[:, -1])]
    if inside.shape[1] == 2:
        widths = reference[0] - np.minimum.accumulate(inside[:, 0])
        return float(widths @ np.diff(np.append(inside[:, 1], reference[1])))
    depths = np.diff(np.append(inside[:, -1], reference[-1]))
    slices = [hypervolume(inside[: i + 1, :-1], reference[:-1]) for i in range(len(inside))]
    return float(np.asarray(slices) @ depths)


def hypervolume_error(history: Floats, pool_front: Floats, reference: Floats) -> Floats:
    """The hypervolume still missing to that of the pool's front after each trial: (trials,).

    `history` (trials, objectives) holds NaN rows for failures; the reference point is the maximum
    of each objective over the pool.
    """
    whole = hypervolume(pool_front, reference)
    errors = np.empty(len(history))
    front = np.empty((0, history.shape[1]))
    covered = 0.0
    for t, point in enumerate(history):
        if np.isfinite(point).all() and not (front <= point).all(axis=1).any():
            front = np.vstack([front[~(front >= point).all(axis=1)], point])
            covered = hypervolume(front, reference)
        errors[t] = max(whole - covered, 0.0)
    return errors


def _failures_as_worst(pool_losses: Floats) -> Floats:
    """The pool with its failed configurations at its worst loss."""
    return np.where(np.isnan(pool_losses), np.nanmax(pool_losses), pool_losses)
