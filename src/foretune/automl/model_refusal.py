"""Refuses files that are not models. This module imports no large library."""

from pathlib import Path
from typing import NoReturn

from foretune.errors import UsageError

WRITTEN_BY_FIT = "name a file that  foretune fit  has written"


def check_model_exists(path: Path) -> None:
    """Refuse a path that has no file."""
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        refuse_model(path, what, WRITTEN_BY_FIT)


def refuse_model(path: Path, what: str, remedy: str) -> NoReturn:
    """Refuse a model file with a remedy."""
    # Names in a file may hold characters that control a terminal.
    what = "".join(letter if letter.isprintable() else "?" for letter in what)
    raise UsageError(
        f"a model must be a file saved by Foretune, but '{path}' {what}: {remedy}",
        rule="not-a-model",
        value=what,
    )
