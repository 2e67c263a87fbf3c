"""Methods side by side on the tasks of one suite, or of several suites together."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from foretune.numerics import Floats
from foretune_lab.bench import measures
from foretune_lab.bench.metrics import MeanCurves, mean_over_seeds, rank_curves, ranks_by_task
from foretune_lab.bench.results import Curves
from foretune_lab.bench.statistics import Comparison, compare

TOGETHER = "overall"


@dataclass(frozen=True, slots=True)
class Compared:
    """The ranks of methods on each task; a task is one sample."""

    name: str
    """The name of the suite, or of several together."""
    methods: tuple[str, ...]
    ranks: Floats
    """(methods, tasks, trials), the mean over seeds; for a single task (methods, seeds, trials)."""
    scores: Floats
    """(methods, tasks, trials), the values that are ranked, the mean over seeds."""
    averaging_note: str
    """What the means are taken over, in words."""

    @property
    def tasks(self) -> int:
        """The number of tasks."""
        return int(self.scores.shape[1])

    @property
    def trials(self) -> int:
        """The largest number of trials."""
        return int(self.scores.shape[2])

    @property
    def testable(self) -> bool:
        """Whether there is enough for a statistical test."""
        return len(self.methods) >= 2 and self.tasks >= 2

    def average_ranks(self) -> MeanCurves:
        """Return the mean ranks with their 95% confidence bands."""
        return rank_curves(self.ranks)

    def after(self, n: int) -> Comparison:
        """Tell which differences after n trials are more than chance, in the order of `ranks`."""
        ranks = self.ranks[:, :, n - 1].mean(axis=1)
        return compare(self.methods, self.scores[:, :, n - 1], ranks)


def compare_methods(curves: Curves) -> Compared:
    """Compare the methods on the tasks of one suite."""
    scores = measures.scores(curves)
    return Compared(
        curves.suite,
        curves.methods,
        ranks_by_task(scores),
        mean_over_seeds(scores),
        curves.averaging_note,
    )


def compare_over_suites(suites: Sequence[Curves]) -> Compared | None:
    """Compare the methods that all suites share; each task has the same weight.

    Returns None if that says no more. Runs are followed to the end of the shortest suite.
    """
    methods = tuple(
        name for name in suites[0].methods if all(name in curves.methods for curves in suites)
    )
    if len(suites) < 2 or len(methods) < 2:
        return None
    trials = min(curves.trials for curves in suites)
    ranks, scores = [], []
    for curves in suites:
        rows = [curves.methods.index(name) for name in methods]
        chosen = measures.scores(curves)[rows][..., :trials]
        scores.append(mean_over_seeds(chosen))
        ranks.append(ranks_by_task(chosen, seeds_as_tasks=False))
    pooled = np.concatenate(scores, axis=1)
    averaging_note = f"{pooled.shape[1]} tasks of {len(suites)} suites and all seeds"
    return Compared(TOGETHER, methods, np.concatenate(ranks, axis=1), pooled, averaging_note)
