"""Files that a command is to write, looked at before it begins its work."""

from pathlib import Path

from foretune.errors import UsageError


def check_experience_out(path: Path) -> None:
    """Refuse a path at which an experience could not be saved, or not be recognised later."""
    if path.suffix != ".parquet" or not path.absolute().parent.is_dir():
        raise UsageError(
            f"the output must be a .parquet file in a folder that exists, but got '{path}': rename "
            "it, or make its folder first"
        )
