"""Acquisition functions by name: one number for each candidate, higher is better."""

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
    """Scores candidates, given a posterior."""

    function: Callable[[Posterior, Encoded, int], Floats]
    """(posterior, candidates, seed) -> scores (m,)."""
    in_logs: bool = False
    """True if scores are logarithms of a utility. Otherwise they are in the posterior's unit."""
    drawn: bool = False
    """True if scores are drawn by chance, again for each list of candidates."""

    def score(
        self, posterior: Posterior, x: Encoded, discount: Floats, seen: Encoded, *, seed: int
    ) -> Floats:
        """Return scores (m,), lowered by the `discount` (m,) of candidates that may fail.

        The discount is a logarithm. If the scores are not logarithms, it is multiplied by the
        spread of the predictions at the trials `seen`.
        """
        scores = _numbers(self.function(posterior, x, seed))
        if not discount.any():
            return scores
        spread = 1.0 if self.in_logs else float(posterior.predict(seen).mean.std()) or 1.0
        return scores + spread * discount


def _numbers(scores: Floats) -> Floats:
    """Replace NaN by the lowest score, so that such a candidate is not suggested."""
    unknown = np.isnan(scores)
    if not unknown.any():
        return scores
    if unknown.all():
        raise MethodError(
            f"a method must predict numbers, but all of its {len(scores)} scores are NaN: choose "
            "another method, or see  foretune.testing.conformance  for what one must do",
            rule="scores-are-numbers",
            value=len(scores),
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
