"""Random and Sobol search: methods whose design covers every trial, so no surrogate is asked."""

from dataclasses import dataclass

from foretune.errors import MethodError
from foretune.methods.contracts import Observations, Posterior, Surrogate
from foretune.methods.random.stateless import StatelessLearner


@dataclass(frozen=True, slots=True)
class NoSurrogate(Surrogate):
    """Stands where a surrogate is expected and refuses to be one."""

    def condition(self, seen: Observations, *, seed: int) -> Posterior:
        """Refuse."""
        del seen, seed
        raise MethodError("this method has no surrogate: its design must cover every trial")


def no_surrogate() -> StatelessLearner:
    """The learner of methods without a surrogate."""
    return StatelessLearner("nothing", lambda _: NoSurrogate())
