"""Warnings about columns that may have another meaning than the one they were given."""

import re
import shlex
import warnings
from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import Any

import numpy as np

from foretune._base.names import quote_names
from foretune.errors import ForetuneWarning
from foretune.stores.files.cell_columns import ColumnCells
from foretune.stores.files.outcomes import are_outcomes
from foretune.stores.files.plain_values import NUMBER
from foretune.stores.files.table_files import WORDS

THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?")
PARTS_OF_NAMES = re.compile(r"[A-Z]+\d*(?![a-z])|[A-Z]?[a-z]+\d*|\d+")
DURATION = re.compile(r"(\d+ days? )?\d+:\d{2}:\d{2}(\.\d+)?")
RUN_TIMES = frozenset({"duration", "elapsed", "runtime", "seconds", "walltime"})
MEASURED = frozenset(
    {"accuracy", "auc", "f1", "logloss", "mae", "mse", "precision", "recall", "rmse", "score"}
)
"""Words in the names of measured fractions. A precision of 16 or 32 is no measurement."""
RECORDED = frozenset(
    {
        *("author", "commit", "created", "date", "datetime", "finished", "host", "hostname"),
        *("started", "timestamp", "user"),
    }
)
"""Words in the names of columns that say when, where and by whom a run was made."""
IGNORE = "--ignore"
PREFIXES = ("params_", "params.", "config/", "param_")
"""What Optuna, MLflow, Ray Tune and scikit-learn write before the names of hyperparameters."""

Columns = Mapping[str, ColumnCells]


def warn_of_doubtful_columns(
    columns: Mapping[str, Sequence[Any] | ColumnCells], *, by_name: bool
) -> None:
    """Warn of columns that may mean something else than they are taken for.

    by_name: whether a column without another meaning is taken for a hyperparameter.
    """
    cells = {name: ColumnCells.of(column) for name, column in columns.items()}
    _say_thousands(cells)
    _say_numbers(cells)
    if by_name:
        _say_no_hyperparameters(cells)


def _say_thousands(cells: Columns) -> None:
    """Warn of numbers beside texts such as 1,000, which may be one number or two (layer sizes)."""
    for name, values in _with_texts(cells).items():
        texts = {value for value in values if isinstance(value, str)}
        if any(map(_is_number, values)) and all(map(THOUSANDS.fullmatch, texts)):
            _warn(
                f"'{name}' has numbers and the text '{min(texts)}', so all of them are choices; "
                "write the number without commas if it is one",
                "number-with-commas",
                name,
            )


def _say_numbers(cells: Columns) -> None:
    """Warn of texts that are all numbers, as in Parquet files of MLflow's parameters."""
    for name, values in _with_texts(cells).items():
        texts = {value for value in values if isinstance(value, str) and value not in WORDS}
        only_texts = all(isinstance(value, str) for value in values)
        if texts and only_texts and all(map(NUMBER.fullmatch, texts)):
            _warn(
                f"'{name}' holds numbers as texts, such as '{min(texts)}', so they are choices; "
                "save them as numbers if they are",
                "numbers-as-texts",
                name,
            )


def _with_texts(cells: Columns) -> dict[str, list[Any]]:
    """Return the different values of each column that holds a text."""
    return {name: column.values for name, column in cells.items() if str in column.kinds}


def _say_no_hyperparameters(cells: Columns) -> None:
    """Warn of columns that are known only after a run, such as its time."""
    options: dict[str, list[str]] = {}
    for name, column in cells.items():
        option = _option_for(name, column)
        # A table has one column of outcomes, and one of run times.
        option = IGNORE if option in options else option
        if option:
            options.setdefault(option, []).append(name)
    if not options:
        return
    names = [name for name in cells if any(name in meant for meant in options.values())]
    prefix = _prefix_in(cells, names)
    if prefix:  # The prefix leaves out every column with another name.
        options = {"--config-prefix": [prefix]} | options
        options.pop(IGNORE, None)
    said = " ".join(
        f"{option} {shlex.quote(_join_names(meant))}" for option, meant in options.items()
    )
    _warn(
        f"{quote_names(names)}: read as hyperparameters, but probably none. If so, import again "
        f"with {said}",
        "doubtful-columns",
        tuple(names),
    )


def _prefix_in(names: Collection[str], doubted: Collection[str]) -> str:
    """Return what a tool writes before the names of its hyperparameters, or ""."""
    found = (prefix for prefix in PREFIXES if any(name.startswith(prefix) for name in names))
    prefix = next(found, "")
    return "" if prefix and any(name.startswith(prefix) for name in doubted) else prefix


def _option_for(name: str, column: ColumnCells) -> str:
    """Return the option for what a column probably is; "" if it may be a hyperparameter."""
    words = [part.lower() for part in PARTS_OF_NAMES.findall(name)]
    last = words[-1] if words else ""
    numbers = column.kinds <= {int, float}
    fractions = numbers and _has_fractions(column)
    if not numbers and are_outcomes(column.values):
        return "--status"
    if RUN_TIMES & {*words} and (numbers or all(map(_is_duration, column.values))):
        return "--seconds"
    measured = fractions and (MEASURED & {*words} or last == "loss")
    # A "dimension of users" is no user. Numbers may count users, or seconds since 1970.
    recorded = last in (RECORDED | {"id"} if numbers else RECORDED)
    return IGNORE if measured or recorded or (RECORDED & {*words} and not numbers) else ""


def _join_names(names: Sequence[str]) -> str:
    return ",".join(f'"{name}"' if "," in name else name for name in names)


def _is_number(cell: Any) -> bool:
    return isinstance(cell, int | float) and not isinstance(cell, bool)


def _has_fractions(column: ColumnCells) -> bool:
    """Return whether a column of numbers has one that is not whole."""
    numbers = np.asarray(column.values, dtype=np.float64)
    return bool((numbers[~np.isnan(numbers)] % 1 != 0).any())


def _is_duration(cell: Any) -> bool:
    """Return whether a cell is a time span. pandas writes it as 0 days 00:01:30."""
    as_text = isinstance(cell, str) and DURATION.fullmatch(cell) is not None
    return isinstance(cell, timedelta) or as_text


def _warn(text: str, rule: str, value: object) -> None:
    warnings.warn(ForetuneWarning(text, rule=rule, value=value), stacklevel=4)
