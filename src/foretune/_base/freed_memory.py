"""Memory that was freed, given back to the system."""

import ctypes
import sys
from contextlib import suppress


def return_freed_memory() -> None:
    """Give back what C's allocator keeps for later, where it can do so.

    Parts of a large file leave holes between arrays that stay; the next large array is laid
    behind them, and a process can hold twice what it uses.
    """
    if sys.platform == "linux":
        with suppress(AttributeError, OSError):  # of other libraries than glibc
            ctypes.CDLL(None).malloc_trim(0)
