"""A prior of a larger space, for a task in a part of that space.

Every configuration of the part is one of the whole, so what was learnt about the whole holds there
as it is. A search that is narrowed to some estimators needs no prior of its own.
"""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from foretune._base.arrays import Floats
from foretune.errors import MethodError
from foretune.experience.alignment.restriction import reencode
from foretune.methods.contracts import (
    Bounded,
    Explaining,
    Informed,
    Observations,
    Opening,
    OwnUtility,
    Posterior,
    Prediction,
    Prior,
    Sceptical,
    Stocked,
    Surrogate,
    Target,
)
from foretune.methods.past_data import check_space
from foretune.space import Encoded, Space


def lift_prior(prior: Prior, whole: Space, part: Space, *, first: Encoded | None = None) -> Prior:
    """`prior`, which holds for `whole`, for targets in `part`; itself where both are equal.

    first: what the search opens with instead of the prior's own opening, if it has one. Of that
    the part may lack the best, which were to be complemented.
    """
    if whole == part:
        return prior
    if isinstance(prior, Bounded):
        raise MethodError(
            "a prior that bounds the search holds for its own space only, but it was asked for "
            f"in {part!r}: learn it from experience in that space"
        )
    if not isinstance(prior, Opening):
        return LiftedPrior(prior, whole, part)
    if first is None:
        first, _ = reencode(prior.opening(Target(whole)), part)
    known, _ = reencode(
        prior.known_good(Target(whole)) if isinstance(prior, Informed) else first.take([]), part
    )
    return LiftedOpening(prior, whole, part, first, known)


@dataclass(frozen=True, slots=True)
class SpaceLift:
    """Takes configurations of a part into the whole."""

    whole: Space
    pool: Encoded | None
    lifted_pool: Encoded | None
    """The same pool in the whole: one object, by which surrogates know it again."""

    @staticmethod
    def for_target(whole: Space, target: Target) -> "SpaceLift":
        """For one task, whose pool is taken along once."""
        plain = SpaceLift(whole, None, None)
        return plain if target.pool is None else SpaceLift(whole, target.pool, plain(target.pool))

    def __call__(self, configs: Encoded) -> Encoded:
        """The same configurations in the whole."""
        if self.lifted_pool is not None and configs is self.pool:
            return self.lifted_pool
        there, rows = reencode(configs, self.whole)
        if len(rows) < len(configs):
            missing = np.setdiff1d(np.arange(len(configs)), rows)[0]
            raise MethodError(
                "a prior of a larger space needs configurations of that space, but "
                f"{configs.take(missing).dicts()[0]} does not lie in {self.whole!r}: learn it from "
                "experience in the target's space"
            )
        return there


@dataclass(frozen=True, slots=True)
class LiftedPosterior:
    """A posterior over the whole, asked about the part."""

    inner: Posterior
    lift: SpaceLift

    @property
    def best(self) -> float:
        """The incumbent's value."""
        return self.inner.best

    @property
    def trusts_past(self) -> bool:
        """Whether past tasks still are a guide, where the posterior doubts it at all."""
        return not isinstance(self.inner, Sceptical) or self.inner.trusts_past

    def predict(self, x: Encoded) -> Prediction:
        """Mean and standard deviation at each configuration."""
        return self.inner.predict(self.lift(x))

    def sample(self, x: Encoded, n: int, *, seed: int) -> Floats:
        """Joint draws at all configurations."""
        return self.inner.sample(self.lift(x), n, seed=seed)

    def log_utility(self, x: Encoded) -> Floats:
        """The posterior's own utility, for methods that maximise that."""
        if not isinstance(self.inner, OwnUtility):
            raise TypeError(f"{type(self.inner).__name__} has no utility of its own")
        return self.inner.log_utility(self.lift(x))


@dataclass(frozen=True, slots=True)
class LiftedSurrogate:
    """A surrogate of the whole, told about trials in the part."""

    inner: Surrogate
    lift: SpaceLift

    def condition(self, seen: Observations, *, seed: int) -> Posterior:
        """The belief after `seen`."""
        return LiftedPosterior(self.inner.condition(self._there(seen), seed=seed), self.lift)

    def explain(self, seen: Observations) -> str:
        """What the surrogate of the whole says."""
        return self.inner.explain(self._there(seen)) if isinstance(self.inner, Explaining) else ""

    def _there(self, seen: Observations) -> Observations:
        return replace(seen, configs=self.lift(seen.configs))


@dataclass(frozen=True, slots=True)
class LiftedPrior:
    """What was learnt about the whole."""

    inner: Prior
    whole: Space
    part: Space

    def surrogate(self, target: Target) -> Surrogate:
        """The surrogate for a task in the part."""
        check_space(self.part, target)
        lift = SpaceLift.for_target(self.whole, target)
        there = replace(target, space=self.whole, pool=lift.lifted_pool)
        return LiftedSurrogate(self.inner.surrogate(there), lift)

    def save(self, path: Path) -> None:
        """Write the prior of the whole."""
        self.inner.save(path)


@dataclass(frozen=True, slots=True)
class LiftedOpening(LiftedPrior):
    """The same of a prior that names the first configurations to try."""

    first: Encoded
    good: Encoded
    """What else is known to be good; may be nothing."""

    def opening(self, target: Target) -> Encoded:
        """Those to try first, in order."""
        check_space(self.part, target)
        return self.first

    def reserve(self, target: Target) -> Encoded:
        """Those of the whole that lie in the part; may be none."""
        check_space(self.part, target)
        if not isinstance(self.inner, Stocked):
            return self.first.take([])
        return reencode(self.inner.reserve(Target(self.whole)), self.part)[0]

    def known_good(self, target: Target) -> Encoded:
        """Those worth a look."""
        check_space(self.part, target)
        return self.good
