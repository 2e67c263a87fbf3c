"""A growing list of configurations: each is stored and encoded once.

Buffers double when they are full, so adding n rows one by one copies O(n) rows, not O(n²).
Earlier batches stay valid, because rows never change and a full buffer is replaced.
"""

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foretune._base.arrays import Floats
from foretune.space.rows import row_hashes
from foretune.space.space import Encoded, Space

SMALLEST_BUFFER = 16
"""The number of rows of the first buffer."""


class GrowingRows:
    """A growing list of rows of numbers."""

    def __init__(self, shape: tuple[int, ...] = (), dtype: type = np.float64) -> None:
        self._buffer: NDArray[Any] = np.empty((0, *shape), dtype)
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def extend(self, rows: NDArray[Any]) -> None:
        """Add rows at the end."""
        size = self._size + len(rows)
        if size > len(self._buffer):
            self._grow(size)
        self._buffer[self._size : size] = rows
        self._size = size

    def first(self, n: int) -> NDArray[Any]:
        """Return the first n rows, read-only."""
        rows = self._buffer[:n]
        rows.flags.writeable = False
        return rows

    def _grow(self, size: int) -> None:
        room = max(size, 2 * len(self._buffer), SMALLEST_BUFFER)
        larger = np.empty((room, *self._buffer.shape[1:]), self._buffer.dtype)
        larger[: self._size] = self._buffer[: self._size]
        self._buffer = larger


class GrowingConfigs:
    """A growing list of configurations of one space."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self._values = GrowingRows((len(space.parameters),))
        self._x = GrowingRows((space.width,))
        self._hashes = GrowingRows((), np.uint64)

    def __len__(self) -> int:
        return len(self._values)

    def extend(self, configs: Encoded) -> None:
        """Add configurations at the end."""
        self._values.extend(configs.values)

    def batch(self) -> Encoded:
        """Return all configurations so far as a batch, which never changes."""
        return _GrownBatch(self, self.rows(len(self)))

    def rows(self, n: int) -> Floats:
        """Return (n, H), the values of the first n."""
        return self._values.first(n)

    def unit_rows(self, n: int) -> Floats:
        """Return (n, W), the first n in the unit cube; only new ones are computed."""
        done = len(self._x)
        if done < n:
            new = Encoded.of_rows(self.space, self.rows(n)[done:])
            self._x.extend(new.x)
        return self._x.first(n)

    def row_hashes(self, n: int) -> NDArray[np.uint64]:
        """Return (n,), the hashes of the first n; only new ones are computed."""
        done = len(self._hashes)
        if done < n:
            self._hashes.extend(row_hashes(self.rows(n)[done:]))
        return self._hashes.first(n)


class _GrownBatch(Encoded):
    """The first rows of growing configurations."""

    def __init__(self, source: GrowingConfigs, values: Floats) -> None:
        object.__setattr__(self, "space", source.space)
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "_source", source)

    @cached_property
    def x(self) -> Floats:
        source: GrowingConfigs = self.__dict__["_source"]
        return source.unit_rows(len(self))

    @cached_property
    def hashes(self) -> NDArray[np.uint64]:
        source: GrowingConfigs = self.__dict__["_source"]
        return source.row_hashes(len(self))
