"""Whether differences between methods over many tasks are more than chance.

Friedman's test asks whether the methods differ at all; Wilcoxon's signed-rank tests with Holm's
correction ask which pairs do. This is the protocol behind critical-difference diagrams.
"""

import warnings
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

from foretune.arrays import Floats
from foretune.errors import MissingExtraError, UsageError

SIGNIFICANCE = 0.05


@dataclass(frozen=True, slots=True)
class Comparison:
    """Methods compared over tasks, the best mean rank first."""

    methods: tuple[str, ...]
    ranks: Floats
    """(methods,) mean ranks over tasks."""
    friedman_p: float
    """NaN for two methods, of which the Wilcoxon test says all."""
    p_values: Floats
    """(methods, methods) Holm-corrected Wilcoxon p-values, 1 on the diagonal."""
    groups: tuple[tuple[str, ...], ...]
    """Neighbours in rank that cannot be told apart: the bars of the diagram."""


def compare(methods: tuple[str, ...], losses: Floats) -> Comparison:
    """Compare methods by their losses (methods, tasks), lower is better, NaN worst."""
    if len(methods) < 2 or losses.shape[1] < 2:
        raise UsageError(
            "a statistical comparison needs at least 2 methods and 2 tasks, but got "
            f"{len(methods)} and {losses.shape[1]}: add results of further runs"
        )
    worst = np.nanmax(losses) if np.isfinite(losses).any() else 0.0
    filled = np.where(np.isnan(losses), worst, losses)
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
    """The p-value of Friedman's test; 1 where all methods tie everywhere."""
    if len(losses) < 3:
        return float("nan")
    if (losses == losses[0]).all():
        return 1.0
    return float(stats.friedmanchisquare(*losses).pvalue)


def _wilcoxon_holm(losses: Floats) -> Floats:
    """Holm-corrected p-values of all pairs of rows; methods that always tie get 1."""
    try:
        import scikit_posthocs
    except ImportError as error:
        raise MissingExtraError("scikit-posthocs", "bench", "comparing methods") from error
    methods, tasks = losses.shape
    # One row a loss: from a bare array the library guesses what it holds, and fails for two tasks.
    rows = pd.DataFrame({"method": np.repeat(np.arange(methods), tasks), "loss": losses.ravel()})
    with warnings.catch_warnings():
        # SciPy divides by a spread of zero where two methods tie on every task, and returns 1.
        warnings.filterwarnings("ignore", "invalid value encountered", RuntimeWarning)
        table = scikit_posthocs.posthoc_wilcoxon(
            rows, "loss", "method", zero_method="zsplit", p_adjust="holm"
        )
    p_values: Floats = table.to_numpy(dtype=np.float64)
    return np.where(np.isnan(p_values), 1.0, p_values)


def _indistinct_neighbours(names: tuple[str, ...], p_values: Floats) -> tuple[tuple[str, ...], ...]:
    """The longest runs of rank neighbours in which no pair differs significantly."""
    runs: list[tuple[int, int]] = []
    for start in range(len(names)):
        end = start + 1
        while end < len(names) and (p_values[start:end, end] >= SIGNIFICANCE).all():
            end += 1
        inside_another = bool(runs) and end <= runs[-1][1]
        if end - start > 1 and not inside_another:
            runs.append((start, end))
    return tuple(names[start:end] for start, end in runs)
