"""Base classes for wrappers around another posterior, surrogate or prior.

Each class forwards every ability of its contract to `inner`. A wrapper inherits from one of them
and overrides what it changes, so it loses no ability of what it wraps.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from foretune._base.arrays import Floats
from foretune.methods.contracts import (
    Observations,
    Posterior,
    Prediction,
    Prior,
    Region,
    Surrogate,
    Target,
)
from foretune.space import Encoded


class WrappedPosterior(Posterior):
    """A posterior that asks `inner` about translated configurations."""

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def inner(self) -> Posterior:
            """The posterior that is asked."""

    def translate(self, x: Encoded) -> Encoded:
        """Return the configurations as the inner posterior knows them."""
        return x

    @property
    def best(self) -> float:
        """The inner best."""
        return self.inner.best

    @property
    def trusts_past(self) -> bool:
        """What the inner posterior says."""
        return self.inner.trusts_past

    def predict(self, x: Encoded) -> Prediction:
        """Forward."""
        return self.inner.predict(self.translate(x))

    def sample(self, x: Encoded, n: int, *, seed: int) -> Floats:
        """Forward."""
        return self.inner.sample(self.translate(x), n, seed=seed)

    def log_improvement(self, x: Encoded) -> Floats:
        """Forward."""
        return self.inner.log_improvement(self.translate(x))

    def log_utility(self, x: Encoded) -> Floats:
        """Forward."""
        return self.inner.log_utility(self.translate(x))

    def predict_each(self, x: Encoded) -> Floats:
        """Forward."""
        return self.inner.predict_each(self.translate(x))

    def objective_weights(self) -> Floats | None:
        """Forward."""
        return self.inner.objective_weights()


class WrappedSurrogate(Surrogate):
    """A surrogate that hands translated trials to `inner`."""

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def inner(self) -> Surrogate:
            """The surrogate that is asked."""

    def translate(self, seen: Observations) -> Observations:
        """Return the trials as the inner surrogate knows them."""
        return seen

    def wrap(self, posterior: Posterior) -> Posterior:
        """Wrap what the inner surrogate returns."""
        return posterior

    def condition(self, seen: Observations, *, seed: int) -> Posterior:
        """Forward, and wrap the posterior."""
        return self.wrap(self.inner.condition(self.translate(seen), seed=seed))

    def explain(self, seen: Observations) -> str:
        """Forward."""
        return self.inner.explain(self.translate(seen))


class WrappedPrior(Prior):
    """A prior that asks `inner` about a translated target."""

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def inner(self) -> Prior:
            """The prior that is asked."""

    def translate(self, target: Target) -> Target:
        """Return the target as the inner prior knows it."""
        return target

    def restore(self, configs: Encoded) -> Encoded:
        """Return configurations of the inner prior as this one knows them."""
        return configs

    def surrogate(self, target: Target) -> Surrogate:
        """Forward."""
        return self.inner.surrogate(self.translate(target))

    def save(self, path: Path) -> None:
        """Save the inner prior."""
        self.inner.save(path)

    def opening(self, target: Target) -> Encoded:
        """Forward."""
        return self.restore(self.inner.opening(self.translate(target)))

    @property
    def spreads(self) -> bool:
        """What the inner prior says."""
        return self.inner.spreads

    def reserve(self, target: Target) -> Encoded:
        """Forward."""
        return self.restore(self.inner.reserve(self.translate(target)))

    def known_good(self, target: Target) -> Encoded:
        """Forward."""
        return self.restore(self.inner.known_good(self.translate(target)))

    def region(self, target: Target) -> Region | None:
        """Forward."""
        return self.inner.region(self.translate(target))

    def odds(self, target: Target) -> float:
        """Forward."""
        return self.inner.odds(self.translate(target))

    @property
    def has_learnt(self) -> bool:
        """What the inner prior says."""
        return self.inner.has_learnt
