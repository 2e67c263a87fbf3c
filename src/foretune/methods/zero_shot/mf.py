"""Multi-fidelity portfolios: anytime combinatorial HyperBand (Algorithms 2 and 3).

The resource of a configuration is the number of tasks it was tried on, always the first ones of
one shuffled order. Any number of jobs may run at the same time: whoever asks gets a job of a
configuration on its way up, of one that is promoted now, or of a newcomer.
"""

from functools import cached_property, lru_cache

import numpy as np

from foretune._base.arrays import Floats, Ints
from foretune.methods.zero_shot.builder import Builder, PortfolioJob
from foretune.methods.zero_shot.jobs import Jobs
from foretune.methods.zero_shot.naive import check_common_tasks
from foretune.methods.zero_shot.panel import panel_of
from foretune.numerics.greedy import Picks, greedy

ETA = 3
"""One of this number of candidates of a rung is promoted to the next."""


def rung_sizes(tasks: int, eta: int = ETA) -> list[int]:
    """Return 1, eta, eta², ... and all tasks, without a power closer than sqrt(eta) to all."""
    sizes = [1]
    while sizes[-1] * eta**1.5 <= tasks:
        sizes.append(sizes[-1] * eta)
    return [*sizes, tasks] if tasks > 1 else sizes


def starting_rungs(sizes: list[int], newcomers: int) -> list[int]:
    """Return the rung at which each newcomer may start.

    All rungs get newcomers of the same total size.
    """
    spent, starts = np.zeros(len(sizes)), []
    for _ in range(newcomers):
        rung = int(np.argmin(spent + sizes))
        spent[rung] += sizes[rung]
        starts.append(rung)
    return starts


@lru_cache(maxsize=4096)
def location_in_turn(turn: int, locations: int) -> int:
    """Return the location, from 0, that decides a promotion, with shares of 1, 1/2, 1/3, ...

    All promotions of a rung cost about the same, so turns within a rung share out jobs.
    """
    decided = np.zeros(locations)
    weights = np.arange(1, locations + 1)
    location = 0
    for _ in range(turn + 1):
        location = int(np.argmin(decided * weights))
        decided[location] += 1.0
    return location


class Climb:
    """Which candidate has reached which rung, and which are on their way.

    All of this follows from the jobs that were run, so it is found out again after a kill.
    """

    def __init__(
        self, jobs: Jobs, order: Ints, sizes: list[int], newcomers: dict[int, int]
    ) -> None:
        self.jobs, self.order, self.sizes = jobs, order, sizes
        self.newcomers = newcomers
        self.members: list[list[int]] = [[] for _ in sizes]
        """The candidates that were run at each rung."""
        self.heights: dict[int, int] = {}
        """The rung that each candidate has reached or is on its way to."""
        self._on_their_way: list[int] = []
        self._seen = 0
        """How much of the log of jobs is known."""
        self._next = [
            iter([each for each, start in newcomers.items() if start == rung])
            for rung in range(len(sizes))
        ]
        self._started = [0] * len(sizes)
        """The number of newcomers that each rung has started."""

    def look(self) -> None:
        """Take in the jobs that have ended, and those that others have begun."""
        jobs, new = self.jobs, self.jobs.log[self._seen :]
        self._seen = len(jobs.log)
        ended = {int(each) for _, candidates in new for each in candidates}
        running: list[int] = []
        if jobs.pending_count:
            running = np.flatnonzero(jobs.pending.any(axis=0)).tolist()
        for candidate in sorted({*ended, *running} - self.heights.keys()):
            self._find_goal(candidate)
        for candidate in sorted(ended):
            self._rise(candidate)

    def waiting(self, rung: int) -> list[int]:
        """Return the members of a rung that were not promoted."""
        return [each for each in self.members[rung] if self.heights[each] <= rung]

    def at_least(self, rung: int) -> list[int]:
        """Return the candidates that were run on all tasks of a rung, wherever they started."""
        return list(dict.fromkeys(each for members in self.members[rung:] for each in members))

    def waiting_job(self) -> PortfolioJob | None:
        """Return a job that a candidate on its way still needs and that nobody runs."""
        for candidate in list(self._on_their_way):
            tasks = self.order[: self.sizes[self.heights[candidate]]]
            if self.jobs.ran[tasks, candidate].all():
                self._on_their_way.remove(candidate)
                continue
            waiting = self.jobs.open[tasks, candidate]
            if waiting.any():
                return PortfolioJob(int(tasks[waiting.argmax()]), candidate)
        return None

    def send(self, candidate: int, rung: int) -> None:
        """Let a candidate go to a rung."""
        if candidate not in self.heights:
            self._started[self._start(candidate)] += 1
        self.heights[candidate] = rung
        self._on_their_way.append(candidate)
        self._rise(candidate)

    def start_newcomer(self, rung: int) -> bool:
        """Start the next candidate of a rung that nobody has tried; False if there is none."""
        for candidate in self._next[rung]:
            if candidate not in self.heights:
                self.send(candidate, rung)
                return True
        return False

    def start_anyone(self) -> bool:
        """Start a newcomer at the lowest rung that still has one."""
        return any(self.start_newcomer(rung) for rung in range(len(self.sizes)))

    def is_behind(self, rung: int) -> bool:
        """Return whether a rung can start a newcomer without spending more than the lowest."""
        spent = [size * count for size, count in zip(self.sizes, self._started, strict=True)]
        return spent[rung] + self.sizes[rung] <= spent[0]

    def _find_goal(self, candidate: int) -> None:
        """Find out how far a candidate is to go that was begun by others, or before a kill."""
        jobs = self.jobs
        paid = (jobs.ran & ~jobs.free | jobs.pending)[self.order, candidate]
        if paid.any():
            last = int(np.flatnonzero(paid)[-1])
            reached = int(np.searchsorted(self.sizes, last + 1))
            self.send(candidate, max(reached, self._start(candidate)))
        elif jobs.ran[self.order[0], candidate]:
            self.heights[candidate] = 0

    def _start(self, candidate: int) -> int:
        """Return the lowest rung of a candidate: 0 if it was known before."""
        return 0 if self.jobs.free[self.order[0], candidate] else self.newcomers[candidate]

    def _rise(self, candidate: int) -> None:
        """Make a candidate a member of the rungs that it has reached."""
        if candidate not in self.heights:
            return
        ran = self.jobs.ran[self.order, candidate]
        depth = len(ran) if ran.all() else int(np.argmin(ran))
        for rung in range(self._start(candidate), len(self.sizes)):
            if self.sizes[rung] <= depth and candidate not in self.members[rung]:
                self.members[rung].append(candidate)
                self.heights[candidate] = max(self.heights[candidate], rung)


class HyperBand(Builder):
    """Climbs from rung to rung, and picks k among the candidates that got furthest."""

    eta: int = ETA

    @cached_property
    def order(self) -> Ints:
        """The tasks, in one random order."""
        check_common_tasks(self.jobs, "mf")
        return panel_of(self.jobs, np.random.default_rng(self.seed))

    @cached_property
    def sizes(self) -> list[int]:
        """The number of tasks of each rung."""
        return rung_sizes(len(self.order), self.eta)

    @cached_property
    def newcomers(self) -> dict[int, int]:
        """All candidates in the order in which they start, and the rung that each starts at."""
        order = [int(each) for each in self.random_order()]
        return dict(zip(order, starting_rungs(self.sizes, len(order)), strict=True))

    @cached_property
    def climb(self) -> "Climb":
        """Which candidate has reached which rung."""
        return Climb(self.jobs, self.order, self.sizes, self.newcomers)

    def next_job(self) -> PortfolioJob | None:
        """Go on with a candidate, promote one (Algorithm 3), or start a newcomer."""
        climb = self.climb
        climb.look()
        while True:
            if (job := climb.waiting_job()) is not None:
                return job
            # What is known already costs nothing, and may decide the next promotion.
            if not (self._promote_by_rule() or climb.start_anyone() or self._promote_anyway()):
                return None

    def picks(self) -> Picks:
        """Choose greedily, each pick from the highest rung that still offers a choice."""
        self.climb.look()
        best = self._worst()
        chosen: list[int] = []
        reached = []
        for _ in range(self.k):
            rungs = [
                [each for each in self.climb.at_least(rung) if each not in chosen]
                for rung in range(len(self.sizes))
            ]
            if not rungs[0]:
                break
            # One of eta is picked, as one of eta is promoted: a few that got further are no choice.
            enough = min(self.eta * self.k, len(rungs[0]))
            rung = max(number for number, each in enumerate(rungs) if len(each) >= enough)
            chosen.append(self._best_of(rungs[rung], rung, best))
            best = np.fmin(best, self.jobs.results(self.order, np.array(chosen[-1:]))[:, 0])
            reached.append(float(self.aggregate(best[:, None])[0]))
        return Picks(np.array(chosen, dtype=np.int64), np.array(reached))

    def _promote_by_rule(self) -> bool:
        """Promote from the highest rung of which less than 1 / eta has been promoted."""
        for rung in reversed(range(len(self.sizes) - 1)):
            members = len(self.climb.members[rung])
            promoted = members - len(self.climb.waiting(rung))
            if members < self.eta * (promoted + 1):
                continue
            # A rung starts a newcomer now and then, until it has spent as much on these as the
            # lowest one has.
            if self.climb.is_behind(rung + 1) and self.climb.start_newcomer(rung + 1):
                return True
            if self._promote(rung):
                return True
        return False

    def _promote_anyway(self) -> bool:
        """Once every candidate was tried, go on with the best of those that were passed over."""
        return any(self._promote(rung) for rung in reversed(range(len(self.sizes) - 1)))

    def _promote(self, rung: int) -> bool:
        """Promote the best waiting candidate for the location whose turn it is (Algorithm 2)."""
        waiting, members = self.climb.waiting(rung), self.climb.members
        if not waiting:
            return False
        promoted = len(members[rung]) - len(waiting)
        location = location_in_turn(promoted, min(len(members[-1]) + 1, self.k))
        self.climb.send(self._best_of(waiting, rung, self._best_before(location)), rung + 1)
        return True

    def _best_before(self, location: int) -> Floats:
        """Return (tasks,), the losses of the fully evaluated picks before a location."""
        if location == 0:
            return self._worst()
        losses = self.jobs.results(self.order, np.array(self.climb.members[-1]))
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
