"""Giving freed memory back to the system."""

import ctypes
import sys
from contextlib import suppress


def return_freed_memory() -> None:
    """Give the system the memory that C's allocator keeps for later, if it can.

    Parts of a large file leave holes between arrays that stay. The next large array does not fit
    into them, and a process can hold twice the memory that it uses.
    """
    if sys.platform == "linux":
        with suppress(AttributeError, OSError):  # other C libraries than glibc do not have it
            ctypes.CDLL(None).malloc_trim(0)
