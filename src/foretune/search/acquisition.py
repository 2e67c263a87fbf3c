"""From a posterior to one number a candidate: acquisition functions by name, higher is better."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from foretune._base.arrays import Floats
from foretune.errors import MethodError
from foretune.methods.contracts import Posterior
from foretune.numerics import acquisition
from foretune.space import Encoded


@dataclass(frozen=True, slots=True)
class Acquisition:
    """How promising candidates are, given a posterior."""

    function: Callable[[Posterior, Encoded, int], Floats]
    """(posterior, candidates, seed) -> scores (m,)."""
    in_logs: bool = False
    """Whether scores are logarithms of a utility; else they are in the posterior's unit."""
    drawn: bool = False
    """Whether scores are drawn by chance, anew for every list of candidates."""

    def score(
        self, posterior: Posterior, x: Encoded, discount: Floats, seen: Encoded, *, seed: int
    ) -> Floats:
        """Scores (m,), lower by the `discount` (m,) of candidates that may fail.

        The discount is a logarithm. Where scores are not, its unit becomes the spread of the
        predictions at the trials `seen`.
        """
        scores = _numbers(self.function(posterior, x, seed))
        if not discount.any():
            return scores
        spread = 1.0 if self.in_logs else float(posterior.predict(seen).mean.std()) or 1.0
        return scores + spread * discount


def _numbers(scores: Floats) -> Floats:
    """Scores without NaN: of what a method knows nothing, it suggests nothing."""
    unknown = np.isnan(scores)
    if not unknown.any():
        return scores
    if unknown.all():
        raise MethodError(
            f"a method must predict numbers, but all of its {len(scores)} scores are NaN: choose "
            "another method, or see  foretune.testing.conformance  for what one must do"
        )
    return np.where(unknown, -np.inf, scores)


def _improvement(posterior: Posterior, x: Encoded, seed: int) -> Floats:
    del seed
    return posterior.log_improvement(x)


def _thompson(posterior: Posterior, x: Encoded, seed: int) -> Floats:
    return acquisition.thompson(posterior.sample(x, 1, seed=seed))


def _own(posterior: Posterior, x: Encoded, seed: int) -> Floats:
    del seed
    return posterior.log_utility(x)


ACQUISITIONS: dict[str, Acquisition] = {
    "ei": Acquisition(_improvement, in_logs=True),
    "thompson": Acquisition(_thompson, drawn=True),
    "own": Acquisition(_own, in_logs=True),
    "mixture-ei": Acquisition(_own, in_logs=True),
}
