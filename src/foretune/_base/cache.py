"""What is slow to make, kept in the user's cache folder under a key that names all it follows from.

Whatever cannot be read is made again, and a folder that cannot be written to is done without.
"""

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from foretune.errors import ForetuneError

MOST_KEPT = 64
"""Files of one kind beyond these are deleted, the least recently used first."""

Made = TypeVar("Made")


def cache_folder() -> Path:
    """Where a folder of each kind lies."""
    from platformdirs import user_cache_path

    return user_cache_path("foretune")


def cached_path(kind: str, key: str) -> Path:
    """Where what has this key is kept."""
    return cache_folder() / kind / f"{key}.safetensors"


def load_or_make(
    kind: str,
    key: str,
    *,
    load: Callable[[Path], Made],
    make: Callable[[], Made],
    save: Callable[[Any, Path], None],
) -> Made:
    """What was made under this key before, or what `make` makes of it now; None is not kept."""
    path = cached_path(kind, key)
    # A damaged file, or one of another version or another user, is no better than none.
    with contextlib.suppress(ForetuneError, OSError, KeyError, ValueError, TypeError):
        if path.is_file():
            found = load(path)
            with contextlib.suppress(OSError):  # of a cache that may only be read
                path.touch()
            return found
    made = make()
    if made is not None:
        with contextlib.suppress(ForetuneError, OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            save(made, path)
            _forget_oldest(path.parent)
    return made


def forget(kind: str) -> None:
    """Delete all of one kind."""
    for path in (cache_folder() / kind).glob("*.safetensors"):
        path.unlink(missing_ok=True)


def _forget_oldest(folder: Path) -> None:
    files = sorted(folder.glob("*.safetensors"), key=lambda path: -path.stat().st_mtime)
    for path in files[MOST_KEPT:]:
        path.unlink(missing_ok=True)
