"""Random and Sobol search: the design chooses every trial, so there is no surrogate."""

from dataclasses import dataclass

from foretune.errors import MethodError
from foretune.methods.contracts import Observations, Posterior, Surrogate
from foretune.methods.random.stateless import StatelessLearner


@dataclass(frozen=True, slots=True)
class NoSurrogate(Surrogate):
    """A surrogate that refuses every question."""

    def condition(self, seen: Observations, *, seed: int) -> Posterior:
        """Refuse."""
        del seen, seed
        raise MethodError(
            "this method has no surrogate: its design must cover every trial", rule="no-surrogate"
        )


def no_surrogate() -> StatelessLearner:
    """Return the learner of methods without a surrogate."""
    return StatelessLearner("nothing", lambda _: NoSurrogate())
