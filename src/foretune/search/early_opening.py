"""A prior that knows its opening and learns the rest when it is first needed."""

from collections.abc import Callable
from dataclasses import dataclass, field

from foretune.methods.contracts import Prior, Surrogate, Target
from foretune.methods.past_data import check_space
from foretune.methods.wrapped import WrappedPrior
from foretune.space import Encoded


@dataclass(frozen=True, slots=True)
class EarlyPrior(WrappedPrior):
    """The opening of a prior that is not learnt yet.

    The opening equals that of the learnt prior, so a search asks for the same trials whether the
    prior is learnt before the first suggestion or after it. Everything else learns the prior.
    """

    first: Encoded
    """The opening."""
    learn: Callable[[], Prior]
    _learnt: list[Prior] = field(default_factory=list)

    @property
    def has_learnt(self) -> bool:
        """Whether the whole prior is there."""
        return bool(self._learnt)

    @property
    def inner(self) -> Prior:
        """The whole prior. The first use learns it, which may take minutes."""
        if not self._learnt:
            self._learnt.append(self.learn())
        return self._learnt[0]

    @property
    def spreads(self) -> bool:
        """False, because past tasks taught the opening."""
        return False

    def opening(self, target: Target) -> Encoded:
        """Return the opening."""
        check_space(self.first.space, target)
        return self.first

    def surrogate(self, target: Target) -> Surrogate:
        """Return the surrogate of the learnt prior."""
        check_space(self.first.space, target)
        return self.inner.surrogate(target)
