"""A prior that opens at once and learns the rest when it is first needed."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from foretune.methods.contracts import Prior, Surrogate, Target
from foretune.methods.past_data import check_space
from foretune.space import Encoded


@dataclass(frozen=True, slots=True)
class EarlyPrior:
    """The opening of a prior that is not learnt yet.

    The opening equals that of the learnt prior, so a search asks for the same trials whether the
    prior was learnt before the first suggestion or after it.
    """

    first: Encoded
    """What it opens with."""
    learn: Callable[[], Prior]
    _learnt: list[Prior] = field(default_factory=list)

    @property
    def has_learnt(self) -> bool:
        """Whether the whole prior is there."""
        return bool(self._learnt)

    @property
    def learnt(self) -> Prior:
        """The whole prior. Learns it when that has not been done yet, which may take minutes."""
        if not self._learnt:
            self._learnt.append(self.learn())
        return self._learnt[0]

    def opening(self, target: Target) -> Encoded:
        """What the search begins with."""
        check_space(self.first.space, target)
        return self.first

    def surrogate(self, target: Target) -> Surrogate:
        """The surrogate of the learnt prior."""
        check_space(self.first.space, target)
        return self.learnt.surrogate(target)

    def save(self, path: Path) -> None:
        """Save the learnt prior."""
        self.learnt.save(path)


def whole(prior: Prior) -> Prior:
    """The prior itself, or the one that it becomes when it has learnt."""
    return prior.learnt if isinstance(prior, EarlyPrior) else prior
