"""From a posterior to one number a candidate: acquisition functions by name, higher is better."""

from collections.abc import Callable
from typing import Protocol, TypeAlias, runtime_checkable

from foretune.arrays import Floats
from foretune.contracts import Posterior
from foretune.search import acquisition
from foretune.space import Encoded

Acquisition: TypeAlias = Callable[[Posterior, Encoded, int], Floats]
"""(posterior, candidates, seed) -> scores in logarithmic or any other monotone unit."""


@runtime_checkable
class OwnUtility(Protocol):
    """A posterior that brings its own acquisition function (e.g. a sum over source tasks)."""

    def utility(self, x: Encoded) -> Floats:
        """A positive utility for each configuration."""


def _expected_improvement(posterior: Posterior, x: Encoded, seed: int) -> Floats:
    del seed
    belief = posterior.predict(x)
    return acquisition.log_expected_improvement(belief.mean, belief.std, posterior.best)


def _lower_confidence_bound(posterior: Posterior, x: Encoded, seed: int) -> Floats:
    del seed
    belief = posterior.predict(x)
    return acquisition.lower_confidence_bound(belief.mean, belief.std, beta=2.0)


def _thompson(posterior: Posterior, x: Encoded, seed: int) -> Floats:
    return acquisition.thompson(posterior.sample(x, 1, seed=seed))


def _mean(posterior: Posterior, x: Encoded, seed: int) -> Floats:
    del seed
    return -posterior.predict(x).mean


def _own(posterior: Posterior, x: Encoded, seed: int) -> Floats:
    del seed
    if not isinstance(posterior, OwnUtility):
        raise TypeError(f"{type(posterior).__name__} has no utility of its own")
    return posterior.utility(x)


ACQUISITIONS: dict[str, Acquisition] = {
    "ei": _expected_improvement,
    "lcb": _lower_confidence_bound,
    "thompson": _thompson,
    "mean": _mean,
    "own": _own,
}
