"""Algorithms as arms of a bandit. Each has its own surrogate, and they share nothing.

BanditBO (Nguyen et al., 2020) has one Gaussian process for each algorithm, and tries the
configuration with the highest acquisition value over all of them. Rising bandits (Li et al., 2020)
have one forest for each algorithm and pull the remaining algorithms in turn. An algorithm is
dropped if its present rate of improvement, kept up to the end, would not bring it past the best of
another.
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
"""The trials of a search whose budget is not known (as in the CASH paper)."""
WINDOW = 7
"""The number of pulls that the rate of improvement of an algorithm is measured over."""
ELSEWHERE = 1e3
"""The number of standard deviations by which algorithms that must wait are predicted worse."""


@dataclass(frozen=True, slots=True)
class IndependentPosterior(Posterior):
    """One process for each algorithm; an untried one is predicted like all others together."""

    algorithms: Algorithms
    processes: tuple[GP | None, ...]
    mean: float
    spread: float
    best: float

    def predict(self, x: Encoded) -> Prediction:
        """Return for each configuration the prediction of its own algorithm's process."""
        mean, std = np.full(len(x), self.mean), np.full(len(x), self.spread)
        for rows, inputs, process in self._parts(x):
            mean[rows], std[rows] = process.predict(inputs)
        return Prediction(mean, std)

    def sample(self, x: Encoded, n: int, *, seed: int) -> Floats:
        """Draw jointly within an algorithm, and independently between algorithms."""
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
        """Make processes that know nothing yet."""
        algorithms = Algorithms.of(target.space)
        groups = [own_groups(target.space, columns) for columns in algorithms.columns]
        return cls(algorithms, tuple(AnchoredFit(groups=each) for each in groups))

    def condition(self, seen: Observations, *, seed: int) -> Posterior:
        """Condition every process on the trials of its own algorithm."""
        del seed
        good = seen.successes()
        # One loss stays as it was told: the process finds its unit, and earlier fits stay known.
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
        """Return the process of algorithm m; if its losses are equal, it has the unit of all."""
        if believed.all():
            return None
        x = own_inputs(self.algorithms, m, configs)
        hyper = self.fits[m].hyper(x[~believed], y[~believed])
        units = Standardise(float(y[0]), of_all.scale) if np.ptp(y) == 0.0 else None
        return GP.condition(x, y, hyper, units=units)


def own_inputs(algorithms: Algorithms, m: int, configs: Encoded) -> Floats:
    """Return (n, d), the inputs of algorithm m; one constant if it has none."""
    columns = algorithms.columns[m]
    return configs.x[:, columns] if len(columns) else np.zeros((len(configs), 1))


def own_groups(space: Space, columns: Ints) -> Ints:
    """Return (d,): columns of one hyperparameter share a number, counted from 0."""
    if len(columns) == 0:
        return np.zeros(1, dtype=np.int64)
    return np.unique(space.column_groups[columns], return_inverse=True)[1]


@dataclass(frozen=True, slots=True)
class OneArmPosterior(Posterior):
    """A posterior for one algorithm; all others are predicted to be hopeless."""

    algorithms: Algorithms
    arm: int
    own: Posterior

    @property
    def best(self) -> float:
        """The lowest loss of the arm, transformed."""
        return self.own.best

    def predict(self, x: Encoded) -> Prediction:
        """Return the arm's prediction, made hopeless for configurations of other algorithms."""
        belief = self.own.predict(x)
        return Prediction(belief.mean + self._out_of_reach(x), belief.std)

    def sample(self, x: Encoded, n: int, *, seed: int) -> Floats:
        """Return the arm's draws, moved in the same way."""
        return self.own.sample(x, n, seed=seed) + self._out_of_reach(x)

    def _out_of_reach(self, x: Encoded) -> Floats:
        return np.where(self.algorithms.algorithm_of(x) == self.arm, 0.0, ELSEWHERE)


@dataclass(frozen=True, slots=True)
class RisingBanditSurrogate(Surrogate):
    """Pulls the remaining algorithms in turn, each by a forest of its own trials."""

    algorithms: Algorithms
    horizon: int = HORIZON
    """The trials of the whole search."""

    def condition(self, seen: Observations, *, seed: int) -> Posterior:
        """Return the forest of the algorithm whose turn it is."""
        which = self.algorithms.algorithm_of(seen.configs)
        y = np.where(seen.believed, np.nan, _as_one(seen))
        arm = turn(which, y, len(self.algorithms), self.horizon)
        own = np.flatnonzero(which == arm)
        # An algorithm without a success uses the forest of all trials.
        rows = own if np.isfinite(y[own]).any() else np.arange(len(which))
        trials = Observations(seen.configs.take(rows), seen.losses[rows], seen.believed[rows])
        return OneArmPosterior(self.algorithms, arm, ForestSurrogate().condition(trials, seed=seed))


def turn(which: Ints, y: Floats, algorithms: int, horizon: int = HORIZON) -> int:
    """Return the next arm: the least pulled one of those that remain, and the first of ties.

    `which` (n,) are the pulled arms in their order; y (n,) are their losses, NaN if they failed.
    """
    pulls = np.bincount(which, minlength=algorithms)
    left = remaining(which, y, algorithms, horizon)
    return int(left[np.argmin(pulls[left])])


def remaining(which: Ints, y: Floats, algorithms: int, horizon: int = HORIZON) -> Ints:
    """Return the arms that may still win. They change when each of them was pulled once more."""
    left = np.arange(algorithms)
    pulls = np.zeros(algorithms, dtype=np.int64)
    rounds = 0
    for n, arm in enumerate(which.tolist(), start=1):
        pulls[arm] += 1
        if pulls[left].min() > rounds:
            rounds = int(pulls[left].min())
            left = _undominated_arms(left, which[:n], y[:n], horizon)
    return left


def _undominated_arms(left: Ints, which: Ints, y: Floats, horizon: int) -> Ints:
    """Return the arms of `left` whose lowest possible loss is below the best loss of the others."""
    # As in the authors' code an arm may get all trials that are left, not its share of them.
    ahead = max(horizon - len(which), 0)
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
    """Return (n,), the losses as one; NaN if a trial failed."""
    y = np.full(len(seen), np.nan)
    good = seen.is_success
    if good.any():
        y[good] = scalarise(seen.losses[good], standardise)
    return y


def bandit_bo() -> StatelessLearner:
    """Make the learner of BanditBO."""
    return StatelessLearner("bandit-bo", IndependentSurrogate.of)


def rising_bandits() -> StatelessLearner:
    """Make the learner of rising bandits on forests."""
    return StatelessLearner("rising-bandits", _rising_bandits)


def _rising_bandits(target: Target) -> Surrogate:
    horizon = HORIZON if target.budget is None else target.budget
    return RisingBanditSurrogate(Algorithms.of(target.space), horizon)
