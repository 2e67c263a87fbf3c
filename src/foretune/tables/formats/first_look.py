"""A first look at the file of a table, before pandas is imported."""

from contextlib import suppress
from pathlib import Path

from foretune.errors import UsageError
from foretune.tables.formats.text_form import column_names, text_form

PARQUET = (".parquet", ".pq")


def check_is_file(path: Path) -> None:
    """Refuse a path that has no file."""
    if not path.is_file():
        what = "a folder" if path.is_dir() else "none"
        raise UsageError(
            f"a table must be a file, but there is {what} at '{path}': check the path",
            rule="table-file",
            value=str(path),
        )


def header_of(path: Path) -> list[str] | None:
    """Return the names of the columns; None if they are known only when the table is read."""
    if path.suffix.lower() in PARQUET:
        return None
    # Whatever is wrong with the file, reading says it in a sentence.
    with suppress(OSError, ValueError, UsageError):
        form = text_form(path)
        names = None if form.has_attributes else column_names(path, form)
        return names if names and all(names) else None
    return None
