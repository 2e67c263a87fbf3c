"""A cache of limited size for values that take long to compute."""

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class BoundedCache(Generic[Value]):
    """Keeps at most `most` values by key. The oldest leaves first."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._known: dict[Hashable, Value] = {}

    def __len__(self) -> int:
        return len(self._known)

    def get(self, key: Hashable, find: Callable[[], Value]) -> Value:
        """Return the value of the key, and compute it if it is not kept."""
        if key not in self._known:
            # The computation may need other values of this cache, which are kept first.
            found = find()
            if len(self._known) >= self.most:
                del self._known[next(iter(self._known))]
            self._known[key] = found
        return self._known[key]
