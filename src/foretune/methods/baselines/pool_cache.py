"""What is asked of a recorded pool at every trial and never changes, computed once."""

from collections.abc import Callable
from dataclasses import dataclass, field

from foretune.arrays import Floats
from foretune.space import Encoded


@dataclass(frozen=True, slots=True)
class CachedOnPool:
    """A function of configurations that remembers its values on the target's pool."""

    function: Callable[[Encoded], Floats]
    pool: Encoded | None
    _known: list[Floats] = field(default_factory=list)

    def __call__(self, x: Encoded) -> Floats:
        """The function's values at x; remembered where x is the pool itself, not a copy of it."""
        if x is not self.pool:
            return self.function(x)
        if not self._known:
            self._known.append(self.function(x))
        return self._known[0]
