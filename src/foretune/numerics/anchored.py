"""Fits that start warm and yet depend on nothing but the observations in their order.

An optimiser that resumes must suggest what it would have suggested without the interruption, so a
fit may not start from whatever the process happened to fit before. Instead the prefixes of 4, 8,
16, 32, ... observations are anchors: each is fitted from the previous anchor's result and from the
prior's mode, and every other prefix is fitted from the last anchor before it. A running optimiser
finds its anchors in the cache and pays one warm fit a step; a resumed one computes them again, at
a cost that the last of them dominates.

Thousands of observations are more than an exact process can take in at every step. Hyperparameters
are then fitted to a part of them, now and then, from an early anchor; and the process is
conditioned on a part of them at every step.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from foretune._base.arrays import Floats, Ints
from foretune.numerics.gp import GP, TOLERANCE, fit_hyper
from foretune.numerics.hyper import GPHyper
from foretune.numerics.kernels import squared_distances
from foretune.numerics.remembered import BoundedCache
from foretune.numerics.transforms import Standardise

FIRST_ANCHOR = 4
LARGEST_FIT = 500
"""Hyperparameters are fitted to at most so many observations: an iteration costs O(n³)."""
LARGEST_GP = 500
"""The process is conditioned on at most so many observations."""
REFIT_EVERY = 50
"""Hyperparameters of more than `LARGEST_FIT` observations are fitted to a multiple of these."""
EARLY_ANCHOR = 64
"""Fits to more than `LARGEST_FIT` observations start from this anchor: later ones cost more than
they save an optimiser that resumes."""
TOLERANCE_OF_PARTS = 1e-4
"""Fits to a part of the observations stop earlier than others: the last steps of such a fit change
its value by about a tenth, and take a quarter of its time."""
SPREAD_AMONG = 4000
"""The most observations among which those that lie far apart are looked for."""
CACHED = 64


Output: TypeAlias = Callable[[Floats], Floats]
"""Told losses (n,), or (n, c) with whatever else they need -> what the process models (n,)."""


def as_told(y: Floats) -> Floats:
    """The output that changes nothing: losses (n,) go to the process as they are."""
    return y


@dataclass(frozen=True, slots=True)
class AnchorLimits:
    """How many observations a fit takes in; the names are those of the constants."""

    largest_fit: int = field(default_factory=lambda: LARGEST_FIT)
    largest_gp: int = LARGEST_GP
    refit_every: int = REFIT_EVERY
    early_anchor: int = EARLY_ANCHOR


class AnchoredFit:
    """Fits Gaussian processes to growing observations: pure in value, cached for speed.

    Rank-based scores of the first losses change with every later one. Therefore the raw losses
    are passed, and `output` is applied to each prefix on its own: the anchors then stay the same.
    Where the least output is not the best trial, `order` says which is. For `groups` and
    `prior_weight` see `gp.fit_hyper`.
    """

    def __init__(
        self,
        *,
        output: Output = as_told,
        order: Output | None = None,
        units: Standardise | None = None,
        groups: Ints | None = None,
        prior_weight: float = 1.0,
        limits: AnchorLimits | None = None,
        fit: Callable[..., GPHyper] | None = None,
    ) -> None:
        self.output = output
        self.order = output if order is None else order
        self.units = units
        self.groups = groups
        self.prior_weight = prior_weight
        self.limits = limits or AnchorLimits()
        self._fit_hyper = fit or fit_hyper
        self._known: BoundedCache[GPHyper] = BoundedCache(CACHED)

    def gp(self, x: Floats, y: Floats) -> GP:
        """The process fitted to y (n,) or (n, c) at x (n, d), in the order in which they came."""
        hyper, z = self.hyper(x, y), self.output(y)
        keep = informative_subset(x, self.order(y), self.limits.largest_gp)
        return GP.condition(x[keep], z[keep], hyper, units=self.units)

    def hyper(self, x: Floats, y: Floats) -> GPHyper:
        """The fitted hyperparameters alone."""
        if len(x) > self.limits.largest_fit:
            n = max(len(x) - len(x) % self.limits.refit_every, self.limits.largest_fit)
            x, y = x[:n], y[:n]
        return self._known.get(_key(x, y), lambda: self._fit(x, y))

    def _fit(self, x: Floats, y: Floats) -> GPHyper:
        z = self.output(y)
        keep = np.arange(len(x))
        if len(x) > self.limits.largest_fit:
            best_first = z if self.order is self.output else self.order(y)
            keep = informative_subset(x, best_first, self.limits.largest_fit)
        return self._fit_hyper(
            x[keep],
            z[keep],
            starts=self._starts(x, y),
            units=self.units,
            groups=self.groups,
            prior_weight=self.prior_weight,
            tolerance=TOLERANCE if len(x) <= self.limits.largest_fit else TOLERANCE_OF_PARTS,
        )

    def _starts(self, x: Floats, y: Floats) -> tuple[GPHyper, ...]:
        n = len(x)
        default = GPHyper.default(np.arange(x.shape[1]) if self.groups is None else self.groups)
        anchor = last_anchor(n) if n <= self.limits.largest_fit else self.limits.early_anchor
        if n <= FIRST_ANCHOR:
            return (default,)
        if n == anchor:
            half = n // 2
            return (default, self.hyper(x[:half], y[:half]))
        return (self.hyper(x[:anchor], y[:anchor]),)


def last_anchor(n: int) -> int:
    """The largest of 4, 8, 16, ... that is at most n (4 for fewer)."""
    anchor = FIRST_ANCHOR
    while 2 * anchor <= n:
        anchor *= 2
    return anchor


def informative_subset(x: Floats, y: Floats, size: int) -> Ints:
    """Ascending indices of at most `size` observations that say most about where to look next.

    All, where they are few enough; else the best fifth, the latest fifth, and then always the
    observation farthest from those already chosen.
    """
    n = len(x)
    if n <= size:
        return np.arange(n)
    fifth = size // 5
    taken = np.union1d(np.argsort(y, kind="stable")[:fifth], np.arange(n - fifth, n))
    left = np.ones(n, dtype=bool)
    left[taken] = False
    rest = np.flatnonzero(left)
    if len(rest) > SPREAD_AMONG:
        rest = rest[np.linspace(0, len(rest) - 1, SPREAD_AMONG).astype(np.int64)]
    spread = farthest_first(x[rest], x[taken], size - len(taken))
    return np.sort(np.concatenate([taken, rest[spread]]))


def farthest_first(x: Floats, taken: Floats, size: int) -> Ints:
    """Rows of x (m, d), each the farthest from those in `taken` (k, d) and from those before it."""
    centre = taken.mean(axis=0)
    gap = squared_distances(x - centre, taken - centre).min(axis=1)
    chosen = np.empty(size, dtype=np.int64)
    for place in range(size):
        row = int(np.argmax(gap))
        chosen[place] = row
        difference = x - x[row]
        np.minimum(gap, np.einsum("ij,ij->i", difference, difference), out=gap)
        gap[row] = -1.0  # below the gap of an exact duplicate that is not taken yet
    return chosen


def _key(x: Floats, y: Floats) -> tuple[int, ...]:
    """Return a key of these values. A cryptographic digest takes ten times as long."""
    return (*x.shape, hash(x.tobytes()), hash(y.tobytes()))
