"""The addresses of stores: from what a user writes to a URL that the database library takes."""

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from foretune._base.databases import (
    DRIVERS,
    NO_OPTIONS,
    SQLITE,
    check_writable,
    hide_passwords,
    holds_sqlite,
    parse_url,
    sqlite_path,
    sqlite_url,
    with_driver,
)
from foretune.errors import UsageError

SQLITE_FILES = (".db", ".sqlite", ".sqlite3")


def storage_url(given: str) -> str:
    """Return the URL of a store, given as a URL or as the path of an SQLite file."""
    if "://" not in given:
        if not given.endswith(SQLITE_FILES):
            raise UsageError(
                "a store must be a URL (sqlite:///PATH, postgresql://..., mysql://...) or the path "
                f"of an SQLite file ending with {', '.join(SQLITE_FILES)}, but got '{given}': "
                "name the file so, or write sqlite:/// before its path",
                rule="store-address",
                field="store",
                value=given,
            )
        return _sqlite_url(Path(given))
    kind = given.split("://", 1)[0]
    if kind == "sqlite":
        if not given.startswith(SQLITE):
            raise UsageError(
                f"an SQLite store must be written as {SQLITE}PATH, but got "
                f"'{hide_passwords(given)}': "
                "write three slashes before the path, and one more where it begins with one",
                rule="sqlite-address",
                field="store",
            )
        return _sqlite_url(sqlite_path(given), parse_url(given).query)
    if kind.partition("+")[0] not in DRIVERS:
        raise UsageError(
            f"a store must be SQLite, PostgreSQL or MySQL, but got '{kind}://...': choose one",
            rule="unknown-database",
            field="store",
            value=kind,
        )
    return with_driver(given)


def _sqlite_url(path: Path, query: Mapping[str, Any] = NO_OPTIONS) -> str:
    """Return the URL of a file.

    The path is absolute, because connections are opened later, when the working folder may differ.
    """
    check_file(path)
    return sqlite_url(path.absolute(), query)


def check_file(path: Path) -> None:
    """Refuse a path that cannot be an SQLite file."""
    check_writable(str(path))
    if path.name in ("", ":memory:"):
        raise UsageError(
            "an SQLite store needs a file, but got none: write sqlite:///PATH",
            rule="no-store-file",
            field="store",
        )
    if not path.parent.is_dir():
        raise UsageError(
            f"the folder of a store must exist, but there is no '{path.parent}': make it first",
            rule="missing-folder",
            field="store",
            value=str(path.parent),
        )
    if path.is_dir():
        raise UsageError(
            f"a store must be a file, but '{path}' is a folder: name a file in it",
            rule="not-a-file",
            field="store",
            value=str(path),
        )
    if path.exists() and path.stat().st_size:
        if not holds_sqlite(path):
            raise UsageError(
                f"a store must be an SQLite file, but '{path}' is none: name another file",
                rule="not-sqlite",
                field="store",
                value=str(path),
            )
        _check_whole(path)


def _check_whole(path: Path) -> None:
    """Refuse a damaged SQLite file. One that is busy is waited for later."""
    try:
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA schema_version")
    except sqlite3.OperationalError:
        pass
    except sqlite3.DatabaseError as error:
        raise UsageError(
            f"a store must be an SQLite file that is whole, but '{path}' is damaged ({error}): put "
            "a copy of it in its place, or name another file",
            rule="damaged-store",
            field="store",
            value=str(path),
        ) from error


def log_ahead(path: Path) -> None:
    """Let an SQLite file be read while it is written to. The file remembers this setting."""
    with closing(sqlite3.connect(path, timeout=60.0)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
