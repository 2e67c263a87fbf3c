"""Whether differences between methods over many tasks are more than chance.

Friedman's test asks whether the methods differ at all. Wilcoxon's signed-rank tests with Holm's
correction ask which pairs differ. This is the protocol behind critical-difference diagrams.
"""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy import stats

from foretune.errors import UsageError
from foretune.numerics import Floats

SIGNIFICANCE = 0.05
LARGEST_EXACT = 100
"""With more tasks without a tie than this, the sum of the signed ranks is close to normal."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Methods compared over tasks, the best mean rank first."""

    methods: tuple[str, ...]
    ranks: Floats
    """(methods,) mean ranks over tasks."""
    friedman_p: float
    """NaN for two methods, because the Wilcoxon test is enough for them."""
    p_values: Floats
    """(methods, methods) Holm-corrected Wilcoxon p-values, 1 on the diagonal."""
    groups: tuple[tuple[str, ...], ...]
    """Neighbours in rank that cannot be told apart: the bars of the diagram."""


def compare(methods: tuple[str, ...], losses: Floats, ranks: Floats | None = None) -> Comparison:
    """Compare methods by their losses (methods, tasks), lower is better, NaN worst.

    ranks: (methods,), the mean ranks that order them, if they come from more than these losses, for
        example from every seed. Default: the ranks of the losses.
    """
    if len(methods) < 2 or losses.shape[1] < 2:
        raise UsageError(
            "a statistical comparison needs at least 2 methods and 2 tasks, but got "
            f"{len(methods)} and {losses.shape[1]}: add results of further runs",
            rule="too-few-to-compare",
            field="losses",
            value=losses.shape,
        )
    worst = np.nanmax(losses) if np.isfinite(losses).any() else 0.0
    filled = np.where(np.isnan(losses), worst, losses)
    if ranks is None:
        ranks = stats.rankdata(filled, axis=0).mean(axis=1)
    order = np.argsort(ranks, kind="stable")
    names = tuple(methods[i] for i in order)
    friedman_p = _friedman(filled)
    p_values = _wilcoxon_holm(filled[order])
    # Demšar's protocol: pairs are looked at only when the methods differ at all.
    alike = np.isfinite(friedman_p) and friedman_p >= SIGNIFICANCE
    groups = (names,) if alike else _indistinct_neighbours(names, p_values)
    return Comparison(names, ranks[order], friedman_p, p_values, groups)


def _friedman(losses: Floats) -> float:
    """Return the p-value of Friedman's test; 1 if all methods tie everywhere."""
    if len(losses) < 3:
        return float("nan")
    if (losses == losses[0]).all():
        return 1.0
    return float(stats.friedmanchisquare(*losses).pvalue)


def _wilcoxon_holm(losses: Floats) -> Floats:
    """Return Holm-corrected p-values of all pairs of rows; methods that always tie get 1."""
    pairs = list(combinations(range(len(losses)), 2))
    corrected = holm(np.array([wilcoxon_p(losses[i] - losses[j]) for i, j in pairs]))
    p_values = np.ones((len(losses), len(losses)))
    for (i, j), p in zip(pairs, corrected.tolist(), strict=True):
        p_values[i, j] = p_values[j, i] = p
    return p_values


def wilcoxon_p(differences: Floats) -> float:
    """Return the two-sided p-value of Wilcoxon's signed-rank test; ties count as in Pratt's way.

    A tie takes its rank and has no sign. Every other sign is a coin, so the probabilities are those
    of coins that decide which ranks are added up. Only the coins matter for whether their sum is
    nearly normal: a few of them among many ties are still counted exactly.
    """
    signs, ranks = np.sign(differences), stats.rankdata(np.abs(differences))
    coins, above = ranks[signs != 0], float(ranks[signs > 0].sum())
    if not len(coins):
        return 1.0
    tails = _exact_tails if len(coins) <= LARGEST_EXACT else _normal_tails
    return min(1.0, 2 * min(tails(coins, above)))


def _exact_tails(ranks: Floats, above: float) -> tuple[float, float]:
    """Return the probabilities of a rank sum of at most, and of at least, `above`.

    The distribution grows by one convolution for each rank. (With ties SciPy tries all signs, which
    is a thousand times slower.)
    """
    steps = np.rint(2 * ranks).astype(np.int64)  # Mid-ranks are multiples of a half.
    chances = np.zeros(steps.sum() + 1)
    chances[0] = 1.0
    for step in steps.tolist():
        chances[step:] = 0.5 * (chances[step:] + chances[:-step])
        chances[:step] *= 0.5
    place = int(np.rint(2 * above))
    return float(chances[: place + 1].sum()), float(chances[place:].sum())


def _normal_tails(ranks: Floats, above: float) -> tuple[float, float]:
    """Return the same, from a normal distribution with the rank sum's mean and variance.

    Half a rank is added to either tail, because the rank sum itself is a whole number.
    """
    sums = stats.norm(ranks.sum() / 2, np.sqrt(np.square(ranks).sum()) / 2)
    return float(sums.cdf(above + 0.5)), float(sums.sf(above - 0.5))


def holm(p_values: Floats) -> Floats:
    """Return (n,), corrected for n tests by Holm's step-down rule."""
    order = np.argsort(p_values, kind="stable")
    left = np.arange(len(p_values), 0, -1)
    corrected = np.empty_like(p_values)
    corrected[order] = np.minimum(np.maximum.accumulate(p_values[order] * left), 1.0)
    return corrected


def _indistinct_neighbours(names: tuple[str, ...], p_values: Floats) -> tuple[tuple[str, ...], ...]:
    """Return the longest runs of rank neighbours in which no pair differs significantly."""
    runs: list[tuple[int, int]] = []
    for start in range(len(names)):
        end = start + 1
        while end < len(names) and (p_values[start:end, end] >= SIGNIFICANCE).all():
            end += 1
        inside_another = bool(runs) and end <= runs[-1][1]
        if end - start > 1 and not inside_another:
            runs.append((start, end))
    return tuple(names[start:end] for start, end in runs)
