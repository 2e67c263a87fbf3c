"""Keeps libraries and open tables in a worker process between its jobs."""

from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from foretune.automl.worker_libraries import LIBRARIES
from foretune.tables import Table

OPEN_TABLES = 8


def load_libraries() -> None:
    """Import the libraries of trials, so that the first trial's time does not include it."""
    for library in LIBRARIES:
        if find_spec(library) is not None:
            import_module(library)


@lru_cache(maxsize=OPEN_TABLES)
def open_table(path: Path) -> Table:
    """Open the table in a file, and keep it open for the next job."""
    return Table.open(path)
