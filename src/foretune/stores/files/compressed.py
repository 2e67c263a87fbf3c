"""Packed files, unpacked while they are read, up to the size that a table can have."""

import bz2
import gzip
import io
import lzma
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

from foretune.errors import ExperienceError

BLOCK = 2**20
ALWAYS_FINE = 2**26
MOST_TIMES = 300
"""A file of up to ALWAYS_FINE bytes is never refused. A larger one may be MOST_TIMES as large as
when packed. Tables of numbers stay far below this, and zip bombs are far above."""
DAMAGED = (OSError, EOFError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, RuntimeError)
"""What reading a damaged file can raise. A password raises a RuntimeError."""


def check_size(name: str, packed: int, unpacked: int) -> None:
    """Refuse a file that is suspiciously large when it is unpacked. Sizes are in bytes."""
    if unpacked > max(ALWAYS_FINE, MOST_TIMES * packed):
        raise ExperienceError(
            f"a packed table must not be {MOST_TIMES} times as large when it is unpacked, but "
            f"'{name}' is: get the file again from its publisher, or unpack it yourself",
            rule="inflated-table",
            value=name,
        )


class BoundedStream(io.BufferedIOBase):
    """A stream of unpacked bytes that refuses to grow too large."""

    def __init__(self, stream: IO[bytes], name: str, packed: int) -> None:
        self._stream, self._name, self._packed = stream, name, packed
        self._given = 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def read(self, size: int | None = -1, /) -> bytes:
        """Return the next bytes; all of them if no size is given."""
        blocks = []
        left = -1 if size is None else size
        while left and (block := self._stream.read(BLOCK if left < 0 else min(left, BLOCK))):
            left -= len(block) if left > 0 else 0
            self._given += len(block)
            check_size(self._name, self._packed, self._given)
            blocks.append(block)
        return b"".join(blocks)

    def read1(self, size: int = -1, /) -> bytes:
        """Return at most one block."""
        return self.read(BLOCK if size < 0 else min(size, BLOCK))


@contextmanager
def open_compressed(path: Path) -> Iterator[IO[bytes]]:
    """Open a file, packed (as its name says) or not, and give its unpacked bytes."""
    openers: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
    suffix = path.suffix.lower()
    if suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            entries = [entry for entry in archive.infolist() if _is_content(entry)]
            if len(entries) != 1:
                raise ValueError(f"it holds {len(entries)} files instead of one")
            check_size(path.name, entries[0].compress_size, entries[0].file_size)
            with archive.open(entries[0]) as stream:  # it never gives more than that size
                yield stream
    elif suffix in openers:
        with openers[suffix](path, "rb") as stream:
            yield cast("IO[bytes]", BoundedStream(stream, path.name, path.stat().st_size))
    else:
        with path.open("rb") as stream:
            yield stream


def _is_content(entry: zipfile.ZipInfo) -> bool:
    """Return whether an entry is a file, but not one of those that macOS adds."""
    return not entry.is_dir() and not entry.filename.startswith("__MACOSX/")
