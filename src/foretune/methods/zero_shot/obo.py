"""Offline Bayesian optimisation (section 4): which job to run next, by a forest over all tasks.

Each tree of the forest is one sample of all losses. A configuration is chosen together with the
location of the portfolio that it would fill, by the improvement it is expected to bring there for
each job that it still needs; then the task where it is expected to help most.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from foretune._base.arrays import Floats, Ints
from foretune.methods.zero_shot.jobs import Jobs
from foretune.methods.zero_shot.panel import panel_of
from foretune.numerics.forests import grow_trees
from foretune.numerics.greedy import Aggregate, Picks, greedy

Samples: TypeAlias = NDArray[np.float32]

TREES = 20
LARGEST_POOL = 2000
"""The most candidates to score. If there are more, a random part changes with every forest."""
GrowForest: TypeAlias = Callable[..., list[Any]]
"""A function such as `grow_trees`."""
GROWTH = 1.1
"""A new forest is grown when the number of known losses has grown by this factor."""
MISSES_BEFORE = 3.0
"""The number of exact predictions that are added to a candidate's own errors in their mean."""


def obo(
    jobs: Jobs, k: int, aggregate: Aggregate, *, seed: int, grow: GrowForest = grow_trees
) -> Picks:
    """Spend the budget job by job, then pick k by known and predicted losses."""
    rng = np.random.default_rng(seed)
    tasks = panel_of(jobs, rng)
    _first_jobs(jobs, tasks, rng)
    while True:
        pool = _pool(jobs, tasks, rng)
        belief = LossBelief.of(jobs, tasks, pool, seed=int(rng.integers(2**31)), grow=grow)
        search = CandidateSearch(jobs, belief, k)
        for _ in range(max(int((GROWTH - 1.0) * jobs.used), 1)):
            if not jobs.remaining or not search.step():
                return _picks(belief, k, aggregate)


def _first_jobs(jobs: Jobs, tasks: Ints, rng: np.random.Generator) -> None:
    """Run a random candidate on each task, so that the first forest knows how tasks differ."""
    for task in tasks.tolist():
        possible = np.flatnonzero(jobs.possible[task])
        if jobs.remaining and len(possible):
            jobs.run(np.array([task]), rng.choice(possible, 1))


def _pool(
    jobs: Jobs, tasks: Ints, rng: np.random.Generator, *, largest: int = LARGEST_POOL
) -> Ints:
    """Return all candidates, or those with a known loss and random others."""
    n = len(jobs.candidates)
    if n <= largest:
        return np.arange(n)
    started = jobs.ran[tasks].any(axis=0)
    others = rng.permutation(np.flatnonzero(~started))
    count = max(largest - int(started.sum()), largest // 2)
    return np.concatenate([np.flatnonzero(started), others[:count]])


def _picks(belief: "LossBelief", k: int, aggregate: Aggregate) -> Picks:
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
        at = np.ix_(belief.tasks, belief.pool)
        self.open = jobs.possible[at] & ~jobs.ran[at]
        """(D, N), the jobs that could be run."""
        self.never = ~jobs.possible[at]
        self.worst = float(np.nanmax(belief.known))
        self.ceilings = self._ceilings()
        """(k + 1, D), the losses of the portfolio's first l configurations, for l from 0."""
        self.sums = np.empty((len(belief.samples), k, len(belief.pool)), dtype=np.float32)
        """(T, k, N): the summed losses when a candidate follows the first l configurations."""
        for candidate in range(len(belief.pool)):
            self._sum_up(candidate)

    def step(self) -> bool:
        """Run the most promising job; return False if none is left."""
        left = self.open.sum(axis=0)
        if not left.any():
            return False
        reached = self.ceilings[1:].sum(axis=1)[:, None]
        gain = np.maximum(reached - self.sums, 0.0).mean(axis=0)
        per_job = np.where(left > 0, gain / np.maximum(left, 1), -1.0)
        location, candidate = np.unravel_index(np.argmax(per_job), per_job.shape)
        self._evaluate(self._best_task(int(location), int(candidate)), int(candidate))
        return True

    def _best_task(self, location: int, candidate: int) -> int:
        before = self.ceilings[location]
        decrease = np.maximum(before - self.belief.samples[:, :, candidate], 0.0).mean(axis=0)
        return int(np.argmax(np.where(self.open[:, candidate], decrease, -1.0)))

    def _evaluate(self, task: int, candidate: int) -> None:
        belief = self.belief
        of_job = belief.tasks[[task]], belief.pool[[candidate]]
        self.jobs.run(*of_job)
        loss = float(self.jobs.results(*of_job)[0, 0])
        self.open[task, candidate] = False
        belief.learn(task, candidate, loss)
        self.worst = max(self.worst, loss)
        self._sum_up(candidate)
        self._follow(self._ceilings())

    def _ceilings(self) -> Floats:
        """The current portfolio is greedy; an evaluation that is still to be made counts worst."""
        known = self.belief.known
        started = np.flatnonzero(~np.isnan(known).all(axis=0))
        losses = known[:, started]
        if self.never.any():
            expected = self.belief.samples[:, :, started].mean(axis=0)
            losses = np.where(self.never[:, started], expected, losses)
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
