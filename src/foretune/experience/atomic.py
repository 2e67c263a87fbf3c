"""Replacing a file in one step, or not at all."""

import os
import secrets
from collections.abc import Callable
from pathlib import Path


def replace_file(path: Path, write: Callable[[Path], None]) -> None:
    """Let `write` fill a temporary file beside `path`, then put it in the place of `path`.

    Whoever reads `path` meanwhile sees the old file or the new one. When `write` fails, the
    temporary file is removed and `path` is as it was.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        write(temporary)
        _flush(temporary)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _flush(path.parent)


def _flush(path: Path) -> None:
    """Wait until the disk has it, so that a power cut cannot leave an empty file."""
    if os.name == "nt" and path.is_dir():
        return  # Windows cannot open a directory, and flushes renames by itself.
    descriptor = os.open(path, os.O_RDONLY if os.name != "nt" else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
