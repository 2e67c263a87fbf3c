"""Values that are slow to find, remembered while they may be asked for again."""

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class BoundedCache(Generic[Value]):
    """At most so many values by key; the first in is the first out."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._known: dict[Hashable, Value] = {}

    def __len__(self) -> int:
        return len(self._known)

    def get(self, key: Hashable, find: Callable[[], Value]) -> Value:
        """The value of the key, found where it is not remembered."""
        if key not in self._known:
            # Finding one may need others, which are remembered first.
            found = find()
            if len(self._known) >= self.most:
                del self._known[next(iter(self._known))]
            self._known[key] = found
        return self._known[key]
