"""Fits that start warm, but depend only on the observations and their order.

An optimiser that resumes must suggest what it would have suggested without the interruption, so a
fit must not start from an earlier fit of the same process. Instead the prefixes of 4, 8, 16, 32,
... observations are anchors. Each anchor is fitted from the result of the previous one and from
the prior's mode; every other prefix is fitted from the last anchor before it. A running optimiser
finds its anchors in the cache and pays for one warm fit at each step. A resumed optimiser computes
them again; the last of them takes most of the time.

An exact process cannot take in thousands of observations at every step. Then hyperparameters are
fitted to a part of them, not at each step, from an early anchor; and the process is conditioned on
a part of them at every step.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from foretune._base.arrays import Floats, Ints
from foretune.numerics.bounded_cache import BoundedCache
from foretune.numerics.gp import GP, TOLERANCE, fit_hyper
from foretune.numerics.hyper import GPHyper
from foretune.numerics.kernels import squared_distances
from foretune.numerics.transforms import Standardise

FIRST_ANCHOR = 4
LARGEST_FIT = 500
"""The most observations for a fit of hyperparameters: an iteration costs O(n³)."""
LARGEST_GP = 500
"""The most observations that the process is conditioned on."""
REFIT_EVERY = 50
"""With more than `LARGEST_FIT` observations, each multiple of this number is fitted anew."""
EARLY_ANCHOR = 64
"""The anchor from which fits to more than `LARGEST_FIT` observations start. An optimiser that
resumes would spend more time on later anchors than they save."""
TOLERANCE_OF_PARTS = 1e-4
"""Fits to a part of the observations stop earlier: their last steps change the value by about a
tenth, and take a quarter of the time."""
SPREAD_AMONG = 4000
"""The most observations that are searched for those that lie far apart."""
CACHED = 64


Output: TypeAlias = Callable[[Floats], Floats]
"""Told losses (n,), or (n, c) with further columns -> what the process models (n,)."""


def as_told(y: Floats) -> Floats:
    """Return the losses (n,) unchanged."""
    return y


@dataclass(frozen=True, slots=True)
class AnchorLimits:
    """The numbers of observations that a fit reads, named as the constants."""

    largest_fit: int = field(default_factory=lambda: LARGEST_FIT)
    largest_gp: int = LARGEST_GP
    refit_every: int = REFIT_EVERY
    early_anchor: int = EARLY_ANCHOR


class AnchoredFit:
    """Fits Gaussian processes to growing observations. The cache changes no result.

    Rank-based scores of the first losses change with every later loss. Therefore callers pass the
    raw losses, and `output` is applied to each prefix on its own, so that anchors stay the same.
    `order` gives values whose least is the best trial; default: the output. For `groups` and
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
        """Return the process fitted to y (n,) or (n, c) at x (n, d), in the order of the trials."""
        hyper, z = self.hyper(x, y), self.output(y)
        keep = informative_subset(x, self.order(y), self.limits.largest_gp)
        return GP.condition(x[keep], z[keep], hyper, units=self.units)

    def hyper(self, x: Floats, y: Floats) -> GPHyper:
        """Return the fitted hyperparameters alone."""
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
    """Return the largest of 4, 8, 16, ... that is at most n, and 4 for smaller n."""
    anchor = FIRST_ANCHOR
    while 2 * anchor <= n:
        anchor *= 2
    return anchor


def informative_subset(x: Floats, y: Floats, size: int) -> Ints:
    """Return ascending indices of the `size` observations that say most about where to look next.

    All are returned if they are few enough. Otherwise the best fifth and the latest fifth are
    chosen, and then again and again the observation farthest from those already chosen.
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
    """Return `size` rows of x (m, d), each the farthest from `taken` (k, d) and earlier rows."""
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
