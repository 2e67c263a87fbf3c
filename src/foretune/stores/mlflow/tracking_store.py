"""The addresses of MLflow stores as tracking URIs, and the first contact with one."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from foretune._base.databases import SQLITE, holds_sqlite, sqlite_path, sqlite_url
from foretune.errors import ExperienceError
from foretune.stores.files.archive import existing

PLACES = ("databricks", "databricks-uc", "uc")
"""Tracking URIs of a single word."""
IMPATIENT = {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1", "MLFLOW_HTTP_REQUEST_TIMEOUT": "10"}
"""Settings that MLflow reads before each request: how often it tries again, and how many seconds it
waits. Its own defaults take more than four minutes to give up."""


def tracking_uri(given: str) -> str:
    """Return the tracking URI of a store, which may be given as the path of an SQLite file."""
    if "://" in given:
        return given
    path = Path(given)
    return sqlite_url(path) if path.is_file() and holds_sqlite(path) else given


def existing_uri(given: str) -> str:
    """Return the tracking URI of a store that exists. MLflow would create a missing SQLite file."""
    uri = tracking_uri(given)
    if uri.startswith(SQLITE):
        path = existing(sqlite_path(uri))
    elif ":" in given or given in PLACES:
        return uri
    else:
        path = existing(given)
    if path.is_file() and not holds_sqlite(path):
        raise ExperienceError(
            f"the file of an MLflow store must be an SQLite database, but '{path}' is something "
            "else: name another file, or a tracking URI",
            rule="not-sqlite",
            value=str(path),
        )
    return uri


@contextmanager
def first_contact() -> Iterator[None]:
    """Give up soon on a server that does not answer, unless the user has set other limits."""
    added = {name: value for name, value in IMPATIENT.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)
