"""What must hold before the first trial, so that no search is lost at its end."""

import tempfile
from pathlib import Path

import pandas as pd

from foretune.automl.conclusion import known_rows
from foretune.automl.datasets import Table
from foretune.automl.fit import Place
from foretune.automl.plan import Wishes
from foretune.errors import UsageError, extras_named
from foretune.search.registry import method


def check_ready(
    wishes: Wishes, place: Place, table: Table, test: pd.DataFrame | None, target: str
) -> None:
    """Refuse what could only fail later: a method, packages, a folder, a test table."""
    method(wishes.method)
    with extras_named("foretune fit"):
        import optuna  # noqa: F401
        import skops.io  # noqa: F401
    _check_writable(place.folder)
    if test is not None:
        known_rows(test, target, table.task, table.classes)


def _check_writable(folder: Path) -> None:
    existing = next(p for p in (folder, *folder.absolute().parents) if p.exists())
    if not existing.is_dir():
        raise UsageError(
            f"the output must be a folder, but '{existing}' is a file: choose another with --out"
        )
    try:
        with tempfile.TemporaryFile(dir=existing):
            pass
    except OSError as error:
        raise UsageError(
            f"the folder of the output must be writable, but '{existing}' is not "
            f"({error.strerror}): choose another with --out"
        ) from error
