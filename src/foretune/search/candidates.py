"""The configurations that suggestions are chosen from: a recorded pool, or the whole space."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from scipy.spatial import KDTree

from foretune._base.arrays import Bools, Ints
from foretune.errors import ExhaustedError
from foretune.methods.contracts import Region
from foretune.search.local_search import NEIGHBOURS_PER_PARAMETER, Score, climb
from foretune.search.seeds import derive_seed
from foretune.space import Encoded, Space
from foretune.space.algorithms import Algorithms

SAMPLES_PER_ASK = 2_000
CLIMBERS = 10
LEAST_SAMPLES = 64
SPACING = 0.5
"""The length of a step from a good trial in the unit cube, and its least distance to all trials."""
LEAPS = 10
"""The first trials, which try configurations that were good elsewhere and steps from them. Later
ones also refine."""
VICINITY = 0.5
"""The largest distance in the unit cube between a good trial and one that refines it."""
REFINING_NEIGHBOURS = 50
"""The approximate number of neighbours that a refining search scores in each step."""
MANY_TRIALS = 500
"""After this number of trials a local search scores fewer configurations, because scoring them
takes most of the time of a suggestion."""
FEWER_NEIGHBOURS = 5
"""The neighbours along each hyperparameter after many trials."""
ATTEMPTS = 20


@dataclass(frozen=True, slots=True)
class ChosenConfig:
    """One chosen configuration, as a batch of one, and its row in the pool if there is one."""

    config: Encoded
    pool_index: int | None = None


class Candidates(Protocol):
    """Configurations to choose an untried one from."""

    def draw(self, tried: Encoded, *, seed: int, how: str, index: int) -> ChosenConfig:
        """Draw one untried configuration.

        how: `random`, `per-algorithm` (random, of the algorithm that was tried least), or `sobol`
            (number `index` of a Sobol sequence).
        """

    def best(self, score: Score, tried: Encoded, around: Encoded, *, seed: int) -> ChosenConfig:
        """Return the untried configuration with the highest score.

        around: good configurations to start from.
        """

    def best_of_one_list(self, score: Score, tried: Encoded, *, seed: int) -> ChosenConfig:
        """Do the same for scores that are drawn by chance, and score only once.

        A local search would draw scores again and again, and end at the luckiest draw.
        """


@dataclass(frozen=True)
class Pool:
    """A recorded list of configurations. Each ask scores all of them."""

    configs: Encoded
    region: Region | None = None
    """The choice is inside this region as long as it has untried configurations."""

    def draw(self, tried: Encoded, *, seed: int, how: str, index: int) -> ChosenConfig:
        """Draw one untried member, uniformly or as the nearest one to a Sobol point."""
        free = self._open_rows(tried)
        if how == "sobol":
            point = self.configs.space.sample(index + 1, seed=seed, how="sobol").take([index])
            return self._choice(int(free[nearest(point, self.configs.take(free))[0]]))
        if how == "per-algorithm":
            free = free[rarest_algorithm_rows(self.configs.take(free), tried)]
        return self._choice(int(np.random.default_rng(seed).choice(free)))

    def best(self, score: Score, tried: Encoded, around: Encoded, *, seed: int) -> ChosenConfig:
        """Return the untried member with the highest score; equal ones are chosen at random."""
        del around
        free = self._open_rows(tried)
        scores = score(self.configs)[free]
        top = free[scores == scores.max()]
        return self._choice(int(np.random.default_rng(seed).choice(top)))

    def best_of_one_list(self, score: Score, tried: Encoded, *, seed: int) -> ChosenConfig:
        """Return the untried member with the highest score."""
        return self.best(score, tried, tried.take([]), seed=seed)

    def _open_rows(self, tried: Encoded) -> Ints:
        untried = np.ones(len(self.configs), dtype=bool)
        for key in tried.keys().tolist():
            untried[self._rows.get(key, [])] = False
        free = np.flatnonzero(untried)
        if len(free) == 0:
            raise ExhaustedError(
                f"a suggestion must be untried, but all {len(self.configs)} configurations of the "
                "pool have been tried or are being tried: ask for fewer trials",
                rule="pool-exhausted",
                value=len(self.configs),
            )
        if self._inside is None:
            return free
        inside = free[self._inside[free]]
        return inside if len(inside) else free

    @cached_property
    def _rows(self) -> dict[bytes, list[int]]:
        """The rows of each configuration, by key."""
        rows: dict[bytes, list[int]] = {}
        for row, key in enumerate(self.configs.keys().tolist()):
            rows.setdefault(key, []).append(row)
        return rows

    @cached_property
    def _inside(self) -> Bools | None:
        return None if self.region is None else self.region.contains(self.configs)

    def _choice(self, index: int) -> ChosenConfig:
        return ChosenConfig(self.configs.take([index]), index)


@dataclass(frozen=True)
class WholeSpace:
    """All configurations of a space. Draws random ones, and climbs from the best of them."""

    space: Space
    region: Region | None = None
    """The choice is inside this region as long as it has untried configurations."""
    known: Encoded | None = None
    """Configurations that were good for past tasks. A surrogate that learnt from past tasks
    knows little beyond these, and its highest score is where its errors are largest: in the
    corners. Therefore the choice is among these and the vicinity of good trials, as long as
    some are left."""
    effect: Callable[[Encoded], Encoded] | None = None
    """Maps configurations that must give the same losses to equal ones."""
    samples: int = SAMPLES_PER_ASK
    least_samples: int = LEAST_SAMPLES
    attempts: int = ATTEMPTS
    """The number of random batches to draw before the neighbours of tried ones are looked at."""

    def draw(self, tried: Encoded, *, seed: int, how: str, index: int) -> ChosenConfig:
        """Draw one untried configuration, uniformly or from a Sobol sequence."""
        if how == "sobol":
            point = self.space.sample(index + 1, seed=seed, how="sobol").take([index])
            if not point.isin(tried).any():
                return ChosenConfig(point)
        if how == "per-algorithm":
            fresh = self._fresh(self.samples, tried, seed)
            return ChosenConfig(fresh.take(rarest_algorithm_rows(fresh, tried)[:1]))
        return ChosenConfig(self._fresh(1, tried, seed).take([0]))

    def best(self, score: Score, tried: Encoded, around: Encoded, *, seed: int) -> ChosenConfig:
        """Return the best of random samples and of local searches from these and from `around`.

        If good configurations are known, return the best of them, of steps from `around` and, after
        some trials, of local searches in the vicinity of `around`.
        """
        if self.known is not None and len(self._news(self.known, tried)):
            near = self._near(score, tried, around, seed) if len(around) else []
            return self._best_of(Encoded.concat([self.known, *near]), score, tried)
        samples = self._fresh(self.samples, tried, derive_seed(seed, 1))
        order = np.argsort(-score(samples), kind="stable")
        starts = Encoded.concat([samples.take(order[:CLIMBERS]), around])
        many = len(tried) > MANY_TRIALS
        count = FEWER_NEIGHBOURS if many else NEIGHBOURS_PER_PARAMETER
        step_seed = derive_seed(seed, 2)
        reached = climb(starts, score, seed=step_seed, per_parameter=count, halve=many)
        found = Encoded.concat([samples.take(order[:1]), self._inside(reached)])
        return self._best_of(found, score, tried)

    def best_of_one_list(self, score: Score, tried: Encoded, *, seed: int) -> ChosenConfig:
        """Return the best known configuration if there is one, else the best random sample."""
        if self.known is not None and len(self._news(self.known, tried)):
            return self._best_of(self.known, score, tried)
        samples = self._fresh(self.samples, tried, derive_seed(seed, 1))
        return self._best_of(samples, score, tried)

    def _best_of(self, found: Encoded, score: Score, tried: Encoded) -> ChosenConfig:
        """Return the best of the configurations with a new effect, or of the untried ones."""
        fresh = self._news(found, tried)
        if len(fresh) == 0:
            fresh = found.take(np.flatnonzero(~found.isin(tried)))
        return ChosenConfig(fresh.take([int(np.argmax(score(fresh)))]))

    def _news(self, found: Encoded, tried: Encoded) -> Encoded:
        """Return the configurations whose effect differs from that of every trial."""
        old = self._effective(found).isin(self._effective(tried))
        return found.take(np.flatnonzero(~old))

    def _effective(self, configs: Encoded) -> Encoded:
        return configs if self.effect is None else self.effect(configs)

    def _near(self, score: Score, tried: Encoded, around: Encoded, seed: int) -> list[Encoded]:
        """Return steps from good trials and, after some trials, refinements of these."""
        steps = self._steps(tried, around, seed)
        return [steps] if len(tried) < LEAPS else [steps, self._refine(score, around, seed)]

    def _steps(self, tried: Encoded, around: Encoded, seed: int) -> Encoded:
        """Return neighbours of good trials that are not next to any trial.

        Neighbouring numbers give similar losses, but different choices may not.
        """
        steps, origins = self.space.neighbourhoods(
            around,
            seed=derive_seed(seed, 3),
            per_parameter=NEIGHBOURS_PER_PARAMETER,
            sigma=SPACING,
        )
        if len(steps) == 0:
            return steps
        distances, _ = KDTree(self._effective(tried).x).query(self._effective(steps).x)
        numbers = [column for column, p in enumerate(self.space.parameters) if p.is_number]
        before, after = around.values[origins][:, numbers], steps.values[:, numbers]
        same_numbers = ((before == after) | (np.isnan(before) & np.isnan(after))).all(axis=1)
        return self._inside(steps.take(np.flatnonzero(same_numbers | (distances >= SPACING))))

    def _refine(self, score: Score, around: Encoded, seed: int) -> Encoded:
        """Climb from each good trial, and return the end points that are in their vicinity."""
        share = REFINING_NEIGHBOURS // len(self.space.parameters)
        reached = climb(
            around,
            score,
            seed=derive_seed(seed, 2),
            per_parameter=min(max(share, 1), NEIGHBOURS_PER_PARAMETER),
        )
        distances, _ = KDTree(around.x).query(reached.x)
        return self._inside(reached.take(np.flatnonzero(distances <= VICINITY)))

    def _inside(self, configs: Encoded) -> Encoded:
        if self.region is None:
            return configs
        return configs.take(np.flatnonzero(self.region.contains(configs)))

    def _fresh(self, n: int, tried: Encoded, seed: int) -> Encoded:
        size = max(n, self.least_samples)
        for attempt in range(self.attempts):
            # A region may hold one configuration only, so the second half looks everywhere.
            region = self.region if attempt < self.attempts // 2 else None
            sample = self.space.sample if region is None else region.sample
            samples = sample(size, seed=derive_seed(seed, attempt))
            fresh = np.flatnonzero(~samples.isin(tried))
            if len(fresh):
                return samples.take(fresh)
        # Random draws rarely meet the last free ones of a grid, but these are next to tried ones.
        beside, _ = self.space.neighbourhoods(tried, seed=derive_seed(seed, self.attempts))
        left = np.flatnonzero(~beside.isin(tried))
        if len(left):
            return beside.take(left)
        raise ExhaustedError(
            f"a suggestion must be untried, but {self.attempts * size} random "
            f"configurations of the space, and the neighbours of the {len(tried)} that were tried "
            "or are being tried, are all among these: ask for fewer trials, or widen the space",
            rule="space-exhausted",
            value=len(tried),
        )


def rarest_algorithm_rows(free: Encoded, tried: Encoded) -> Ints:
    """Return the rows of `free` whose algorithm was tried least; the first of equals."""
    algorithms = Algorithms.of(free.space)
    counts = np.bincount(algorithms.algorithm_of(tried), minlength=len(algorithms))
    of_free = algorithms.algorithm_of(free)
    present = np.unique(of_free)
    return np.flatnonzero(of_free == present[np.argmin(counts[present])])


def nearest(configs: Encoded, members: Encoded) -> Ints:
    """Return for each of `configs` the row of `members` that is nearest in the unit cube."""
    rows = [np.square(members.x - x).sum(axis=1).argmin() for x in configs.x]
    return np.array(rows, dtype=np.int64)
