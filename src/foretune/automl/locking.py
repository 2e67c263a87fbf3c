"""Locks on files that the system lets go of when a process ends, however it ends."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

if sys.platform == "win32":
    import msvcrt

    def _take(stream: IO[bytes], *, wait: bool) -> None:
        stream.seek(0)
        # LK_LOCK tries for ten seconds and then fails as LK_NBLCK does: so it is asked again.
        while wait:
            try:
                msvcrt.locking(stream.fileno(), msvcrt.LK_LOCK, 1)
            except OSError:
                continue
            return
        msvcrt.locking(stream.fileno(), msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _take(stream: IO[bytes], *, wait: bool) -> None:
        fcntl.flock(stream, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of a file, which is made where it does not exist, after waiting for it."""
    with path.open("ab") as stream:
        _take(stream, wait=True)
        yield


def held(path: Path) -> IO[bytes] | None:
    """The lock of a file until the stream is closed; None where another process has it."""
    stream = path.open("ab")
    try:
        _take(stream, wait=False)
    except OSError:
        stream.close()
        return None
    return stream
