"""Checks before the first trial, so that a search does not fail at its end."""

import tempfile
from importlib.util import find_spec
from pathlib import Path

from foretune.automl.final_model.model import Model
from foretune.automl.fit_data import FitData
from foretune.automl.fit_folder import FitFolder
from foretune.automl.metrics import check_divisible
from foretune.automl.model_scores import rows_with_target
from foretune.automl.plan import DEFAULT_METHOD, FitOptions
from foretune.errors import MissingExtraError, UsageError


class OtherTargetError(UsageError):
    """The folder already holds the model of another target."""


def check_ready(
    options: FitOptions,
    folder: FitFolder,
    data: FitData,
    *,
    store: str | None = None,
) -> None:
    """Refuse options that would fail later, or would replace the model of another target.

    It checks the method, the packages, the folder, the store and the test table.
    """
    if options.method != DEFAULT_METHOD:
        from foretune.search.registry import method  # takes a second

        method(options.method)
    for package in ("optuna", "skops"):
        # The package is not imported: importing skops takes a second, at the end of the search.
        if find_spec(package) is None:
            raise MissingExtraError(package, "automl", "foretune fit")
    _check_writable(folder.folder)
    if store is not None:
        from foretune.stores.optuna.study import check_store

        check_store(store)
    check_same_target(folder.model, data.target)
    if data.test is not None:
        table = data.table
        known, y = rows_with_target(
            data.test,
            data.target,
            table.task,
            table.classes,
            decimal=table.target_decimal,
            weighting=table.weighting,
        )
        table.schema.with_marks_of(known).check_numbers(known)
        check_divisible(options.metric, y, of=" of the test table")


def check_same_target(model: Path, target: str) -> None:
    """Refuse a folder that holds the model of another target.

    A job checks this before the search and before saving, because another fit may save meanwhile.
    """
    if not model.exists():
        return
    try:
        before = Model.read_header(model)["target"]
    except (UsageError, LookupError, OSError):
        return  # There is no model of Foretune that could be lost.
    if before != target:
        raise OtherTargetError(
            f"a folder holds the model of one target, but '{model}' predicts '{before}', and here "
            f"it is '{target}': choose another folder with -o FOLDER",
            rule="folder-of-another-target",
            value=before,
        )


def _check_writable(folder: Path) -> None:
    existing = next(p for p in (folder, *folder.absolute().parents) if p.exists())
    if not existing.is_dir():
        raise UsageError(
            f"the output must be a folder, but '{existing}' is a file: choose another with --out",
            rule="folder-is-file",
            field="out",
            value=str(existing),
        )
    try:
        with tempfile.TemporaryFile(dir=existing):
            pass
    except OSError as error:
        raise UsageError(
            f"the folder of the output must be writable, but '{existing}' is not "
            f"({error.strerror}): choose another with --out",
            rule="folder-not-writable",
            field="out",
            value=str(existing),
        ) from error
