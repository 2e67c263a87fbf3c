"""Results that are slow to make, kept in the user's cache folder under a key of all their inputs.

A file that cannot be read is made again. If the folder cannot be written to, nothing is kept.
"""

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from foretune.errors import ForetuneError

MOST_KEPT = 64
"""The largest number of files of one kind. Beyond it, the least recently used files are deleted."""

Made = TypeVar("Made")


def cache_folder() -> Path:
    """Return the folder that holds a folder for each kind."""
    from platformdirs import user_cache_path

    return user_cache_path("foretune")


def cache_path(kind: str, key: str) -> Path:
    """Return the path of the file for this key."""
    return cache_folder() / kind / f"{key}.safetensors"


def load_or_make(
    kind: str,
    key: str,
    *,
    load: Callable[[Path], Made],
    make: Callable[[], Made],
    save: Callable[[Any, Path], None],
    most_kept: int = MOST_KEPT,
) -> Made:
    """Load the result for this key, or make it and save it. None is not saved."""
    path = cache_path(kind, key)
    # A damaged file is made again, and so is one of another version or another user.
    with contextlib.suppress(ForetuneError, OSError, KeyError, ValueError, TypeError):
        if path.is_file():
            found = load(path)
            with contextlib.suppress(OSError):  # the cache may be read-only
                path.touch()
            return found
    made = make()
    if made is not None:
        with contextlib.suppress(ForetuneError, OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            save(made, path)
            _forget_oldest(path.parent, most_kept)
    return made


def forget(kind: str) -> None:
    """Delete everything of one kind."""
    for path in (cache_folder() / kind).glob("*.safetensors"):
        path.unlink(missing_ok=True)


def _forget_oldest(folder: Path, most_kept: int) -> None:
    files = sorted(folder.glob("*.safetensors"), key=lambda path: -path.stat().st_mtime)
    for path in files[most_kept:]:
        path.unlink(missing_ok=True)
