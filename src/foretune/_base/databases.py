"""Addresses of databases: SQLite files as URLs, equal addresses, and URLs without passwords."""

import re
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from foretune.errors import UsageError

if TYPE_CHECKING:
    from sqlalchemy.engine import URL

SQLITE = "sqlite:///"
SQLITE_MAGIC = b"SQLite format 3\x00"
NO_OPTIONS: Mapping[str, Any] = {}
DRIVERS = {
    "postgresql": {"psycopg": "psycopg", "psycopg2": "psycopg2"},
    "mysql": {"mysqldb": "MySQLdb", "pymysql": "pymysql"},
}
"""The drivers of each kind of server (as URLs name them), and the modules they need."""
LARGEST_PORT = 65535
PORTS = {"postgresql": 5432, "mysql": 3306, "mariadb": 3306}
"""The usual ports of servers."""

_WORD = r"\S*://[^:/\s]*:[^\s\d@][^@]*@\S*|\S+"
"""A word of a sentence. A URL ends behind its password, unless that looks like a port."""


def parse_url(url: str) -> "URL":
    """Return the parts of a database URL; refuse one that cannot be read, without its password."""
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    check_writable(url)
    try:
        found = make_url(url)
    except (ArgumentError, ValueError):
        raise UsageError(
            "a database URL must be written as kind://user:password@host:port/name, with a number "
            f"as its port, but got '{hide_passwords(url)}': correct it, and write signs that have "
            "a meaning "
            "in it as %40 (for @) and the like",
            rule="database-url",
            field="url",
        ) from None
    if found.port is not None and not 0 < found.port <= LARGEST_PORT:
        raise UsageError(
            f"the port of a database must be from 1 to {LARGEST_PORT}, but got {found.port} in "
            f"'{hide_passwords(url)}': correct it",
            rule="database-port",
            field="port",
            value=found.port,
        )
    return found


def check_writable(address: str) -> None:
    """Refuse an address that is no Unicode text, because no database takes it."""
    try:
        address.encode("utf-8")
    except UnicodeEncodeError:
        raise UsageError(
            "the address of a database must be Unicode text, but got "
            f"{hide_passwords(ascii(address)[1:-1])}: give the file or the folder another name",
            rule="database-address",
            field="url",
        ) from None


def holds_sqlite(path: Path) -> bool:
    """Return whether a file is an SQLite database."""
    with path.open("rb") as stream:
        return stream.read(len(SQLITE_MAGIC)) == SQLITE_MAGIC


def sqlite_url(path: Path, query: Mapping[str, Any] = NO_OPTIONS) -> str:
    """Return the URL of a file. Letters with a meaning in URLs are escaped."""
    from sqlalchemy.engine import URL

    url = URL.create("sqlite", database=str(path), query=query)
    text = url.render_as_string(hide_password=False)
    if sqlite_path(text) != path:  # SQLAlchemy before 2.1 does not escape them
        raise UsageError(
            f"the path of an SQLite file must be one that a URL can hold, but '{path}' is not: "
            "name a file without a question mark in its path, or install SQLAlchemy 2.1",
            rule="sqlite-path",
            field="path",
            value=path,
        )
    return text


def sqlite_path(url: str) -> Path:
    """Return the file of an SQLite URL, as the database library reads it."""
    return Path(parse_url(url).database or "")


def is_sqlite(url: str) -> bool:
    """Return True for a file, False for a server."""
    return re.match(r"sqlite(\+\w+)?://", url) is not None


def with_driver(url: str, *, find: Callable[[str], object] = find_spec) -> str:
    """Return the URL with an installed driver, if it names none and the usual one is missing.

    The usual driver depends on SQLAlchemy: before version 2.1 it was psycopg2 for PostgreSQL. A URL
    that cannot be read is refused. find: returns None for a module that is not installed.
    """
    if "://" in url:
        parse_url(url)
    kind, _, rest = url.partition("://")
    if kind not in DRIVERS:
        return url
    usual = parse_url(url).get_dialect().driver
    installed = [name for name, module in DRIVERS[kind].items() if find(module) is not None]
    if usual in installed or not installed:
        return url
    return f"{kind}+{installed[0]}://{rest}"


def file_of(given: str) -> Path | None:
    """Return the file of a path or an SQLite URL; None for a server's URL."""
    if "://" not in given:
        return Path(given)
    return sqlite_path(given) if is_sqlite(given) else None


def place(given: str) -> tuple[str, ...]:
    """Return where a file or a database lies. It is equal for all spellings of the same place."""
    path = file_of(given)
    if path is not None:
        return _place_of_file(path)
    try:
        url = parse_url(given)
    except UsageError:
        return (given,)  # opening it will tell what is wrong
    kind = url.get_backend_name()
    host = url.host or str(url.query.get("host", "localhost"))
    port = url.port or url.query.get("port") or PORTS.get(kind)
    return kind, host.lower(), str(port), url.database or ""


def _place_of_file(path: Path) -> tuple[str, ...]:
    """Return how the system identifies a file, because a file can have several names."""
    if not path.exists():
        return ("file", str(path.resolve()))
    known = path.stat()
    return ("file", str(known.st_dev), str(known.st_ino))


def hide_passwords(said: str | None) -> str:
    """Return a URL, or a sentence with URLs, without passwords."""
    if said is None:
        return "memory"
    if re.match(r"\S*://", said):  # This is one URL, and its password may hold spaces.
        return _hide_password(said)
    return re.sub(_WORD, lambda word: _hide_password(word[0]), said)


def _hide_password(url: str) -> str:
    """Return a URL without its password, which may contain an @."""
    masked = re.sub(r"(://[^:/]*):.*@", r"\1:***@", url)
    return re.sub(r"([?&](?:password|passwd|sslpassword)=)[^&]*", r"\1***", masked)
