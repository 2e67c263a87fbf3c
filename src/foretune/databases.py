"""Addresses of databases: an SQLite file as a URL and back, and URLs for messages."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from foretune.errors import UsageError

SQLITE = "sqlite:///"
SQLITE_MAGIC = b"SQLite format 3\x00"
NO_OPTIONS: Mapping[str, Any] = {}

_WORD = r"\S*://[^:/\s]*:[^\s\d@][^@]*@\S*|\S+"
"""Of a sentence; one with a URL ends behind its password, unless what looks like one is a port."""


def holds_sqlite(path: Path) -> bool:
    """Whether a file is an SQLite database."""
    with path.open("rb") as stream:
        return stream.read(len(SQLITE_MAGIC)) == SQLITE_MAGIC


def sqlite_url(path: Path, query: Mapping[str, Any] = NO_OPTIONS) -> str:
    """The URL of a file; letters that mean something in a URL are written as a URL has them."""
    from sqlalchemy.engine import URL

    url = URL.create("sqlite", database=str(path), query=query)
    text = url.render_as_string(hide_password=False)
    if sqlite_path(text) != path:  # SQLAlchemy before 2.1 writes them as they are
        raise UsageError(
            f"the path of an SQLite file must be one that a URL can hold, but '{path}' is not: "
            "name a file without a question mark in its path, or install SQLAlchemy 2.1"
        )
    return text


def sqlite_path(url: str) -> Path:
    """The file of an SQLite URL, as the database library reads it."""
    from sqlalchemy.engine import make_url

    return Path(make_url(url).database or "")


def shown(said: str | None) -> str:
    """A URL, or a sentence that names some, for messages: without passwords."""
    if said is None:
        return "memory"
    if re.match(r"\S*://", said):  # One URL, and a password may hold spaces.
        return _masked(said)
    return re.sub(_WORD, lambda word: _masked(word[0]), said)


def _masked(url: str) -> str:
    """A URL without its password, which may hold an @ itself."""
    masked = re.sub(r"(://[^:/]*):.*@", r"\1:***@", url)
    return re.sub(r"([?&](?:password|passwd|sslpassword)=)[^&]*", r"\1***", masked)
