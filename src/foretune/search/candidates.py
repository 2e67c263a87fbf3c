"""Where suggestions may come from: a recorded pool, or the space itself."""

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
"""How far a step from a good trial goes in the unit cube, and how far from all trials it ends."""
LEAPS = 10
"""So many trials try what was good elsewhere, and steps from it; later ones also refine."""
VICINITY = 0.5
"""How far from a good trial, in the unit cube, what refines it may be."""
REFINING_NEIGHBOURS = 50
"""About how many neighbours a refining search looks at for each step."""
MANY_TRIALS = 500
"""After more trials a local search looks at fewer configurations: to score them is most of the time
of a suggestion, and from here on each costs as much as it ever will."""
FEWER_NEIGHBOURS = 5
"""Along each hyperparameter, after many trials."""
ATTEMPTS = 20


@dataclass(frozen=True, slots=True)
class ChosenConfig:
    """One chosen configuration, as a batch of one, and its row in the pool if there is one."""

    config: Encoded
    pool_index: int | None = None


class Candidates(Protocol):
    """A source of configurations that have not been tried yet."""

    def draw(self, tried: Encoded, *, seed: int, how: str, index: int) -> ChosenConfig:
        """One untried configuration.

        how: at `random`, at random of the algorithm that was tried least (`per-algorithm`), or as
            number `index` of a `sobol` sequence.
        """

    def best(self, score: Score, tried: Encoded, around: Encoded, *, seed: int) -> ChosenConfig:
        """The untried configuration of the highest score; `around` are good ones to start from."""

    def best_of_one_list(self, score: Score, tried: Encoded, *, seed: int) -> ChosenConfig:
        """The same for scores that are drawn by chance: they are asked for once.

        A local search would ask again and again, and end at whatever was drawn highest.
        """


@dataclass(frozen=True)
class Pool:
    """A recorded list of configurations, all of which are scored at every ask."""

    configs: Encoded
    region: Region | None = None
    """Where to look as long as there is something left in it."""

    def draw(self, tried: Encoded, *, seed: int, how: str, index: int) -> ChosenConfig:
        """One untried member, uniformly, or the nearest one to a Sobol point."""
        free = self._open_rows(tried)
        if how == "sobol":
            point = self.configs.space.sample(index + 1, seed=seed, how="sobol").take([index])
            return self._choice(int(free[nearest(point, self.configs.take(free))[0]]))
        if how == "per-algorithm":
            free = free[rarest_algorithm_rows(self.configs.take(free), tried)]
        return self._choice(int(np.random.default_rng(seed).choice(free)))

    def best(self, score: Score, tried: Encoded, around: Encoded, *, seed: int) -> ChosenConfig:
        """The best-scored untried member, ties broken at random."""
        del around
        free = self._open_rows(tried)
        scores = score(self.configs)[free]
        top = free[scores == scores.max()]
        return self._choice(int(np.random.default_rng(seed).choice(top)))

    def best_of_one_list(self, score: Score, tried: Encoded, *, seed: int) -> ChosenConfig:
        """The best-scored untried member: the pool is scored once in any case."""
        return self.best(score, tried, tried.take([]), seed=seed)

    def _open_rows(self, tried: Encoded) -> Ints:
        untried = np.ones(len(self.configs), dtype=bool)
        for key in tried.keys().tolist():
            untried[self._rows.get(key, [])] = False
        free = np.flatnonzero(untried)
        if len(free) == 0:
            raise ExhaustedError(
                f"a suggestion must be untried, but all {len(self.configs)} configurations of the "
                "pool have been tried or are being tried: ask for fewer trials"
            )
        if self._inside is None:
            return free
        inside = free[self._inside[free]]
        return inside if len(inside) else free

    @cached_property
    def _rows(self) -> dict[bytes, list[int]]:
        """Where each configuration stands; every ask looks up what was tried."""
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
    """All configurations of a space: random ones, then local search from the best of them."""

    space: Space
    region: Region | None = None
    """Where to look as long as there is something left in it."""
    known: Encoded | None = None
    """What was good for past tasks. A surrogate that past tasks taught knows little beyond these,
    and a search for its highest score would end where it errs most: in the corners. So as long as
    some of these are left, the choice is among them and what is near good trials."""
    effect: Callable[[Encoded], Encoded] | None = None
    """Equal for configurations of which one tells all about the others."""
    samples: int = SAMPLES_PER_ASK

    def draw(self, tried: Encoded, *, seed: int, how: str, index: int) -> ChosenConfig:
        """One untried configuration, uniformly or from a Sobol sequence."""
        if how == "sobol":
            point = self.space.sample(index + 1, seed=seed, how="sobol").take([index])
            if not point.isin(tried).any():
                return ChosenConfig(point)
        if how == "per-algorithm":
            fresh = self._fresh(self.samples, tried, seed)
            return ChosenConfig(fresh.take(rarest_algorithm_rows(fresh, tried)[:1]))
        return ChosenConfig(self._fresh(1, tried, seed).take([0]))

    def best(self, score: Score, tried: Encoded, around: Encoded, *, seed: int) -> ChosenConfig:
        """The best of random samples and of local searches from the best samples and `around`.

        Where something is known: the best of that, of steps from `around`, and after some trials
        of what a local search finds in their vicinity.
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
        """The best of random samples; where something is known, of that."""
        if self.known is not None and len(self._news(self.known, tried)):
            return self._best_of(self.known, score, tried)
        samples = self._fresh(self.samples, tried, derive_seed(seed, 1))
        return self._best_of(samples, score, tried)

    def _best_of(self, found: Encoded, score: Score, tried: Encoded) -> ChosenConfig:
        """The one of the highest score that no trial tells all about; else an untried one."""
        fresh = self._news(found, tried)
        if len(fresh) == 0:
            fresh = found.take(np.flatnonzero(~found.isin(tried)))
        return ChosenConfig(fresh.take([int(np.argmax(score(fresh)))]))

    def _news(self, found: Encoded, tried: Encoded) -> Encoded:
        """Those that differ in effect from every trial."""
        old = self._effective(found).isin(self._effective(tried))
        return found.take(np.flatnonzero(~old))

    def _effective(self, configs: Encoded) -> Encoded:
        return configs if self.effect is None else self.effect(configs)

    def _near(self, score: Score, tried: Encoded, around: Encoded, seed: int) -> list[Encoded]:
        """Steps from good trials, and after some trials what refines these."""
        steps = self._steps(tried, around, seed)
        return [steps] if len(tried) < LEAPS else [steps, self._refine(score, around, seed)]

    def _steps(self, tried: Encoded, around: Encoded, seed: int) -> Encoded:
        """Neighbours of good trials that are not next to any trial.

        Numbers next to each other tell the same, and all the more so where a loss is rounded;
        listed choices do not, however many there are.
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
        """What a local search from each good trial ends at, if that is in their vicinity."""
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
        for attempt in range(ATTEMPTS):
            # A region may be as small as one configuration: the second half looks everywhere.
            region = self.region if attempt < ATTEMPTS // 2 else None
            sample = self.space.sample if region is None else region.sample
            samples = sample(max(n, LEAST_SAMPLES), seed=derive_seed(seed, attempt))
            fresh = np.flatnonzero(~samples.isin(tried))
            if len(fresh):
                return samples.take(fresh)
        # Where few are left of a grid, chance rarely meets them, but they lie beside what is tried.
        beside, _ = self.space.neighbourhoods(tried, seed=derive_seed(seed, ATTEMPTS))
        left = np.flatnonzero(~beside.isin(tried))
        if len(left):
            return beside.take(left)
        raise ExhaustedError(
            f"a suggestion must be untried, but {ATTEMPTS * max(n, LEAST_SAMPLES)} random "
            f"configurations of the space, and the neighbours of the {len(tried)} that were tried "
            "or are being tried, are all among these: ask for fewer trials, or widen the space"
        )


def rarest_algorithm_rows(free: Encoded, tried: Encoded) -> Ints:
    """The rows of `free` whose algorithm was tried least of those in it, the first of ties."""
    algorithms = Algorithms.of(free.space)
    counts = np.bincount(algorithms.algorithm_of(tried), minlength=len(algorithms))
    of_free = algorithms.algorithm_of(free)
    present = np.unique(of_free)
    return np.flatnonzero(of_free == present[np.argmin(counts[present])])


def nearest(configs: Encoded, members: Encoded) -> Ints:
    """For each of `configs` the row of `members` that lies nearest in the unit cube."""
    rows = [np.square(members.x - x).sum(axis=1).argmin() for x in configs.x]
    return np.array(rows, dtype=np.int64)
