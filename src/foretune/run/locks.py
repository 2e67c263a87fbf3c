"""Locks that let one process at a time change a study, in each kind of storage.

Each kind of lock ends with its process, so a crash never leaves one behind.
"""

import hashlib
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from foretune._base.files import hold_lock

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

FOR_EVER = 10**8
"""Seconds. MySQL needs a limit."""


class Exclusive(Protocol):
    """A lock among processes."""

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Wait for the lock, and hold it."""

    def close(self) -> None:
        """Close its files and connections."""


class FileLock:
    """A lock on a small file beside the one it guards, for processes of one machine."""

    def __init__(self, path: Path) -> None:
        path.open("ab").close()  # An unwritable folder shows at once.
        self._path = path

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Wait for the lock, and hold it."""
        with hold_lock(self._path):
            yield

    def close(self) -> None:
        """Do nothing: the file stays, because another process may wait for it."""


class ServerLock:
    """A lock that a PostgreSQL or MySQL server keeps while a connection lives."""

    def __init__(self, engine: "Engine", name: str) -> None:
        self._engine = engine
        self._name = name

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Wait for the lock, and hold it."""
        with self._engine.begin() as connection:
            if self._engine.name == "postgresql":
                self._until_the_transaction_ends(connection)
                yield
            else:
                self._say(connection, "SELECT GET_LOCK(:name, :limit)", limit=FOR_EVER)
                try:
                    yield
                finally:
                    self._say(connection, "SELECT RELEASE_LOCK(:name)")

    def close(self) -> None:
        """Close the connections."""
        self._engine.dispose()

    def _until_the_transaction_ends(self, connection: "Connection") -> None:
        from sqlalchemy import text

        digest = hashlib.sha256(self._name.encode()).digest()
        key = int.from_bytes(digest[:8], "big", signed=True)
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": key})

    def _say(self, connection: "Connection", statement: str, **values: int) -> None:
        from sqlalchemy import text

        name = hashlib.sha256(self._name.encode()).hexdigest()  # 64 letters, MySQL's longest name
        connection.execute(text(statement), {"name": name, **values})


class Reentrant:
    """A lock among processes that threads share, and that a thread can hold twice."""

    def __init__(self, exclusive: Exclusive) -> None:
        self._exclusive = exclusive
        self._threads = threading.RLock()
        self._depth = 0

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Wait for the lock, and hold it."""
        with self._threads, ExitStack() as stack:
            if self._depth == 0:
                stack.enter_context(self._exclusive.hold())
            self._depth += 1
            try:
                yield
            finally:
                self._depth -= 1

    def close(self) -> None:
        """Close its files and connections."""
        self._exclusive.close()
