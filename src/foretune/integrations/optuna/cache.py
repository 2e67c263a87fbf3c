"""Tables and priors in the user's cache folder, each under a key that names its content.

Whatever cannot be read is made again, and a folder that cannot be written to is done without.
"""

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from foretune.errors import ForetuneError

MOST_KEPT = 64
"""Files beyond these are deleted, the least recently used first."""

Made = TypeVar("Made")


def cache_folder() -> Path:
    """Where the files lie."""
    from platformdirs import user_cache_path

    return user_cache_path("foretune") / "optuna"


def remembered(
    key: str,
    *,
    load: Callable[[Path], Made],
    make: Callable[[], Made | None],
    save: Callable[[Made, Path], None],
) -> Made | None:
    """What was made under this key before, or what `make` makes of it now."""
    path = cache_folder() / f"{key}.safetensors"
    if path.is_file():
        # A damaged file, or one of another version, is no better than none.
        with contextlib.suppress(ForetuneError, OSError, KeyError, ValueError, TypeError):
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


def _forget_oldest(folder: Path) -> None:
    files = sorted(folder.glob("*.safetensors"), key=lambda path: -path.stat().st_mtime)
    for path in files[MOST_KEPT:]:
        path.unlink(missing_ok=True)
