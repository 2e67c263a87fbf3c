"""Files that several processes use: replaced in one step, and locked while they change.

The system releases a lock when its process ends, for whatever reason.
"""

import os
import secrets
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from foretune.errors import UsageError

OWNER_FOLDER = 0o700
OWNER_FILE = 0o600
USUAL_FILE = 0o666
OTHERS = 0o077
"""Permissions of everybody but the owner."""

if sys.platform == "win32":
    import msvcrt

    def _take(stream: IO[bytes], *, wait: bool) -> None:
        stream.seek(0)
        # LK_LOCK tries for ten seconds and then fails, so it is asked again.
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
def hold_lock(path: Path) -> Iterator[None]:
    """Wait for the lock of a file, and hold it. The file is made if it does not exist."""
    with path.open("ab") as stream:
        _take(stream, wait=True)
        yield


def try_lock(path: Path) -> IO[bytes] | None:
    """Return the lock of a file, held until the stream is closed; None if it is taken."""
    stream = path.open("ab")
    try:
        _take(stream, wait=False)
    except OSError:
        stream.close()
        return None
    return stream


@contextmanager
def name_file_in_errors(path: Path) -> Iterator[None]:
    """Let errors of the system name this file. The error of a full disk names no file."""
    try:
        yield
    except OSError as error:
        if error.errno is not None:  # other errors have no file name to show
            error.filename = str(path)
        raise


def check_folder_of(out: Path) -> None:
    """Refuse an output whose folder does not exist, before any work is done for it."""
    if not out.absolute().parent.is_dir():
        raise UsageError(
            f"the folder of the output must exist, but there is no '{out.parent}': make it first",
            rule="missing-folder",
            field="out",
            value=out.parent,
        )


def make_private_folder(path: Path) -> None:
    """Make a folder that only its owner can open, or change an existing one to that."""
    path.mkdir(mode=OWNER_FOLDER, parents=True, exist_ok=True)
    if path.stat().st_mode & OTHERS:
        path.chmod(OWNER_FOLDER)


def replace_file(path: Path, write: Callable[[Path], None], *, is_private: bool = False) -> None:
    """Let `write` fill a temporary file beside `path`, then replace `path` by it.

    A reader of `path` sees either the old file or the new one. If `write` fails, the temporary file
    is removed and `path` stays as it was. `write` opens a file that exists already.

    is_private: the file holds rows of the user's table. Only its owner may ever read it.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with name_file_in_errors(path):
            _create(temporary, OWNER_FILE if is_private else USUAL_FILE)
            write(temporary)
            _flush(temporary)
            os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _flush(path.parent)


def _create(path: Path, mode: int) -> None:
    """Make an empty file with these permissions, minus those that the user's umask forbids."""
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY
    os.close(os.open(path, flags, mode))
    if mode == OWNER_FILE:
        path.chmod(mode)  # The owner's right is always needed.


def write_text(path: Path, text: str) -> None:
    """Replace a text file in one step, with the same bytes on every system."""

    def write(temporary: Path) -> None:
        temporary.write_text(text, encoding="utf-8", newline="\n")

    replace_file(path, write)


def _flush(path: Path) -> None:
    """Wait until the disk has the file, so that a power cut cannot leave an empty one."""
    if os.name == "nt" and path.is_dir():
        return  # Windows cannot open a directory, and flushes renames by itself.
    descriptor = os.open(path, os.O_RDONLY if os.name != "nt" else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
