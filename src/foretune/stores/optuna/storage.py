"""Opening an Optuna storage for reading, without creating or changing anything."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

from foretune._base.databases import file_of, hide_passwords, holds_sqlite, sqlite_url, with_driver
from foretune.errors import ExperienceError

if TYPE_CHECKING:
    from optuna.storages import BaseStorage

FIRST_TABLE = "version_info"
"""The table that Optuna reads first."""


def open_storage(source: str) -> "BaseStorage":
    """Open the storage at a database URL, or in an SQLite or journal file."""
    path = file_of(source)
    if path is not None and not path.exists():
        # Connecting to a missing SQLite file would create it.
        raise ExperienceError(
            f"an Optuna storage must exist, but there is no '{path}': correct its path",
            rule="no-storage",
            value=str(path),
        )
    return _open_database(with_driver(source)) if "://" in source else _open_file(Path(source))


def _open_file(path: Path) -> "BaseStorage":
    if path.is_dir():
        raise _unreadable(str(path), "it is a folder")
    return _open_database(sqlite_url(path)) if holds_sqlite(path) else _open_journal(path)


def _open_database(url: str) -> "BaseStorage":
    from optuna.exceptions import OptunaError
    from optuna.storages import RDBStorage
    from sqlalchemy.exc import SQLAlchemyError

    try:
        return RDBStorage(url, skip_table_creation=True)
    except (OptunaError, SQLAlchemyError, RuntimeError, ImportError) as error:
        # Optuna reports a general error. The database says which table is missing.
        foreign = FIRST_TABLE in str(error.__cause__)
        reason = "it is a database without Optuna's tables" if foreign else str(error)
        raise _unreadable(url, reason) from error


def _open_journal(path: Path) -> "BaseStorage":
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    if not _may_be_journal(path):
        raise _unreadable(str(path), "it is neither a database nor a journal")
    try:
        return JournalStorage(JournalFileBackend(str(path)))
    except (ValueError, KeyError, TypeError, AssertionError) as error:
        raise _unreadable(str(path), str(error)) from error


def _may_be_journal(path: Path) -> bool:
    """Return whether a file is empty or begins like a journal. Optuna skips a broken last line."""
    with path.open("rb") as stream:
        first = stream.readline()
    try:
        return not first or "op_code" in dict(json.loads(first))
    except (ValueError, TypeError):
        return False


def _unreadable(source: str, reason: str) -> ExperienceError:
    first = reason.strip().splitlines()[0] if reason.strip() else "no reason given"
    return ExperienceError(
        f"'{hide_passwords(source)}' cannot be read as an Optuna storage: "
        f"{hide_passwords(first)}; name another file or URL",
        rule="unreadable-storage",
        value=hide_passwords(first),
    )
