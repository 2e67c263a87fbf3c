"""The surrogate baseline (section 7): a random forest for each task predicts missing losses."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from foretune._base.arrays import Floats, Ints
from foretune._base.progress import SILENT, Progress, track
from foretune.methods.zero_shot.builder import USUAL_CAPS, Builder, PortfolioJob
from foretune.methods.zero_shot.jobs import Jobs
from foretune.numerics.forests import Forest, grow_trees
from foretune.numerics.greedy import Losses, Picks, greedy

MOST_FORESTS = 100
"""If tasks share no configurations, at most this number of tasks is read, unless the user chooses
this builder: each task needs a forest that predicts the configurations of all others."""
TREES = 100
QUICK_LEAF = 2


Singles: TypeAlias = NDArray[np.float32]
Regression: TypeAlias = Callable[[Singles, Losses, Singles, int], Floats]
"""(known (n, W), their losses (n,), others (m, W), seed) -> predicted losses (m,)."""


def random_forest(known: Singles, losses: Losses, others: Singles, seed: int) -> Floats:
    """Predict with the paper's forest: scikit-learn's defaults."""
    from sklearn.tree import DecisionTreeRegressor

    trees = grow_trees(DecisionTreeRegressor(), known, losses, trees=TREES, seed=seed)
    predicted: Floats = np.mean([tree.predict(others)[:, 0] for tree in trees], axis=0)
    return predicted


def quick_forest(known: Singles, losses: Losses, others: Singles, seed: int) -> Floats:
    """Predict with a forest that grows in a quarter of the time (decision 025)."""
    x, y = known.astype(np.float64), losses[:, None].astype(np.float64)
    forest = Forest.grow(x, y, leaf=min(QUICK_LEAF, len(known)), seed=seed)
    return forest.predict(others.astype(np.float64))[:, 0]


def complete_losses(
    jobs: Jobs,
    columns: Ints,
    rng: np.random.Generator,
    *,
    regression: Regression = random_forest,
    most_rows: int = USUAL_CAPS.most_rows,
    progress: Progress = SILENT,
) -> Losses:
    """Return the losses in these columns. Missing ones are predicted; NaN for tasks without any.

    most_rows: the most evaluations of a task that its forest learns from.
    """
    codes = jobs.candidates.codes.astype(np.float32)
    every, tasks = np.arange(len(codes)), len(jobs.possible)
    table = np.full((tasks, len(columns)), np.nan, dtype=np.float32)
    for task in track(range(tasks), progress, "predicting what was not evaluated", tasks):
        known = jobs.results(np.array([task]), every)[0]
        rows = rng.permutation(np.flatnonzero(~np.isnan(known)))[:most_rows]
        if len(rows):
            seed = int(rng.integers(2**31))
            predicted = regression(codes[rows], known[rows], codes[columns], seed)
            table[task] = np.where(np.isnan(known[columns]), predicted, known[columns])
    return table


class SurrogateBuilder(Builder):
    """Evaluates random candidates, others on each task, and picks k by the predicted losses."""

    regression: Regression = staticmethod(random_forest)

    def planned_jobs(self) -> tuple[Ints, Ints]:
        """Return random candidates for each task."""
        shares = _shares(self.jobs, np.random.default_rng(self.seed))
        drawn = [self._order(task)[:share] for task, share in enumerate(shares)]
        return np.repeat(np.arange(len(shares)), shares), np.concatenate(drawn)

    def next_job(self) -> PortfolioJob | None:
        """Return a random candidate for the task that has had the fewest."""
        waiting = self.jobs.open
        begun = ((self.jobs.ran & ~self.jobs.free) | self.jobs.pending).sum(axis=1)
        tasks = np.flatnonzero(waiting.any(axis=1))
        if not len(tasks):
            return None
        task = int(tasks[np.argmin(begun[tasks])])
        order = self._order(task)
        return PortfolioJob(task, int(order[waiting[task, order].argmax()]))

    def picks(self) -> Picks:
        """Choose by what is known, and by the predictions of one forest for each task."""
        columns = _columns(self.jobs, self.caps.best_predicted)
        rng = np.random.default_rng([self.seed, self.jobs.used])
        losses = complete_losses(
            self.jobs, columns, rng, regression=self.regression, most_rows=self.caps.most_rows
        )
        picks = greedy(losses, self.k, self.aggregate)
        return Picks(columns[picks.chosen], picks.losses)

    def _order(self, task: int) -> Ints:
        """Return the possible candidates of a task in random order."""
        order = self.random_order(task)
        possible: Ints = order[self.jobs.possible[task, order]]
        return possible


def _shares(jobs: Jobs, rng: np.random.Generator) -> list[int]:
    """Share the remaining jobs equally among tasks, as far as each task has enough."""
    available = jobs.possible.sum(axis=1)
    shares = np.zeros(len(available), dtype=np.int64)
    while (left := jobs.remaining - int(shares.sum())) > 0:
        open_tasks = rng.permutation(np.flatnonzero(shares < available))[:left]
        each = left // len(open_tasks)
        shares[open_tasks] = np.minimum(shares[open_tasks] + each, available[open_tasks])
    return [int(share) for share in shares]


def _columns(jobs: Jobs, most: int) -> Ints:
    """Return all candidates or, if tasks share none, at most `most` of the best of each task."""
    if jobs.possible.all():
        return np.arange(len(jobs.candidates))
    # NaN sort last, so unevaluated candidates come only if a task has nothing else.
    best = np.argsort(jobs.losses, axis=1)[:, :most]
    return np.unique(best[~np.isnan(np.take_along_axis(jobs.losses, best, axis=1))])
