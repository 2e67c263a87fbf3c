"""Algorithms as arms of a bandit, each with a surrogate of its own that shares nothing.

BanditBO (Nguyen et al., 2020): one Gaussian process an algorithm; the configuration with the
highest acquisition value over all of them is tried. Rising bandits (Li et al., 2020): a forest an
algorithm; the remaining algorithms are pulled in turn, and one is dropped when even its present
rate of improvement, kept up to the end, would not bring it past another's best.
"""

from dataclasses import dataclass

import numpy as np

from foretune.methods import (
    ForestSurrogate,
    Observations,
    Posterior,
    Prediction,
    StatelessLearner,
    Surrogate,
    Target,
)
from foretune.numerics import (
    GP,
    AnchoredFit,
    Bools,
    Floats,
    Ints,
    Standardise,
    scalarise,
    standardise,
)
from foretune.space import Algorithms, Encoded, Space

HORIZON = 200
"""Trials of the whole search, to which rising bandits look ahead (the CASH paper's number)."""
WINDOW = 7
"""Pulls over which an algorithm's rate of improvement is measured."""
ELSEWHERE = 1e3
"""How many standard deviations worse than all is believed of algorithms whose turn it is not."""


@dataclass(frozen=True, slots=True)
class IndependentPosterior(Posterior):
    """One process an algorithm; those that were never tried are believed to be like all others."""

    algorithms: Algorithms
    processes: tuple[GP | None, ...]
    mean: float
    spread: float
    best: float

    def predict(self, x: Encoded) -> Prediction:
        """Each configuration's belief is that of its own algorithm's process."""
        mean, std = np.full(len(x), self.mean), np.full(len(x), self.spread)
        for rows, inputs, process in self._parts(x):
            mean[rows], std[rows] = process.predict(inputs)
        return Prediction(mean, std)

    def sample(self, x: Encoded, n: int, *, seed: int) -> Floats:
        """Joint draws within an algorithm, independent ones between algorithms."""
        rng = np.random.default_rng(seed)
        draws = self.mean + self.spread * rng.standard_normal((n, len(x)))
        for rows, inputs, process in self._parts(x):
            draws[:, rows] = process.sample(inputs, n, rng)
        return draws

    def _parts(self, x: Encoded) -> list[tuple[Ints, Floats, GP]]:
        which = self.algorithms.algorithm_of(x)
        return [
            (
                np.flatnonzero(which == m),
                own_inputs(self.algorithms, m, x.take(which == m)),
                process,
            )
            for m, process in enumerate(self.processes)
            if process is not None and (which == m).any()
        ]


@dataclass(frozen=True, slots=True)
class IndependentSurrogate(Surrogate):
    """A Gaussian process for every algorithm, on its own hyperparameters."""

    algorithms: Algorithms
    fits: tuple[AnchoredFit, ...]

    @classmethod
    def of(cls, target: Target) -> "IndependentSurrogate":
        """Processes that know nothing yet."""
        algorithms = Algorithms.of(target.space)
        groups = [own_groups(target.space, columns) for columns in algorithms.columns]
        return cls(algorithms, tuple(AnchoredFit(groups=each) for each in groups))

    def condition(self, seen: Observations, *, seed: int) -> Posterior:
        """Every process after the trials of its own algorithm."""
        del seed
        good = seen.successes()
        # One loss stays as it was told: a process finds its unit, and earlier fits stay known.
        one = good.losses.shape[1] == 1
        y = good.losses[:, 0] if one else scalarise(good.losses, standardise)
        which = self.algorithms.algorithm_of(good.configs)
        of_all = Standardise.fit(y[~good.believed])
        processes = tuple(
            self._process(
                m, good.configs.take(which == m), y[which == m], good.believed[which == m], of_all
            )
            for m in range(len(self.algorithms))
        )
        return IndependentPosterior(
            self.algorithms, processes, of_all.shift, of_all.scale, float(y.min())
        )

    def _process(
        self, m: int, configs: Encoded, y: Floats, believed: Bools, of_all: Standardise
    ) -> GP | None:
        """The process of algorithm m; one whose losses are all equal borrows the unit of all."""
        if believed.all():
            return None
        x = own_inputs(self.algorithms, m, configs)
        hyper = self.fits[m].hyper(x[~believed], y[~believed])
        units = Standardise(float(y[0]), of_all.scale) if np.ptp(y) == 0.0 else None
        return GP.condition(x, y, hyper, units=units)


def own_inputs(algorithms: Algorithms, m: int, configs: Encoded) -> Floats:
    """(n, d), what algorithm m reads; one constant where it reads nothing."""
    columns = algorithms.columns[m]
    return configs.x[:, columns] if len(columns) else np.zeros((len(configs), 1))


def own_groups(space: Space, columns: Ints) -> Ints:
    """(d,), which of an algorithm's columns belong to one hyperparameter, as numbers from 0 on."""
    if len(columns) == 0:
        return np.zeros(1, dtype=np.int64)
    return np.unique(space.column_groups[columns], return_inverse=True)[1]


@dataclass(frozen=True, slots=True)
class OneArmPosterior(Posterior):
    """A posterior that holds for one algorithm; all others are believed hopeless."""

    algorithms: Algorithms
    arm: int
    own: Posterior

    @property
    def best(self) -> float:
        """The arm's lowest loss, transformed."""
        return self.own.best

    def predict(self, x: Encoded) -> Prediction:
        """The arm's belief, moved out of reach for configurations of other algorithms."""
        belief = self.own.predict(x)
        return Prediction(belief.mean + self._out_of_reach(x), belief.std)

    def sample(self, x: Encoded, n: int, *, seed: int) -> Floats:
        """The arm's draws, moved in the same way."""
        return self.own.sample(x, n, seed=seed) + self._out_of_reach(x)

    def _out_of_reach(self, x: Encoded) -> Floats:
        return np.where(self.algorithms.algorithm_of(x) == self.arm, 0.0, ELSEWHERE)


@dataclass(frozen=True, slots=True)
class RisingBanditSurrogate(Surrogate):
    """Pulls the remaining algorithms in turn, each by a forest of its own trials."""

    algorithms: Algorithms

    def condition(self, seen: Observations, *, seed: int) -> Posterior:
        """The forest of the algorithm whose turn it is."""
        which = self.algorithms.algorithm_of(seen.configs)
        y = np.where(seen.believed, np.nan, _as_one(seen))
        arm = turn(which, y, len(self.algorithms))
        own = np.flatnonzero(which == arm)
        # An algorithm without a success borrows the forest of all.
        rows = own if np.isfinite(y[own]).any() else np.arange(len(which))
        trials = Observations(seen.configs.take(rows), seen.losses[rows], seen.believed[rows])
        return OneArmPosterior(self.algorithms, arm, ForestSurrogate().condition(trials, seed=seed))


def turn(which: Ints, y: Floats, algorithms: int) -> int:
    """The next arm: of those that remain, the least pulled one, the first of ties.

    `which` (n,) are the pulled arms in their order, y (n,) their losses, NaN where they failed.
    """
    pulls = np.bincount(which, minlength=algorithms)
    left = remaining(which, y, algorithms)
    return int(left[np.argmin(pulls[left])])


def remaining(which: Ints, y: Floats, algorithms: int) -> Ints:
    """The arms that may still win: looked at whenever each arm left was pulled once more."""
    left = np.arange(algorithms)
    pulls = np.zeros(algorithms, dtype=np.int64)
    rounds = 0
    for n, arm in enumerate(which.tolist(), start=1):
        pulls[arm] += 1
        if pulls[left].min() > rounds:
            rounds = int(pulls[left].min())
            left = _undominated_arms(left, which[:n], y[:n])
    return left


def _undominated_arms(left: Ints, which: Ints, y: Floats) -> Ints:
    """Of the arms `left`, those whose lowest possible loss is below the best loss of the others."""
    # What remains of the horizon is shared out among the arms that are left.
    ahead = max(HORIZON - len(which), 0) / len(left)
    bests = np.full(len(left), np.inf)
    reach = np.full(len(left), -np.inf)
    for place, arm in enumerate(left.tolist()):
        losses = y[which == arm]
        if np.isfinite(losses).sum() == 0:
            continue
        running = np.minimum.accumulate(np.where(np.isfinite(losses), losses, np.inf))
        bests[place] = running[-1]
        if len(running) > WINDOW and np.isfinite(running[-1 - WINDOW]):
            rate = (running[-1 - WINDOW] - running[-1]) / WINDOW
            reach[place] = running[-1] - rate * ahead
    keep = (reach < bests.min()) | (bests == bests.min())
    kept: Ints = left[keep]
    return kept


def _as_one(seen: Observations) -> Floats:
    """(n,), the losses as one, NaN where a trial failed."""
    y = np.full(len(seen), np.nan)
    good = seen.is_success
    if good.any():
        y[good] = scalarise(seen.losses[good], standardise)
    return y


def bandit_bo() -> StatelessLearner:
    """The learner of BanditBO."""
    return StatelessLearner("bandit-bo", IndependentSurrogate.of)


def rising_bandits() -> StatelessLearner:
    """The learner of rising bandits on forests."""
    return StatelessLearner(
        "rising-bandits", lambda target: RisingBanditSurrogate(Algorithms.of(target.space))
    )
