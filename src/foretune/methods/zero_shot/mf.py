"""Multi-fidelity portfolios: anytime combinatorial HyperBand (Algorithms 2 and 3).

The resource of a configuration is the number of tasks it was tried on, always the first ones of
one shuffled order.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from foretune._base.arrays import Floats, Ints
from foretune.methods.zero_shot.jobs import Jobs
from foretune.methods.zero_shot.naive import check_common_tasks
from foretune.methods.zero_shot.panel import panel_of
from foretune.numerics.greedy import Aggregate, Picks, greedy

ETA = 3
"""One of this number of candidates of a rung is promoted to the next."""


def multi_fidelity(jobs: Jobs, k: int, aggregate: Aggregate, *, seed: int) -> Picks:
    """Spend the budget rung by rung, then pick k among those that got furthest."""
    check_common_tasks(jobs, "mf")
    rng = np.random.default_rng(seed)
    order = panel_of(jobs, rng)
    newcomers = iter(rng.permutation(len(jobs.candidates)).tolist())
    band = HyperBand(jobs, order, newcomers, k, aggregate)
    while jobs.remaining and band.step():
        pass
    return band.picks()


def rung_sizes(tasks: int, eta: int = ETA) -> list[int]:
    """Return 1, eta, eta², ... and all tasks, without a power closer than sqrt(eta) to all."""
    sizes = [1]
    while sizes[-1] * eta**1.5 <= tasks:
        sizes.append(sizes[-1] * eta)
    return [*sizes, tasks] if tasks > 1 else sizes


def bracket_ratio(rung: int, top: int) -> float:
    """Return how many are promoted from a rung before a newcomer starts above it (Appendix C)."""
    return sum((top - rung) / (top - m) for m in range(rung))


@dataclass
class HyperBand:
    """Which candidate has reached which rung, and what was spent on each location."""

    jobs: Jobs
    order: Ints
    """The tasks, in one random order."""
    newcomers: Iterator[int]
    """Candidates that were not tried yet."""
    k: int
    aggregate: Aggregate
    eta: int = ETA
    sizes: list[int] = field(init=False)
    members: list[list[int]] = field(init=False)
    """The candidates that were run at each rung."""
    waiting: list[list[int]] = field(init=False)
    """Those of them that were not promoted."""
    since_newcomer: list[int] = field(init=False)
    """The number promoted from each rung since a newcomer started above it."""
    spent: Floats = field(init=False)
    """(k,), the jobs of promotions that each location has decided."""

    def __post_init__(self) -> None:
        self.sizes = rung_sizes(len(self.order), self.eta)
        self.members = [[] for _ in self.sizes]
        self.waiting = [[] for _ in self.sizes]
        self.since_newcomer = [0] * len(self.sizes)
        self.spent = np.zeros(self.k)

    def step(self) -> bool:
        """Do one round of Algorithm 3; return False if there is nothing left to run."""
        moved = False
        for rung in reversed(range(self._top)):
            promoted = len(self.members[rung]) - len(self.waiting[rung])
            if len(self.members[rung]) >= self.eta * (promoted + 1):
                moved |= self._fill_above(rung)
        return moved or self._start_at(0) or self._promote_anyway()

    def picks(self) -> Picks:
        """Choose greedily, each pick from the highest rung that still has a candidate."""
        best = self._worst()
        chosen: list[int] = []
        reached = []
        for _ in range(self.k):
            rungs = [[c for c in rung if c not in chosen] for rung in self.members]
            furthest = max((number for number, rung in enumerate(rungs) if rung), default=None)
            if furthest is None:
                break
            chosen.append(self._best_of(rungs[furthest], furthest, best))
            best = np.fmin(best, self.jobs.results(self.order, np.array(chosen[-1:]))[:, 0])
            reached.append(float(self.aggregate(best[:, None])[0]))
        return Picks(np.array(chosen, dtype=np.int64), np.array(reached))

    @property
    def _top(self) -> int:
        return len(self.sizes) - 1

    def _fill_above(self, rung: int) -> bool:
        """Bring one candidate to the rung above: a promoted one, or sometimes a newcomer."""
        if self.since_newcomer[rung] > bracket_ratio(rung, self._top):
            self.since_newcomer[rung] = 0
            if self._start_at(rung + 1):
                return True
        self._promote(rung)
        self.since_newcomer[rung] += 1
        return True

    def _promote(self, rung: int) -> None:
        """Return the best waiting candidate for the location that got the least (Algorithm 2)."""
        location = self._location()
        promoted = self._best_of(self.waiting[rung], rung, self._best_before(location))
        self.waiting[rung].remove(promoted)
        before = self.jobs.used
        self._run(promoted, rung + 1)
        self.spent[location] += self.jobs.used - before

    def _promote_anyway(self) -> bool:
        """Once every candidate was tried, go on with the best of those that were passed over."""
        for rung in reversed(range(self._top)):
            if self.waiting[rung]:
                self._promote(rung)
                return True
        return False

    def _start_at(self, rung: int) -> bool:
        newcomer = next(self.newcomers, None)
        if newcomer is not None:
            self._run(newcomer, rung)
        return newcomer is not None

    def _run(self, candidate: int, rung: int) -> None:
        """Try a candidate on the rung's tasks; it joins the rung only if the budget suffices."""
        tasks = self.order[: self.sizes[rung]]
        new = tasks[~self.jobs.ran[tasks, candidate]]
        affordable = new[: self.jobs.remaining]
        self.jobs.run(affordable, np.full(len(affordable), candidate))
        if len(affordable) == len(new):
            self.members[rung].append(candidate)
            self.waiting[rung].append(candidate)

    def _location(self) -> int:
        """Return the location, from 0, whose jobs lag most behind shares of 1, 1/2, 1/3, ..."""
        explored = min(len(self.members[-1]) + 1, self.k)
        weights = np.arange(1, explored + 1)
        return int(np.argmin(self.spent[:explored] * weights))

    def _best_before(self, location: int) -> Floats:
        """Return (tasks,), the losses of the fully evaluated picks before a location."""
        if location == 0:
            return self._worst()
        losses = self.jobs.results(self.order, np.array(self.members[-1]))
        picked: Floats = losses[:, greedy(losses, location, self.aggregate).chosen].min(axis=1)
        return picked

    def _worst(self) -> Floats:
        """(tasks,), the worst loss of each task, and the worst of all where it has shown none."""
        worst: Floats = np.fmax.reduce(self.jobs.losses[self.order], axis=1).astype(np.float64)
        return np.where(np.isnan(worst), np.nan_to_num(np.fmax.reduce(worst)), worst)

    def _best_of(self, candidates: list[int], rung: int, best: Floats) -> int:
        """Return the candidate that lowers the aggregate over the rung's tasks most."""
        size = self.sizes[rung]
        losses = self.jobs.results(self.order[:size], np.array(candidates))
        together = self.aggregate(np.minimum(losses, best[:size, None]))
        return candidates[int(np.argmin(together))]
