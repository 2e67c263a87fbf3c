"""Offline Bayesian optimisation (section 4): which job to run next, by a forest over all tasks.

Each tree of the forest is one sample of all losses. A configuration is chosen together with the
location of the portfolio that it would fill, by the improvement it is expected to bring there for
each job that it still needs; then the task where it is expected to help most.

Any number of jobs may run at the same time. A job that runs need not be paid for again, and counts
as the forest expects it until it ends.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from foretune._base.arrays import Floats, Ints
from foretune.methods.zero_shot.builder import Builder, PortfolioJob
from foretune.methods.zero_shot.jobs import Jobs
from foretune.methods.zero_shot.panel import panel_of
from foretune.numerics.forests import grow_trees
from foretune.numerics.greedy import Aggregate, Picks, greedy

Samples: TypeAlias = NDArray[np.float32]

TREES = 20
GrowForest: TypeAlias = Callable[..., list[Any]]
"""A function such as `grow_trees`."""
GROWTH = 1.1
"""A new forest is grown when the number of known losses has grown by this factor."""
MISSES_BEFORE = 3.0
"""The number of exact predictions that are added to a candidate's own errors in their mean."""


class OfflineBayes(Builder):
    """Chooses job after job by the forest, and picks k by known and predicted losses."""

    grow: GrowForest = staticmethod(grow_trees)
    _search: "CandidateSearch | None" = None
    _seen = 0
    """How much of the log of jobs the search knows."""
    _grown_at = 0
    """The number of jobs that had ended when the forest was grown."""

    @cached_property
    def tasks(self) -> Ints:
        """The tasks to work with."""
        return panel_of(self.jobs, np.random.default_rng(self.seed))

    def next_job(self) -> PortfolioJob | None:
        """Return the most promising job. The first ones are random, one on each task."""
        return self._first_job() or self._up_to_date().best_job()

    def picks(self) -> Picks:
        """Choose by the mean of all samples."""
        if not self.jobs.ran[self.tasks].any():
            return Picks(np.empty(0, dtype=np.int64), np.empty(0))
        return pick_expected(self._grow_belief(), self.k, self.aggregate)

    def _first_job(self) -> PortfolioJob | None:
        """Return a job on a task without any, so that the first forest knows how tasks differ."""
        begun = (self.jobs.ran | self.jobs.pending)[self.tasks].sum(axis=1)
        waiting = self.jobs.open[self.tasks]
        if self.jobs.ran[self.tasks].any():
            places = np.flatnonzero((begun == 0) & waiting.any(axis=1))
        else:  # nothing is known that a forest could learn from
            places = np.flatnonzero(waiting.any(axis=1))
        if not len(places):
            return None
        place = int(places[np.argmin(begun[places])])
        order = self.random_order(int(self.tasks[place]), 1)
        if self.first:
            order[: self.first] = np.roll(order[: self.first], -place)
        return PortfolioJob(int(self.tasks[place]), int(order[waiting[place, order].argmax()]))

    def _up_to_date(self) -> "CandidateSearch":
        """Return a search that knows all jobs. The forest is grown anew from time to time."""
        ended = int(self.jobs.ran[self.tasks].sum())
        due = self._grown_at + max(int((GROWTH - 1.0) * self._grown_at), 1)
        if self._search is None or ended >= due:
            self._search = CandidateSearch(self.jobs, self._grow_belief(), self.k)
            self._grown_at, self._seen = ended, len(self.jobs.log)
        for tasks, candidates in self.jobs.log[self._seen :]:
            for task, candidate in zip(tasks.tolist(), candidates.tolist(), strict=True):
                self._search.take_in(task, candidate)
        self._seen = len(self.jobs.log)
        self._search.note_pending()
        return self._search

    def _grow_belief(self) -> "LossBelief":
        ended = int(self.jobs.ran[self.tasks].sum())
        rng = np.random.default_rng([self.seed, ended, 2])
        pool = scored_candidates(self.jobs, self.tasks, rng, most=self.caps.most_candidates)
        seed = int(rng.integers(2**31))
        return LossBelief.of(self.jobs, self.tasks, pool, seed=seed, grow=self.grow)


def scored_candidates(jobs: Jobs, tasks: Ints, rng: np.random.Generator, *, most: int) -> Ints:
    """Return all candidates, or those that were begun and random others."""
    n = len(jobs.candidates)
    if n <= most:
        return np.arange(n)
    started = (jobs.ran | jobs.pending)[tasks].any(axis=0)
    others = rng.permutation(np.flatnonzero(~started))
    count = max(most - int(started.sum()), most // 2)
    return np.concatenate([np.flatnonzero(started), others[:count]])


def pick_expected(belief: "LossBelief", k: int, aggregate: Aggregate) -> Picks:
    """Pick greedily by the mean of all samples."""
    picks = greedy(belief.samples.mean(axis=0), k, aggregate)
    return Picks(belief.pool[picks.chosen], picks.losses)


@dataclass(frozen=True)
class LossBelief:
    """The known losses of D tasks and a pool of N candidates, and T samples of the others."""

    tasks: Ints
    pool: Ints
    known: Floats
    """(D, N), NaN where not evaluated."""
    samples: Samples
    """(T, D, N), the known losses, and each tree's prediction of the others."""
    predicted: Samples
    """(D, N), the forest's mean when it was grown."""

    @classmethod
    def of(
        cls, jobs: Jobs, tasks: Ints, pool: Ints, *, seed: int, grow: GrowForest = grow_trees
    ) -> "LossBelief":
        """Grow a forest on all known losses."""
        known = jobs.results(tasks, pool)
        samples = _tree_predictions(known, jobs.candidates.codes[pool], seed, grow)
        predicted = samples.mean(axis=0)
        samples[:, ~np.isnan(known)] = known[~np.isnan(known)]
        return cls(tasks, pool, known, samples, predicted)

    def learn(self, task: int, candidate: int, loss: float) -> None:
        """Take in one loss without a new forest.

        What is expected of the candidate's other losses moves with the mean miss of all that are
        known of it, shrunk towards none.
        """
        column = self.known[:, candidate]
        before = self._offset(candidate)
        column[task] = loss
        unknown = np.isnan(column)
        self.samples[:, unknown, candidate] += np.float32(self._offset(candidate) - before)
        self.samples[:, task, candidate] = loss

    def _offset(self, candidate: int) -> float:
        misses = self.known[:, candidate] - self.predicted[:, candidate]
        seen = misses[~np.isnan(misses)]
        return float(seen.sum() / (len(seen) + MISSES_BEFORE))


def _tree_predictions(known: Floats, codes: Floats, seed: int, grow: GrowForest) -> Samples:
    """Return (T, D, N), the predictions of each tree for all tasks and candidates."""
    from sklearn.tree import DecisionTreeRegressor

    about_tasks = task_features(known)
    task, candidate = np.nonzero(~np.isnan(known))
    inputs = np.hstack([codes[candidate], about_tasks[task]]).astype(np.float32)
    losses = known[task, candidate]
    trees = grow(DecisionTreeRegressor(), inputs, losses, trees=TREES, seed=seed)
    samples = np.empty((TREES, *known.shape), dtype=np.float32)
    for row, features in enumerate(about_tasks):
        repeated = np.broadcast_to(features, (len(codes), len(features)))
        grid = np.hstack([codes, repeated]).astype(np.float32)
        for number, tree in enumerate(trees):
            samples[number, row] = tree.predict(grid)[:, 0]
    return samples


def task_features(known: Floats) -> Floats:
    """(D, 1), a task's identity as a number that a tree can split well.

    It is how much worse than elsewhere the task's candidates do on it: the mean difference to the
    candidates' own means, shrunk as one evaluation more without a difference would.
    """
    seen = ~np.isnan(known)
    count, total = seen.sum(axis=0), np.where(seen, known, 0.0).sum(axis=0)
    overall = total.sum() / max(count.sum(), 1)
    of_candidates = (total + overall) / (count + 1)
    differences = np.where(seen, known - of_candidates, 0.0).sum(axis=1)
    features: Floats = (differences / (seen.sum(axis=1) + 1))[:, None]
    return features


class CandidateSearch:
    """Chooses jobs by one forest, keeping all expected improvements up to date."""

    def __init__(self, jobs: Jobs, belief: LossBelief, k: int) -> None:
        self.jobs, self.belief, self.k = jobs, belief, k
        self._at = np.ix_(belief.tasks, belief.pool)
        self._rows = {task: row for row, task in enumerate(belief.tasks.tolist())}
        self._columns = {each: column for column, each in enumerate(belief.pool.tolist())}
        self.open = jobs.open[self._at]
        """(D, N), the jobs that could be begun."""
        self.assumed = ~(jobs.possible | jobs.ran)[self._at] | jobs.pending[self._at]
        """(D, N), the jobs that count as the forest expects: they run now, or cannot be run."""
        self.worst = float(np.nanmax(belief.known))
        self.ceilings = self._ceilings()
        """(k + 1, D), the losses of the portfolio's first l configurations, for l from 0."""
        self.sums = np.empty((len(belief.samples), k, len(belief.pool)), dtype=np.float32)
        """(T, k, N): the summed losses when a candidate follows the first l configurations."""
        for candidate in range(len(belief.pool)):
            self._sum_up(candidate)

    def best_job(self) -> PortfolioJob | None:
        """Return the most promising job; None if none is left."""
        left = self.open.sum(axis=0)
        if not left.any():
            return None
        reached = self.ceilings[1:].sum(axis=1)[:, None]
        gain = np.maximum(reached - self.sums, 0.0).mean(axis=0)
        per_job = np.where(left > 0, gain / np.maximum(left, 1), -1.0)
        location, candidate = map(int, np.unravel_index(np.argmax(per_job), per_job.shape))
        task = self._best_task(location, candidate)
        return PortfolioJob(int(self.belief.tasks[task]), int(self.belief.pool[candidate]))

    def note_pending(self) -> None:
        """Take in which jobs have begun, or were given up."""
        jobs = self.jobs
        assumed = ~(jobs.possible | jobs.ran)[self._at] | jobs.pending[self._at]
        if not np.array_equal(assumed, self.assumed):
            self.open, self.assumed = jobs.open[self._at], assumed
            self._follow(self._ceilings())

    def _best_task(self, location: int, candidate: int) -> int:
        before = self.ceilings[location]
        decrease = np.maximum(before - self.belief.samples[:, :, candidate], 0.0).mean(axis=0)
        return int(np.argmax(np.where(self.open[:, candidate], decrease, -1.0)))

    def take_in(self, task: int, candidate: int) -> None:
        """Take in a job that has ended, if it is one of those that are searched."""
        row, column = self._rows.get(task), self._columns.get(candidate)
        if row is None or column is None:
            return
        loss = float(self.jobs.results(np.array([task]), np.array([candidate]))[0, 0])
        self.open[row, column] = self.assumed[row, column] = False
        self.belief.learn(row, column, loss)
        self.worst = max(self.worst, loss)
        self._sum_up(column)
        self._follow(self._ceilings())

    def _ceilings(self) -> Floats:
        """The current portfolio is greedy; an evaluation that is still to be made counts worst."""
        known = self.belief.known
        is_pending = self.assumed & self.jobs.possible[self._at]
        started = np.flatnonzero((~np.isnan(known) | is_pending).any(axis=0))
        losses = known[:, started]
        if self.assumed.any():
            expected = self.belief.samples[:, :, started].mean(axis=0)
            losses = np.where(self.assumed[:, started], expected, losses)
        losses = np.where(np.isnan(losses), self.worst, losses)
        chosen = greedy(losses, self.k).chosen
        chosen = np.append(chosen, np.repeat(chosen[-1:], self.k - len(chosen)))
        first = np.full((1, len(losses)), self.worst)
        return np.minimum.accumulate(np.concatenate([first, losses[:, chosen].T]))

    def _sum_up(self, candidate: int) -> None:
        samples = self.belief.samples[:, None, :, candidate]
        self.sums[:, :, candidate] = np.minimum(samples, self.ceilings[None, :-1]).sum(axis=2)

    def _follow(self, ceilings: Floats) -> None:
        """Update the sums to new ceilings. Only tasks whose ceilings changed are read."""
        changed = np.flatnonzero((ceilings != self.ceilings).any(axis=0))
        for task in changed:
            samples = self.belief.samples[:, None, task, :]
            new, old = ceilings[None, :-1, task, None], self.ceilings[None, :-1, task, None]
            self.sums += np.minimum(samples, new) - np.minimum(samples, old)
        self.ceilings = ceilings
