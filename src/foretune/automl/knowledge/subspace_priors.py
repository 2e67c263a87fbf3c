"""Uses a prior of a whole space for a task in a part of that space.

Every configuration of the part belongs to the whole, so a search that is narrowed to some
estimators can use the prior of the whole space. The two may also be of different versions: a
hyperparameter that only the whole has, such as the number of rounds, gets its default there, and a
prior knows nothing of a hyperparameter that only the part has.
"""

from dataclasses import dataclass, replace

import numpy as np

from foretune.errors import MethodError
from foretune.experience.alignment.restriction import reencode
from foretune.methods.contracts import (
    Observations,
    Posterior,
    Prior,
    Region,
    Surrogate,
    Target,
)
from foretune.methods.past_data import check_space
from foretune.methods.wrapped import WrappedPosterior, WrappedPrior, WrappedSurrogate
from foretune.space import Encoded, Space


def lift_prior(prior: Prior, whole: Space, part: Space, *, first: Encoded | None = None) -> Prior:
    """Turn a prior of `whole` into one for targets in `part`; unchanged if both are equal.

    first: the opening of the search, instead of the prior's. The part may lack the best
    configurations of the prior's opening, and the others only complement these.
    """
    return prior if whole == part else LiftedPrior(prior, whole, part, first)


@dataclass(frozen=True, slots=True)
class SpaceLift:
    """Translates configurations of a part into the whole."""

    whole: Space
    pool: Encoded | None = None
    lifted_pool: Encoded | None = None
    """The same pool in the whole. It is one object, so that surrogates recognise it."""

    def __call__(self, configs: Encoded) -> Encoded:
        """Return the same configurations in the whole."""
        if self.lifted_pool is not None and configs is self.pool:
            return self.lifted_pool
        there, rows = reencode(configs, self.whole, drop_unknown=True)
        if len(rows) < len(configs):
            missing = np.setdiff1d(np.arange(len(configs)), rows)[0]
            raise MethodError(
                "a prior of a larger space needs configurations of that space, but "
                f"{configs.take(missing).dicts()[0]} does not lie in {self.whole!r}: learn it from "
                "experience in the target's space",
                rule="configuration-outside-whole-space",
            )
        return there


@dataclass(frozen=True, slots=True)
class LiftedPosterior(WrappedPosterior):
    """A posterior over the whole that predicts configurations of the part."""

    inner: Posterior
    lift: SpaceLift

    def translate(self, x: Encoded) -> Encoded:
        """Return the same configurations in the whole."""
        return self.lift(x)


@dataclass(frozen=True, slots=True)
class LiftedSurrogate(WrappedSurrogate):
    """A surrogate of the whole that is given trials in the part."""

    inner: Surrogate
    lift: SpaceLift

    def translate(self, seen: Observations) -> Observations:
        """Return the same trials in the whole."""
        return replace(seen, configs=self.lift(seen.configs))

    def wrap(self, posterior: Posterior) -> Posterior:
        """Return the posterior for the part."""
        return LiftedPosterior(posterior, self.lift)


@dataclass(frozen=True, slots=True)
class LiftedPrior(WrappedPrior):
    """A prior of the whole, for targets in the part."""

    inner: Prior
    whole: Space
    part: Space
    first: Encoded | None = None
    """The opening; that of the inner prior if None."""

    def translate(self, target: Target) -> Target:
        """Return the target in the whole."""
        check_space(self.part, target)
        pool = None if target.pool is None else SpaceLift(self.whole)(target.pool)
        return replace(target, space=self.whole, pool=pool)

    def restore(self, configs: Encoded) -> Encoded:
        """Return the configurations that lie in the part."""
        return reencode(configs, self.part, drop_unknown=True)[0]

    def surrogate(self, target: Target) -> Surrogate:
        """Return the surrogate for a task in the part."""
        there = self.translate(target)
        lift = SpaceLift(self.whole, target.pool, there.pool)
        return LiftedSurrogate(self.inner.surrogate(there), lift)

    def opening(self, target: Target) -> Encoded:
        """Return the given opening, or the part of the inner prior's opening."""
        check_space(self.part, target)
        return WrappedPrior.opening(self, target) if self.first is None else self.first

    @property
    def spreads(self) -> bool:
        """Whether the opening is the inner prior's, and only spreads over the space."""
        return self.first is None and self.inner.spreads

    def region(self, target: Target) -> Region | None:
        """Refuse a prior that bounds the search."""
        if WrappedPrior.region(self, target) is not None:
            raise MethodError(
                "a prior that bounds the search holds for its own space only, but it was asked for "
                f"in {self.part!r}: learn it from experience in that space",
                rule="bounding-prior-lifted",
                field="prior",
            )
        return None
