"""The measures of the papers, as pure functions of arrays of minimised losses.

A failed trial is NaN and never counts as a value. The pool's worst loss replaces it if a run has no
success yet, or if a random draw would meet a failed configuration. Therefore methods and the exact
random search are judged in the same way.
"""

from dataclasses import dataclass

import numpy as np
from scipy import stats

from foretune.numerics import Floats, pareto_front

NEXT_TO_IMPOSSIBLE = 1e-200


def best_so_far(values: Floats) -> Floats:
    """Return the lowest loss up to each trial along the last axis; NaN before the first success."""
    best: Floats = np.fmin.accumulate(values, axis=-1)
    return best


def mean_over_seeds(values: Floats) -> Floats:
    """Return the mean over seeds of (methods, tasks, seeds, ...), in any order of values.

    A sum of floats depends on their order. Without this, methods that met the same losses with
    other seeds would not tie.
    """
    mean: Floats = np.sort(values, axis=2).mean(axis=2)
    return mean


def random_search_minimum(pool_losses: Floats, trials: int) -> Floats:
    """Return the exact expected minimum after 1..`trials` draws without replacement: (trials,).

    With sorted losses, the minimum after t draws exceeds the k-th of n exactly if all draws come
    from the n - k others. The sum over the gaps between neighbours, each weighted with that
    probability, adds only non-negative terms, and ties are gaps of zero.
    """
    losses = np.sort(_failures_as_worst(pool_losses))
    n = len(losses)
    gaps, below = np.diff(losses), np.arange(1, n)
    beyond = np.ones(n - 1)  # The probability that all draws so far rank above `below`.
    expected = np.full(trials, losses[0])
    for drawn in range(min(trials, n)):
        beyond *= np.maximum(n - below - drawn, 0) / (n - drawn)
        # A tiny probability adds nothing, and numbers that small are slow to compute with.
        likely = int(np.count_nonzero(beyond > NEXT_TO_IMPOSSIBLE))
        beyond, below, gaps = beyond[:likely], below[:likely], gaps[:likely]
        expected[drawn] += gaps @ beyond
    return expected


def distance_to_minimum(best: Floats, pool_losses: Floats) -> Floats:
    """Return DTM, the distance of `best` to the pool's minimum as a share of the pool's range.

    HPO-B calls it normalised regret. The shape of `best` is kept. NaN, which means no success yet,
    has distance 1. On a constant pool every configuration is optimal, and the distance is 0.
    """
    low, high = np.nanmin(pool_losses), np.nanmax(pool_losses)
    if low == high:
        return np.zeros_like(best)
    return np.where(np.isnan(best), 1.0, (best - low) / (high - low))


def average_distance_to_minimum(distances: Floats) -> Floats:
    """Return ADTM, the mean over tasks of (tasks, ..., trials) distances."""
    mean: Floats = distances.mean(axis=0)
    return mean


def improvement_over_random(distance: Floats, distance_random: Floats) -> Floats:
    """Return the mean over trials, the last axis, of (DTM_RS - DTM) / DTM_RS.

    `distance` is already averaged over replicates. When random search is certain to have found the
    minimum, there is no share to win, and a trial adds 0. This also holds for an optimiser that
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
    """Return mean ranks of the methods over seeds, from `best` (methods, tasks, seeds, trials).

    Rank 1 is the lowest loss, ties share their mean rank, and no success yet ranks last. The result
    is (methods, tasks, trials). If there is only one task, its seeds count as tasks.
    """
    ranks: Floats = stats.rankdata(np.where(np.isnan(best), np.inf, best), axis=0)
    alone = ranks.shape[1] == 1 and seeds_as_tasks
    return ranks[:, 0] if alone else ranks.mean(axis=2)


def rank_curves(ranks: Floats) -> MeanCurves:
    """Return average ranks over tasks of (methods, tasks, trials), with Student's t interval.

    Seeds of one task are not independent of each other, so a task is one sample. The band stays
    within the possible ranks. For one sample it is NaN.
    """
    mean = ranks.mean(axis=1)
    half = half_width(ranks)
    return MeanCurves(mean, np.maximum(mean - half, 1.0), np.minimum(mean + half, len(ranks)))


def half_width(samples: Floats) -> Floats:
    """Return half of Student's 95% interval for the mean over axis 1; NaN for one sample."""
    n = samples.shape[1]
    if n == 1:
        return np.full(np.delete(samples.shape, 1), np.nan)
    spread: Floats = samples.std(axis=1, ddof=1) * stats.t.ppf(0.975, n - 1) / np.sqrt(n)
    return spread


def bootstrap_band(samples: Floats, *, draws: int = 1000, seed: int = 0) -> MeanCurves:
    """Return the mean over tasks of (methods, tasks, trials), with the bootstrap's 95% interval.

    Unlike Student's interval it never reaches below the lowest sample, so it can be shown on a
    logarithmic axis.
    """
    rng = np.random.default_rng(seed)
    n = samples.shape[1]
    shares = rng.multinomial(n, np.full(n, 1.0 / n), size=draws) / n
    means = np.einsum("dt,mtn->dmn", shares, samples, optimize=True)
    low, high = np.quantile(means, [0.025, 0.975], axis=0)
    return MeanCurves(samples.mean(axis=1), low, high)


def hypervolume(points: Floats, reference: Floats) -> float:
    """Return the exact volume dominated by the (n, objectives) points, up to the reference point.

    It slices the volume along the last objective and recurses, which is fast for 2 objectives and
    acceptable for 3 or 4.
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
    """Return the difference to the hypervolume of the pool's front after each trial: (trials,).

    `history` (trials, objectives) holds NaN rows for failures. The reference point is the maximum
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
    """Return the pool; its failed configurations get its worst loss."""
    return np.where(np.isnan(pool_losses), np.nanmax(pool_losses), pool_losses)
