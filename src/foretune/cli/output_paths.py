"""Checks of the files that a command will write, before it begins its work."""

from pathlib import Path

from foretune.errors import UsageError


def check_experience_out(path: Path) -> None:
    """Refuse a path where no experience can be saved."""
    check_out(path, ".parquet")


def check_out(path: Path, suffix: str) -> None:
    """Refuse a path with another ending, a folder, and a path in a folder that does not exist."""
    if path.suffix != suffix or not path.absolute().parent.is_dir():
        raise UsageError(
            f"the output must be a {suffix} file in a folder that exists, but got '{path}': rename "
            "it, or make its folder first"
        )
    if path.is_dir():
        raise UsageError(f"the output must be a file, but '{path}' is a folder: name a file in it")
